"""The spending of the documents in one bucket: the largest sums, the most in (ε, δ), and their number.

A bucket is a table of the rows of entries, grouped by one key (``content`` or ``identity``), with all rows of each of
its documents. Columns: ``key`` and ``noise`` (fingerprints), ``told`` (int32: of which release and metric), ``line``
(int32: of which line of a listing), ``planned`` (bool), and the readings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.budget.accounting import added_times
from corpusveil.storage.ledger import FINGERPRINT, READINGS
from corpusveil.transforms.composed_spending import Composed, Told, largest_composed

KEYS = ("content", "identity")
NUMBERS = ("tokens", *READINGS)
SPREAD = pa.schema(
    [
        ("key", FINGERPRINT),
        ("noise", FINGERPRINT),
        ("told", pa.int32()),
        ("line", pa.int32()),
        ("planned", pa.bool_()),
        ("tokens", pa.int64()),
        *((name, pa.float64()) for name in READINGS),
    ]
)
"""The columns of a bucket's rows."""
_NEAR = 1000


@dataclass(frozen=True, slots=True)
class Question:
    """A question about all documents.

    ``readings`` are those whose largest sums are wanted. With ``delta``, the most in (ε, δ) ``above`` a value is
    wanted, too. ``planned`` restricts the question to planned documents. ``lines`` asks for the size of each line of a
    listing.
    """

    readings: tuple[str, ...] = ()
    delta: float | None = None
    above: float = 0.0
    planned: bool = False
    lines: bool = False


@dataclass(frozen=True, slots=True)
class Spent:
    """The most that any document has spent: by reading (in its metric, "" for plain LDP), and in which releases.

    ``before`` is what releases spent by noise that is not planned, ``now`` what the planned noise spends. ``document``
    is its fingerprint.
    """

    reading: str
    metric: str
    value: float
    before: dict[str, float]
    now: float
    document: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """The documents (noise and identity) of a line of a listing: their number, tokens and largest readings."""

    documents: int = 0
    tokens: int = 0
    largest: tuple[float, ...] = (0.0,) * len(READINGS)

    def __add__(self, other: Line) -> Line:
        """Return the line of both."""
        largest = tuple(map(max, self.largest, other.largest))
        return Line(self.documents + other.documents, self.tokens + other.tokens, largest)


@dataclass(slots=True)
class Answer:
    """The answer: the largest sums by key, reading and metric, the most in (ε, δ), and the lines."""

    spent: dict[tuple[str, str, str], Spent] = field(default_factory=dict)
    composed: Composed | None = None
    lines: dict[int, Line] = field(default_factory=dict)

    def in_order(self) -> list[Spent]:
        """Return the largest sums: by content first, each metric's readings in their order."""
        places = sorted(self.spent, key=lambda at: (KEYS.index(at[0]), READINGS.index(at[1]), at[2]))
        return [self.spent[place] for place in places]

    def add(self, other: Answer) -> None:
        """Add the answer of a later bucket."""
        for place, one in other.spent.items():
            mine = self.spent.get(place)
            if mine is None or (one.value, one.document) > (mine.value, mine.document):
                self.spent[place] = one
        if other.composed is not None and (self.composed is None or other.composed.epsilon > self.composed.epsilon):
            self.composed = other.composed
        for number, line in other.lines.items():
            self.lines[number] = self.lines.get(number, Line()) + line


def of_planned(rows: pa.Table, wanted: pa.Array) -> pa.Table:
    """Return the rows of the documents that are ``wanted``."""
    return rows.filter(pc.is_in(rows["key"], value_set=wanted))


def distinct(rows: pa.Table) -> pa.Table:
    """Return one row for each noise and document: equal noise within a release was spent once."""
    kinds = [(name, "max") for name in (*NUMBERS, "planned")]
    found = rows.group_by(["told", "noise", "key"], use_threads=False).aggregate(kinds)
    return found.rename_columns([name.removesuffix("_max") for name in found.column_names])


def once(rows: pa.Table) -> pa.Table:
    """Return distinct rows, one for each noise."""
    return rows.append_column("times", pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))


def alike(rows: pa.Table) -> pa.Table:
    """Return rows with their ``times``, after merging rows that differ only in their noise."""
    names = ["key", "told", "planned", *NUMBERS]
    found = rows.group_by(names, use_threads=False).aggregate([("times", "sum")])
    return found.rename_columns([*names, "times"])


def lines_of(rows: pa.Table) -> dict[int, Line]:
    """Return the lines of a listing for rows grouped by identity."""
    kinds = [(name, "max") for name in NUMBERS]
    each = rows.group_by(["line", "noise", "key"], use_threads=False).aggregate(kinds)
    sums = [("tokens_max", "sum"), ("tokens_max", "count"), *((f"{name}_max", "max") for name in READINGS)]
    return {
        one["line"]: Line(
            one["tokens_max_count"], one["tokens_max_sum"], tuple(one[f"{name}_max_max"] for name in READINGS)
        )
        for one in each.group_by("line", use_threads=False).aggregate(sums).to_pylist()
    }


def answered(rows: pa.Table, key: str, question: Question, tolds: Sequence[Told]) -> Answer:
    """Return the answer of a bucket's distinct rows, with their ``times``, to the question, without lines."""
    answer = Answer()
    metrics = np.array([told.metric for told in tolds])[rows["told"].to_numpy()]
    for reading in question.readings:
        for metric in [""] if reading == "ldp" else sorted(set(metrics.tolist())):
            part = rows if reading == "ldp" else rows.filter(pa.array(metrics == metric))
            if part.num_rows:
                answer.spent[key, reading, metric] = _largest(part, tolds, reading, metric)
    if question.delta is not None:
        answer.composed = largest_composed(rows, tolds, question.delta, question.above)
    return answer


def _largest(rows: pa.Table, tolds: Sequence[Told], reading: str, metric: str) -> Spent:
    weighed = rows.append_column("spent", pc.multiply(rows[reading], rows["times"].cast(pa.float64())))
    sums = weighed.group_by("key", use_threads=False).aggregate([("spent", "sum")])
    values = sums["spent_sum"].to_numpy()
    near = np.flatnonzero(values >= values.max() * (1 - 1e-9))
    near = near[np.argsort(-values[near], kind="stable")][:_NEAR]
    found = rows.filter(pc.is_in(rows["key"], value_set=sums["key"].take(pa.array(near)).combine_chunks()))
    by_document: dict[bytes, dict[tuple[bool, str], list[tuple[float, int]]]] = defaultdict(lambda: defaultdict(list))
    for one in found.select(["key", "planned", "told", reading, "times"]).to_pylist():
        by_document[one["key"]][one["planned"], tolds[one["told"]].release].append((one[reading], one["times"]))
    histories = {
        document: tuple(sorted(value for values in spent.values() for value in values))
        for document, spent in by_document.items()
    }
    sums_of = {history: added_times(history) for history in set(histories.values())}
    exact = {document: sums_of[history] for document, history in histories.items()}
    document = max(exact, key=lambda one: (exact[one], one))
    spent = by_document[document]
    before = {release: added_times(values) for (is_planned, release), values in spent.items() if not is_planned}
    now = added_times(value for (is_planned, _), values in spent.items() if is_planned for value in values)
    return Spent(reading, metric, exact[document], before, now, document.hex())


def as_text(answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON takes it, its numbers exact."""
    return {
        "spent": [
            [*place, one.value.hex(), {name: value.hex() for name, value in one.before.items()}, one.now.hex(),
             one.document]
            for place, one in answer.spent.items()
        ],
        "composed": None if answer.composed is None else _composed_text(answer.composed),
        "lines": [
            [number, line.documents, line.tokens, [value.hex() for value in line.largest]]
            for number, line in answer.lines.items()
        ],
    }  # fmt: skip


def _composed_text(one: Composed) -> list[Any]:
    before = {name: value.hex() for name, value in one.before.items()}
    return [float(one.epsilon).hex(), float(one.delta).hex(), one.metrics, before, float(one.now).hex()]


def from_text(told: dict[str, Any]) -> Answer:
    """Return the answer that ``as_text`` wrote."""
    number = float.fromhex
    answer = Answer()
    for key, reading, metric, value, before, now, document in told["spent"]:
        spent = {name: number(one) for name, one in before.items()}
        answer.spent[key, reading, metric] = Spent(reading, metric, number(value), spent, number(now), document)
    if told["composed"] is not None:
        epsilon, delta, metrics, before, now = told["composed"]
        spent = {name: number(one) for name, one in before.items()}
        answer.composed = Composed(number(epsilon), number(delta), metrics, spent, number(now))
    for line, documents, tokens, largest in told["lines"]:
        answer.lines[line] = Line(documents, tokens, tuple(map(number, largest)))
    return answer
