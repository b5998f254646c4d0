"""One measured piece of work in a process of its own: start-up first and apart, then wall, CPU and peak memory.

``fresh(kind, ...)`` starts it; ``python -m benchmarks.job`` is what is started.
"""

import functools
import gzip
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpusveil as cv
from benchmarks import inputs, stages
from corpusveil.jobs.local import Local
from corpusveil.storage import files, formats
from corpusveil.storage.rows import BLOCK_ROWS, Columns
from corpusveil.transforms.corpus import privatize_corpus

WARM = ["The river rises in June; 12 of them (see www.example.org) don't – naïve qwzx!", ""] * 8
"""What every kind of token and the first use of every library is paid with, before the clock starts."""


def fresh(kind: str, **arguments: Any) -> dict[str, Any]:
    """Run one kind of work in a new process; return its figures."""
    command = [sys.executable, "-m", "benchmarks.job", json.dumps({"kind": kind, **arguments})]
    told = subprocess.run(command, cwd=inputs.ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(told.splitlines()[-1])


def warm_shard(folder: str) -> str:
    path = Path(folder, "warm.json.gz")
    path.write_bytes(gzip.compress(b"".join(json.dumps({"text": text}).encode() + b"\n" for text in WARM)))
    return str(path)


def privatize(at: str, shards: list[str], *, profile: bool = False) -> Callable[[str], dict[str, Any]]:
    """Prepare the whole job on one worker: machine code, tables and word list are loaded by a few documents."""
    release = inputs.release(at)
    with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
        privatize_corpus(release, [warm_shard(folder)], f"{folder}/out", Local(1))
    profiler = stages.install() if profile else None

    def run(folder: str) -> dict[str, Any]:
        outcome = privatize_corpus(release, shards, f"{folder}/out", Local(1))
        shares = profiler.seconds if profiler else {}
        return {"tokens": int(outcome.counts.roles.sum()), "digest": outcome.content_sha256, "stages": shares}

    return run


def copy(shards: list[str]) -> Callable[[str], dict[str, Any]]:
    """Prepare the same shards through the same reader and writer, with nothing between the two."""
    columns = Columns()

    def through(shards: list[str], folder: str) -> dict[str, Any]:
        for shard in shards:
            form = formats.find(formats.form_of(shard))
            with files.open_read(shard) as source, files.open_write(f"{folder}/{Path(shard).name}") as sink:
                writer = form.writer(sink, columns, hashlib.sha256(), [])
                row = 0
                for batch in form.batches(source, shard, columns):
                    writer.write(batch.texts, [])
                    row = batch.stop
                    if row % BLOCK_ROWS == 0:
                        writer.end_block()
                writer.end_block()
                writer.close()
        return {}

    with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
        os.mkdir(f"{folder}/out")
        through([warm_shard(folder)], f"{folder}/out")
    return functools.partial(through, shards)


def space(vectors: str) -> Callable[[str], dict[str, Any]]:
    """Prepare nothing: reading vectors, ordering one greedy list, hashing and saving are all measured."""

    def run(folder: str) -> dict[str, Any]:
        steps, began = {}, time.perf_counter()
        read = cv.read_vectors(vectors)
        steps["read"] = time.perf_counter() - began
        built = cv.build_space(read)
        steps["list and digest"] = time.perf_counter() - began - steps["read"]
        built.save(f"{folder}/space")
        return {"words": len(built), "dimensions": built.dimensions, **steps}

    return run


KINDS: dict[str, Callable[..., Callable[[str], dict[str, Any]]]] = {
    "privatize": privatize,
    "copy": copy,
    "space": space,
}


def peak_mb() -> float:
    """Return the most memory this process ever held, MiB. (getrusage would count what forked it.)"""
    status = Path("/proc/self/status")
    if status.exists():
        held = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
        return int(held.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


def main(kind: str, **arguments: Any) -> None:
    began = time.perf_counter()
    run = KINDS[kind](**arguments)
    before, cpu, wall = peak_mb(), time.process_time(), time.perf_counter()
    with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
        told = run(folder)
        told |= {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    print(json.dumps({**told, "start_up": wall - began, "peak_mb": peak_mb(), "peak_before_mb": before}))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
