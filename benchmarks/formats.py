"""One shard in every format: the whole job in this format, compared with a plain copy by the same reader and writer."""

import statistics
import time
from pathlib import Path

from benchmarks import inputs
from benchmarks.job import fresh
from benchmarks.report import Table
from corpusveil.jobs.local import Local
from corpusveil.storage.formats import SUFFIXES
from corpusveil.transforms.release.corpus import privatize_corpus

REPEATS = 3
COPIES = 8


def shard_in(suffix: str) -> str:
    """Return the first shard's documents in this format, from a release that hardly changes a word."""
    folder = inputs.work() / "forms" / suffix.strip(".")
    if not (folder / "manifest.json").exists():
        release = inputs.release(inputs.space(), epsilon=30.0)
        privatize_corpus(release, [inputs.shards()[0]], str(folder), Local(), format=suffix[1:])
    return str(next((folder / "data").glob("part-*")))


def run() -> list[Table]:
    suffixes = [suffix for suffix in SUFFIXES if not suffix.startswith(".json") or suffix.startswith(".jsonl")]
    shards = {suffix: shard_in(suffix) for suffix in suffixes}
    words = inputs.words([shards[".jsonl.gz"]])
    table = Table(
        f"One shard of {words:,} words in every form, one worker; {inputs.origin()}",
        ("form", "MB", "words/s", "copy words/s", "times a copy", "peak MiB"),
    )
    began = time.perf_counter()
    for suffix, shard in shards.items():
        copies, works = [], []
        for _ in range(REPEATS):
            copies.append(fresh("copy", shards=[shard]))
            works.append(fresh("privatize", at=inputs.space(), shards=[shard]))
        copy, work = (statistics.median(one["wall"] for one in done) for done in (copies, works))
        peak = max(one["peak_mb"] for one in works)
        table.rows.append(
            (suffix, Path(shard).stat().st_size / 1e6, words / work, words / copy, work / copy, round(peak))
        )
    slowest = min(row[2] for row in table.rows)
    table.notes.append(f"Slowest form: {slowest / 1e6:.2f} M words/s. {time.perf_counter() - began:.0f} s in all.")
    table.target(f"no form takes more than {COPIES} copies", met=max(row[4] for row in table.rows) <= COPIES)
    return [table]
