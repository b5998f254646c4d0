"""dp-diffractor from PyPI compared with ours, on its own inputs: the peers' unchanged driver, one after the other."""

import statistics
import time

import corpusveil as cv
from benchmarks import inputs, peers
from benchmarks.report import Table

REPEATS = 9


def run() -> list[Table]:
    docs = (peers.folder() / "docs.txt").read_text(encoding="utf-8").splitlines()
    tokens = sum(len(line.split()) for line in (peers.folder() / "docs.tok.txt").open(encoding="utf-8"))
    table = Table(
        f"dp-diffractor beside ours: {len(docs):,} documents, {tokens:,} tokens of the benchmark text, one list",
        ("ε", "dp-diffractor tokens/s", "a CPU s", "ours tokens/s", "a CPU s", "ratio of CPU", "its MiB"),
    )
    began = time.perf_counter()
    theirs = {row["epsilon"]: row for row in peers.drive("run_diffractor.py", "1") if row["mechanism"] == "geometric"}
    took = time.perf_counter() - began
    for epsilon, row in theirs.items():
        wall, cpu = ours(docs, epsilon)
        rate = row["tokens_per_s"]
        table.rows.append(
            (f"{epsilon:g}", rate["median"], rate["per_cpu_s"], tokens / wall, tokens / cpu,
             f"{tokens / cpu / max(rate['median'], rate['per_cpu_s']):,.0f}", row["rss_mb"])
        )  # fmt: skip
    version, setup = theirs[1]["version"], theirs[1]["setup_s"]
    say = table.notes.append
    say(
        f"dp-diffractor {version}, set-up {setup:.0f} s; its driver took {took:.0f} s with its TEM, not shown here. "
        f"Its rate: median of {theirs[1]['tokens_per_s']['repeats']} parts of 40 documents."
    )
    say(
        f"Ours: list of strings in, list of strings out, median of {REPEATS} passes over all documents, one thread. "
        "Every word is replaced; dp-diffractor returns stop words, numbers and unknown words as they are."
    )
    say("Ratio: our tokens a CPU second to the larger of its two rates.")
    return [table]


def ours(docs: list[str], epsilon: float) -> tuple[float, float]:
    """Return the median wall and CPU seconds of one pass."""
    release = inputs.release(peers.space(), epsilon)
    cv.privatize(docs[:2], release, cv.RowNumbers("warm"))
    walls, cpus = [], []
    for _ in range(REPEATS):
        wall, cpu = time.perf_counter(), time.process_time()
        cv.privatize(docs, release, cv.RowNumbers("docs"))
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return statistics.median(walls), statistics.median(cpus)
