"""What the first calls of a process cost, and a small job on each engine, all its processes together."""

import ctypes
import gzip
import itertools
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import cluster, inputs
from benchmarks.report import Skipped, Table

ROUNDS, SHARDS, DOCUMENTS = (1, 2, 5) if inputs.SMALLEST else (3, 4, 100)
ENGINES = (("local", 1), ("local", 2), *(() if inputs.SMALLEST else (("spark", 2), ("beam", 1))))
_SUBREAPER = 36
"""Of Linux' prctl: what orphans of the runs become children of, Spark's Java among them."""


def run() -> list[Table]:
    if sys.platform != "linux":
        raise Skipped("processor time of all processes of a run is told on Linux only")
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    table = Table(
        f"A job on {SHARDS} shards of {DOCUMENTS} documents: CPU seconds of all its processes, medians of {ROUNDS}",
        ("work", "engine", "workers", "CPU s", "wall s"),
    )
    with tempfile.TemporaryDirectory(dir=inputs.work()) as name:
        folder = Path(name)
        (folder / "in").mkdir()
        with gzip.open(inputs.shards()[0], "rb") as file:
            for number in range(SHARDS):
                rows = b"".join(itertools.islice(file, DOCUMENTS))
                (folder / "in" / f"{number}.json.gz").write_bytes(gzip.compress(rows, 1, mtime=0))
        privatize = ("--space", inputs.space(), "--mechanism", "ring-geometric", "--epsilon", "1")
        for work, options in {"privatize": (*privatize, "--key", inputs.key()), "count": ()}.items():
            call = [work, str(folder / "in"), *options]
            _once([*call, *_on("local", 1)], folder)  # which compiles
            for engine, workers in ENGINES:
                walls, cpus = zip(*(_once([*call, *_on(engine, workers)], folder) for _ in range(ROUNDS)), strict=True)
                table.rows.append((work, engine, workers, statistics.median(cpus), statistics.median(walls)))
    return [_first_use(), table]


PROGRAM = """
import os, time
marks = [("start of Python", 0.0)]
def mark(stage):
    marks.append((stage, sum(os.times()[:4])))
mark("start of Python")
import corpusveil as cv
mark("import corpusveil")
release = cv.release(space="en", mechanism="ring-geometric", epsilon=0.3, key=cv.Key.generate())
mark("cv.release, which reads the space en")
texts = [f"The river is cold, and bread number {number} was good." for number in range(10)]
for stage in ("cv.privatize of ten lines", "the same again"):
    cv.privatize(texts, release, ids=range(10))
    mark(stage)
passages = cv.release(store="en", epsilon=10, key=cv.Key.generate())
cv.privatize(texts, passages, ids=range(10))
mark("the same by passages, with the store en")
for (stage, after), (_, before) in zip(marks[1:], marks):
    print(f"{after - before:.2f}\t{stage}")
"""


def _first_use() -> Table:
    """Measure the first calls of a process, where numba has no loop of the package compiled, and where it has all."""
    spent: dict[str, list[list[float]]] = {}
    for number in range(ROUNDS + 1):
        with tempfile.TemporaryDirectory() as empty:
            kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
            more = {"NUMBA_CACHE_DIR": empty} if number == ROUNDS else {}
            call = [sys.executable, "-c", PROGRAM]
            done = subprocess.run(call, cwd=empty, env={**kept, **more}, capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            seconds, stage = line.split("\t")
            spent.setdefault(stage, [[], []])[number == ROUNDS].append(float(seconds))
    table = Table(
        f"Ten lines in Python, CPU seconds of its stages: medians of {ROUNDS}, and once where nothing is compiled",
        ("stage", "loops compiled", "from", "to", "nothing compiled"),
    )
    for stage, (warm, cold) in spent.items():
        table.rows.append((stage, statistics.median(warm), min(warm), max(warm), cold[0]))
    totals = [sum(ways[0][number] for ways in spent.values()) for number in range(ROUNDS)]
    once = sum(ways[1][0] for ways in spent.values())
    table.rows.append(("together", statistics.median(totals), min(totals), max(totals), once))
    return table


def _on(engine: str, workers: int) -> list[str]:
    return ["--engine", engine, *([] if engine == "beam" else ["--workers", str(workers)])]


def _once(call: list[str], folder: Path) -> tuple[float, float]:
    """Run a command line to the end of its last process; return its wall and processor seconds."""
    kept = {name: value for name, value in cluster.environment().items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "corpusveil", *call, "--output", str(folder / "out"), "--progress", "none"],
        cwd=inputs.ROOT, env={**kept, "PYTHONPATH": str(inputs.ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    wall = time.perf_counter() - began
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    for path in folder.glob("out*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if done.returncode:
        raise Skipped(f"{' '.join(call[:2])} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
