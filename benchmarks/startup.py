"""What a small job costs on each engine, all its processes together; beside an older checkout where one is named.

``CORPUSVEIL_BENCH_OLD`` names the folder of another commit, whose runs take turns with this one's, by the same Python.
"""

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
from benchmarks.measured import COMMAND
from benchmarks.report import Skipped, Table

ROUNDS, SHARDS, DOCUMENTS = (1, 2, 5) if inputs.SMALLEST else (3, 4, 100)
ENGINES = (("local", 1), ("local", 2), *(() if inputs.SMALLEST else (("spark", 2), ("beam", 1))))
HALF = 0.5
WARM = ("local", 1)
_SUBREAPER = 36
"""Of Linux' prctl: what orphans of the runs become children of, Spark's Java among them."""


def run() -> list[Table]:
    if sys.platform != "linux":
        raise Skipped("processor time of all processes of a run is told on Linux only")
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    older = os.environ.get("CORPUSVEIL_BENCH_OLD")
    table = Table(
        f"A job on {SHARDS} shards of {DOCUMENTS} documents: CPU seconds of all its processes, medians of {ROUNDS}",
        ("work", "engine", "workers", "CPU s", "wall s", "older: CPU s", "its time = 1"),
    )
    with tempfile.TemporaryDirectory(dir=inputs.work()) as name:
        folder = Path(name)
        (folder / "in").mkdir()
        with gzip.open(inputs.shards()[0], "rb") as file:
            for number in range(SHARDS):
                rows = b"".join(itertools.islice(file, DOCUMENTS))
                (folder / "in" / f"{number}.json.gz").write_bytes(gzip.compress(rows, 1, mtime=0))
        privatize = (
            "--space",
            inputs.space(),
            "--mechanism",
            "ring-geometric",
            "--epsilon",
            "1",
            "--key",
            inputs.key(),
        )
        sides = (None, older) if older else (None,)
        for work, options in {"privatize": privatize, "count": ()}.items():
            call = [work, str(folder / "in"), *options]
            for side in sides:
                _once([*call, *_on(*WARM)], folder, side)
            alone: tuple[float, ...] = ()
            for engine, workers in ENGINES:
                whole = [*call, *_on(engine, workers)]
                rounds = [[_once(whole, folder, side) for side in sides] for _ in range(ROUNDS)]
                walls, cpus = ([statistics.median(side) for side in figures] for figures in _by_side(rounds))
                alone = alone or tuple(cpus)
                beside = (cpus[1], cpus[0] / cpus[1]) if older else ("", "")
                table.rows.append((work, engine, workers, cpus[0], walls[0], *beside))
                if older and (engine, workers) != WARM:
                    more = (cpus[0] - alone[0]) / (cpus[1] - alone[1])
                    told = f"{work}, {engine} with {workers} workers: {more:.2f} of what it took above one process"
                    table.target(f"{told} (wanted: {HALF})", met=more <= HALF)
    table.notes.append("Loops are compiled before, once a side; sides take turns.")
    return [table]


def _on(engine: str, workers: int) -> list[str]:
    return ["--engine", engine, *([] if engine == "beam" else ["--workers", str(workers)])]


def _by_side(rounds: list[list[tuple[float, float]]]) -> tuple[list[list[float]], list[list[float]]]:
    """Return wall seconds and processor seconds, a list of rounds each side."""
    sides = list(zip(*rounds, strict=True))
    return [[wall for wall, _ in side] for side in sides], [[cpu for _, cpu in side] for side in sides]


def _once(call: list[str], folder: Path, checkout: str | None = None) -> tuple[float, float]:
    """Run a command line to the end of its last process; return its wall and processor seconds."""
    root, output = checkout or str(inputs.ROOT), folder / "out"
    kept = {name: value for name, value in cluster.environment().items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [*COMMAND, *call, "--output", str(output), "--progress", "none"], cwd=root,
        env={**kept, "PYTHONPATH": root}, capture_output=True, text=True, check=False,
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
