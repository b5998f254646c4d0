"""The short table: each row with its baseline, in turns, in ten minutes.

Work and baseline are separate processes (``benchmarks.job``) of one thread; start-up is not included.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks import inputs, job
from benchmarks.report import Table, show

ROUNDS = 1 if inputs.SMALLEST else 3
TOKENS = 64 if inputs.SMALLEST else 8_192
SHARDS_OF_TWO = 2 if inputs.SMALLEST else 4
EPSILON = 10.0
NUMPY = "float32 NumPy"


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
    clock: Literal["cpu", "wall"] = "cpu"


def run(_: Sequence[str] = ()) -> list[Table]:
    began = time.perf_counter()
    inputs.key()  # before two processes need one
    made = Table(
        f"The short table: medians of {ROUNDS} runs, taking turns with the baseline; {inputs.origin()}",
        ("work", "per second", "baseline", "time ÷ baseline's", "runs"),
    )
    for planned in (planned for group in GROUPS for planned in group()):
        try:
            made.rows.append(row(planned))
        except subprocess.CalledProcessError:
            made.notes.append(f"Left out, {planned.name}: its process failed; its last words are above.")
            continue
        print(f"{time.perf_counter() - began:4.0f} s  {planned.name}", file=sys.stderr, flush=True)
    made.notes.append(
        "Processor time of one thread; for 2 local processes, wall time, including the start of the second; for the "
        "masker, the wall time that 99 % of texts stay below. Otherwise the start of a process is not included."
    )
    return [made]


def row(planned: Planned) -> tuple[str, ...]:
    """Measure work and its baseline in turns, each in a separate process, and return the row of the table."""
    theirs, ours = (job.Started(**{"threads": 1, **work}) for work in (planned.beside, planned.ours))
    with theirs, ours:
        theirs.wait()
        ours.wait()
        rounds = [(theirs.turn(), ours.turn()) for _ in range(ROUNDS)]
    baseline, mine = (
        [turn[planned.clock] / turns[0].get("items", planned.items) for turn in turns]
        for turns in zip(*rounds, strict=True)
    )
    ratios = sorted(ours / theirs for theirs, ours in zip(baseline, mine, strict=True))
    return (
        planned.name, f"{show(1 / statistics.median(mine))} {planned.unit}", planned.baseline,
        times(statistics.median(ratios)), f"{times(ratios[0])} to {times(ratios[-1])}",
    )  # fmt: skip


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
    diffractor = {**ring, "mechanism": "diffractor-geometric"}
    yield Planned("diffractor-geometric, .json.gz", "words", diffractor, "ring-geometric", ring, words)


def on_vectors() -> Iterator[Planned]:
    """CMP, which is not drawn from a list."""
    at = inputs.space()
    cmp = {"kind": "replace", "at": at, "name": "cmp", "epsilon": EPSILON, "tokens": TOKENS, "words": inputs.WORDS}
    plain = {"kind": "cmp, NumPy", "at": at, "epsilon": EPSILON, "tokens": TOKENS}
    yield Planned("cmp, NumPy", "tokens", cmp, NUMPY, plain)


def collocations() -> Iterator[Planned]:
    """Counting."""
    first = inputs.shards()[:1]
    yield Planned(
        "count 1- to 3-grams", "words", {"kind": "count", "shards": first}, "collections.Counter",
        {"kind": "counter", "shards": first}, inputs.words(first),
    )  # fmt: skip


def at_large() -> Iterator[Planned]:
    """Two processes, a hook of logs, passages."""
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


GROUPS: tuple[Callable[[], Iterator[Planned]], ...] = (whole_jobs, on_vectors, collocations, at_large)


def times(ratio: float) -> str:
    """Return a ratio in readable form: 3.8, or 1/250."""
    return show(ratio) if ratio >= 0.1 else f"1/{show(round(1 / ratio))}"
