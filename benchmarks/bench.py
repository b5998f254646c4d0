"""The short table: each row with its baseline, in turns, in ten minutes; printed, and written as JSON.

``python -m benchmarks bench [FILE]``. Work and baseline are separate processes (``benchmarks.job``) of one thread;
start-up is not included.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import inputs, job
from benchmarks.figures import Clock, Row, Run, Side
from benchmarks.report import RESULTS, Skipped, Table, load, machine, show
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.collocations.score import score_counts
from corpusveil.jobs.local import Local

ROUNDS = 1 if inputs.SMALLEST else 3
TOKENS, ROW_TOKENS, ROW_WORDS = (64, 100, 20) if inputs.SMALLEST else (8_192, 100_000, 500)
SHARDS_OF_TWO, SHARDS_COUNTED = (2, 1) if inputs.SMALLEST else (4, 2)
DOCUMENTS = 100 if inputs.SMALLEST else 100_000
EPSILON, ROW_EPSILON = 10.0, 5.0
CMP, NUMPY = "cmp, NumPy", "float32 NumPy"


@dataclass(frozen=True)
class Planned:
    """A row to measure: keyword arguments of ``job.Started`` for our work and its baseline."""

    name: str
    unit: str
    ours: dict[str, Any]
    baseline: str
    beside: dict[str, Any]
    items: int = 0
    """The data of a run, unless it names them itself."""
    clock: Clock = "cpu"


def main(arguments: list[str]) -> int:
    """Measure, print the table, write the figures; return 2 for bad arguments or where they cannot be written."""
    if len(arguments) > 1 or any(one.startswith("-") for one in arguments):
        print("bench takes the file to write, and nothing else: python -m benchmarks bench [FILE]", file=sys.stderr)
        return 2
    path = Path(*arguments) if arguments else RESULTS / "bench.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
    except OSError as error:
        print(f"{path} cannot be written: {error.strerror}; name another file.", file=sys.stderr)
        return 2
    run = measure()
    path.write_text(run.model_dump_json(indent=1) + "\n", encoding="utf-8")
    print(f"{table(run)}\n\nWritten to {path}")
    return 0


def measure() -> Run:
    began, before = time.perf_counter(), load()
    inputs.key()  # before two processes need one
    rows: list[Row] = []
    skipped: dict[str, str] = {}
    for group in GROUPS:
        try:
            for planned in group():
                try:
                    rows.append(one(planned))
                except subprocess.CalledProcessError:
                    skipped[planned.name] = "its process failed; its last words are above."
                    continue
                print(f"{time.perf_counter() - began:4.0f} s  {rows[-1].name}", file=sys.stderr, flush=True)
                if planned.name == CMP:
                    try:
                        rows.append(beside_peer(rows[-1]))
                    except Skipped as reason:
                        skipped["cmp beside a peer"] = str(reason)
        except Skipped as reason:
            skipped[group.__name__] = str(reason)
    return Run(
        version=2, when=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), machine=machine(), load=before,
        minutes=(time.perf_counter() - began) / 60, data=inputs.origin(), rows=rows, skipped=skipped,
    )  # fmt: skip


def one(planned: Planned) -> Row:
    """Measure a row and its baseline in turns, each in a separate process."""
    theirs, ours = (job.Started(**{"threads": 1, **work}) for work in (planned.beside, planned.ours))
    with theirs, ours:
        theirs.wait()
        ours.wait()
        rounds = [(theirs.turn(), ours.turn()) for _ in range(ROUNDS)]
    baseline, mine = (
        Side(what=what, items=runs[0].get("items", planned.items), seconds=[run[planned.clock] for run in runs])
        for what, runs in zip((planned.baseline, "corpusveil"), zip(*rounds, strict=True), strict=True)
    )
    return Row(name=planned.name, unit=planned.unit, clock=planned.clock, baseline=baseline, ours=mine)


def beside_peer(row: Row) -> Row:
    """Compare CMP with the figure of mldp-text that CORPUSVEIL_BENCH_PEERS (default: beside the project) keeps."""
    folder = os.environ.get("CORPUSVEIL_BENCH_PEERS", inputs.ROOT.parent / "shared" / "bench" / "peers")
    path = Path(folder, "results.json")
    if not path.is_file():
        raise Skipped("the peers' figures are not on this machine (CORPUSVEIL_BENCH_PEERS names their folder).")
    asked = {"peer": "mldp-text", "mechanism": "multivariate_calibrated", "epsilon": EPSILON}
    rows = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    kept = next(row for row in rows if asked.items() <= row.items() and row.get("lists", 1) == 1)["tokens_per_s"]
    rate = max(kept["median"], kept["per_cpu_s"])
    baseline = Side(what="mldp-text on 33,787 × 300 (kept figure)", items=1, seconds=[1 / rate])
    return row.model_copy(update={"name": "cmp beside a peer", "baseline": baseline})


def whole_jobs() -> Iterator[Planned]:
    """Mechanisms on lists, on one shard in several formats, and the copy as their baseline."""
    first = inputs.shards()[:1]
    words, at = inputs.words(first), inputs.space()
    yield Planned(
        "plain copy, .json.gz", "words", {"kind": "copy", "shards": first}, "json and gzip of Python",
        {"kind": "standard copy", "shards": first}, words,
    )  # fmt: skip
    ring = {"kind": "privatize", "at": at, "shards": first}
    for suffix in (".json.gz", ".csv", ".parquet", ".jsonl.zst"):
        shards = first if suffix == ".json.gz" else [inputs.shard_in(suffix)]
        copied = {"kind": "copy", "shards": shards}
        yield Planned(f"ring-geometric, {suffix}", "words", {**ring, "shards": shards}, "plain copy", copied, words)
    for name in ("rules", "names"):
        spans = {"kind": "spans", "at": at, "shard": first[0]}
        kernel = {**spans, "recognizer": ""}
        yield Planned(f"spans: {name}", "words", {**spans, "recognizer": name}, "the kernel on the same", kernel)
    diffractor = {**ring, "mechanism": "diffractor-geometric"}
    yield Planned("diffractor-geometric, .json.gz", "words", diffractor, "ring-geometric", ring, words)


def on_vectors() -> Iterator[Planned]:
    """CMP, and mechanisms whose rows of weights are built when words occur."""
    at = inputs.space()
    rows = {"at": at, "epsilon": ROW_EPSILON, "tokens": ROW_TOKENS, "words": ROW_WORDS}
    for name in ("santext", "tem"):
        beside = {"kind": "exponential, NumPy", **rows}
        yield Planned(f"{name}, with its rows", "tokens", {"kind": "replace", "name": name, **rows}, NUMPY, beside)
    cmp = {"kind": "replace", "at": at, "name": "cmp", "epsilon": EPSILON, "tokens": TOKENS, "words": inputs.WORDS}
    plain = {"kind": "cmp, NumPy", "at": at, "epsilon": EPSILON, "tokens": TOKENS}
    yield Planned(CMP, "tokens", cmp, NUMPY, plain)


def collocations() -> Iterator[Planned]:
    """Counting, and tokenizing by collocations of the same text."""
    first, counts = inputs.shards()[:1], str(inputs.work() / "bench-counts")
    count_corpus(inputs.shards()[:SHARDS_COUNTED], counts, Local(), CountOptions(3, 2))
    words, scored = inputs.words(first), str(inputs.work() / "bench-collocations")
    score_counts(counts, scored, Local())
    yield Planned(
        "count 1- to 3-grams", "words", {"kind": "count", "shards": first}, "collections.Counter",
        {"kind": "counter", "shards": first}, words,
    )  # fmt: skip
    yield Planned(
        "tokenize to collocations", "words", {"kind": "tokenize", "shards": first, "table": scored}, "plain copy",
        {"kind": "copy", "shards": first}, words,
    )  # fmt: skip


def at_large() -> Iterator[Planned]:
    """A space, two processes, a ledger."""
    vectors = inputs.vectors()
    yield Planned(
        "space: read, list, save", "words", {"kind": "space", "vectors": vectors}, "all products, float32 NumPy",
        {"kind": "products", "vectors": vectors},
    )  # fmt: skip
    shards = inputs.shards()[:SHARDS_OF_TWO]
    alone = {"kind": "privatize", "at": inputs.space(), "shards": shards}
    words = inputs.words(shards)
    yield Planned("2 local processes", "words", {**alone, "workers": 2}, "1 process", alone, words, clock="wall")
    masking = {"kind": "masking", "at": inputs.space()}
    plain = {"kind": "substituting"}
    yield Planned("masker, 100 words, 99th percentile", "texts", masking, "re.sub, any word", plain, clock="wall")
    passages: dict[str, Any] = {
        "pieces": 10 * TOKENS if inputs.SMALLEST else 100_000,
        "points": TOKENS,
        "neighbors": 30,
    }
    plain = {"kind": "nearest, NumPy", **passages}
    yield Planned("passages of 100,000", "pieces", {"kind": "passages", **passages}, NUMPY, plain)
    ledger = {"kind": "ledger", "documents": DOCUMENTS}
    yield Planned(
        "ledger: read, two verdicts", "documents", ledger, "sums by PyArrow", {**ledger, "kind": "grouped"}, DOCUMENTS
    )


GROUPS: tuple[Callable[[], Iterator[Planned]], ...] = (whole_jobs, on_vectors, collocations, at_large)


def table(run: Run) -> Table:
    """Return the table as docs/figures.md shows it."""
    made = Table(
        f"The short table: medians of {ROUNDS} runs, taking turns with the baseline; {run.data}",
        ("work", "a second", "baseline", "its time = 1", "runs"),
        load_before=run.load,
    )
    for row in run.rows:
        each = sorted(row.ratios())
        made.rows.append(
            (row.name, f"{show(1 / statistics.median(row.ours.each()))} {row.unit}", row.baseline.what,
             times(statistics.median(each)), f"{times(each[0])} to {times(each[-1])}")
        )  # fmt: skip
    made.notes.append(
        "Processor time of one thread; for 2 local processes, wall time, including the start of the second; for the "
        "masker, the wall time that 99 % of texts stay below. Otherwise the start of a process is not included."
    )
    made.notes += [f"Left out, {name}: {reason}" for name, reason in run.skipped.items()]
    made.notes.append(f"{run.machine}; {run.minutes:.0f} minutes; {run.when}.")
    return made


def times(ratio: float) -> str:
    """Return a ratio in readable form: 3.8, or 1/250."""
    return show(ratio) if ratio >= 0.1 else f"1/{show(round(1 / ratio))}"
