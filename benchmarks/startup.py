"""What the first calls of a process cost."""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from benchmarks import inputs
from benchmarks.report import Table

ROUNDS = 1 if inputs.SMALLEST else 3
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


def run(_: Sequence[str] = ()) -> list[Table]:
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
    return [table]
