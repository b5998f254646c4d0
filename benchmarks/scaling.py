"""One worker of a cluster against two, by spark-submit from the packed environment, on a job of a few minutes."""

import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks import cluster, inputs
from benchmarks.report import Skipped, Table
from corpusveil.deployment.package import package_spark
from corpusveil.errors import CorpusveilError

ROUNDS = 1 if inputs.SMALLEST else 3
COPIES = 1 if inputs.SMALLEST else 24
"""The shared corpus so many times: three and a half minutes on one worker."""
TARGET = 1.6


def run() -> list[Table]:
    shards = inputs.shards()
    table = Table(
        f"One worker and two of a standalone cluster, {COPIES} times {len(shards)} shards; {inputs.origin()}",
        ("workers", "wall s, median", "of", "M words/s", "release digest"),
    )
    medians, digests = {}, set()
    with tempfile.TemporaryDirectory(dir=inputs.work()) as name:
        folder = Path(name)
        packed, home, corpus = folder / "packed", folder / "home", folder / "corpus"
        for place in (home, corpus):
            place.mkdir()
        for copy in range(COPIES):
            for shard in shards:
                os.symlink(shard, corpus / f"{copy}-{Path(shard).name}")
        try:
            package_spark(str(packed))
        except CorpusveilError as error:
            raise Skipped(str(error)) from None
        rounds: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(ROUNDS):
            for workers, seconds in rounds.items():
                took, digest = _job(folder, packed, home, corpus, workers)
                seconds.append(took)
                digests.add(digest)
        words = COPIES * inputs.words(shards) / 1e6
        for workers, seconds in rounds.items():
            medians[workers] = statistics.median(seconds)
            told = ", ".join(f"{one:.0f}" for one in seconds)
            table.rows.append((workers, medians[workers], told, words / medians[workers], min(digests)[:16]))
    ratio = medians[1] / medians[2]
    table.target(f"two workers are {ratio:.2f} times as fast as one (wanted: {TARGET})", met=ratio >= TARGET)
    table.target(f"{len(digests)} digest over {2 * ROUNDS} runs", met=len(digests) == 1)
    table.notes.append("Wall time of spark-submit, start-up of driver and executors included; rounds take turns.")
    return [table]


def _job(folder: Path, packed: Path, home: Path, corpus: Path, workers: int) -> tuple[float, str]:
    """Run the job on a cluster of its own; return its wall time and the digest of the release."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        command = ["privatize", str(corpus), "--space", inputs.space(), "--mechanism", "ring-geometric"]
        command += ["--epsilon", "1", "--key", inputs.key(), "--output", str(place / "out"), "--engine", "spark"]
        with cluster.standalone(place, workers, cluster.bare(home)) as master:
            began = time.perf_counter()
            done = subprocess.run(
                [*cluster.submit(packed, master), *command, "--progress", "none"],
                env=cluster.bare(home), cwd=home, capture_output=True, text=True, check=False,
            )  # fmt: skip
            took = time.perf_counter() - began
        if done.returncode:
            raise Skipped(f"the job ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
        return took, json.loads((place / "out" / "manifest.json").read_bytes())["content_sha256"]
