"""100,000 shards of ten documents: the cost of planning, running and verifying, and the memory of the driver."""

import gzip
import os
import random
import tempfile
from pathlib import Path

import orjson

from benchmarks import inputs, measured
from benchmarks.report import Table

SHARDS = 8 if inputs.SMALLEST else int(os.environ.get("CORPUSVEIL_BENCH_TINY", "100000"))
DOCUMENTS, WORDS = 10, 40
DRIVER_MIB = 1024


def run() -> list[Table]:
    table = Table(
        f"{SHARDS:,} shards of {DOCUMENTS} documents of {WORDS} words, two local processes",
        ("step", "wall s", "ms a shard", "CPU s", "driver MiB", "largest worker MiB"),
    )
    with tempfile.TemporaryDirectory(dir=inputs.work()) as name:
        folder = Path(name)
        write(folder / "in")
        fixed: list[object] = [
            "privatize",
            folder / "in",
            "--space",
            inputs.space(),
            "--key",
            inputs.key(),
            "--mechanism",
        ]
        fixed += ["ring-geometric", "--epsilon", 1, "--output", folder / "out", "--progress", "lines"]
        steps: dict[str, list[object]] = {
            "plan": ["--plan"],
            "run": ["--workers", 2],
            "verify: run again": ["--workers", 2],
        }
        peaks = []
        for step, more in steps.items():
            took = measured.command(*fixed, *more)
            peaks.append(took.driver)
            table.rows.append((step, took.wall, 1e3 * took.wall / SHARDS, took.cpu, took.driver, took.largest))
    table.target(f"the driver takes at most {max(peaks):.0f} MiB (wanted: {DRIVER_MIB})", met=max(peaks) <= DRIVER_MIB)
    table.notes.append("Each shard is two files that are flushed to the disk, output and record, so the disk matters.")
    return [table]


def write(folder: Path) -> None:
    rng = random.Random(1)
    words = [f"{a}{b}" for a in ("river", "bank", "house", "garden", "winter") for b in ("", "s")]
    folder.mkdir()
    for number in range(SHARDS):
        rows = (orjson.dumps({"text": " ".join(rng.choices(words, k=WORDS))}) + b"\n" for _ in range(DOCUMENTS))
        (folder / f"c4-{number:06d}.json.gz").write_bytes(gzip.compress(b"".join(rows), 1, mtime=0))
