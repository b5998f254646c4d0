"""What documents have spent in (ε, δ), over releases: the largest of all, exactly composed within a metric.

It holds between documents in which each known word differs by a distance of at most 1, in every metric that spent.
Within a metric the tokens of all releases compose (``budget/composition.py``); of K metrics each gets δ/K, and their
ε's add up. An entry says how many tokens a document has, their largest epsilon and the sum: every token is assumed to
have the largest, unless the sum gives a better bound. Where a length was released with noise, its ε is in the sum, and
composes as one more part.

Few documents are composed. Cheap bounds, the sum of epsilons and the zero-concentrated bound, are computed for all;
then documents are composed in falling order of these bounds, each history once, until no bound exceeds the largest
result.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.budget.accounting import added, added_times
from corpusveil.budget.composition import SMALLEST_DELTA, concentrated, epsilon_at
from corpusveil.budget.privacy_loss import BoundedRange, PrivacyLoss, Pure
from corpusveil.errors import UnknownError
from corpusveil.mechanisms import registry

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

RANGED = 4.0
"""The factor by which a token of bounded range costs less, zero-concentrated (η²/8 for ε²/2)."""


class Told(NamedTuple):
    """The release of a row of a ledger, and the cost of its documents' lengths, which their totals include."""

    release: str
    metric: str
    mechanism: str
    length_epsilon: float = 0.0


@dataclass(frozen=True, slots=True)
class Composed:
    """The document that spent most: ``epsilon`` at ``delta``, in how many ``metrics``, and by each release alone.

    ``before`` are releases of the ledger; ``now`` is the planned release alone, 0 without one.
    """

    epsilon: float
    delta: float
    metrics: int
    before: Mapping[str, float]
    now: float


def is_ranged(mechanism: str) -> bool:
    """Say whether a mechanism's tokens have bounded range at distance 1; those of an unknown mechanism do not."""
    try:
        return registry.find(mechanism).ranged
    except UnknownError:
        return False


def composed_epsilon(rows: Sequence[Mapping[str, Any]], delta: float) -> float:
    """Return the ε at δ of what one document spent: rows with ``metric``, ``mechanism`` and readings.

    A row with ``times`` represents this many equal rows.
    """
    by_metric: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["total"]:
            by_metric[row["metric"]].append(row)
    return added(_in_metric(some, delta / len(by_metric)) for some in by_metric.values())


def _in_metric(rows: Sequence[Mapping[str, Any]], delta: float) -> float:
    pure = added_times((row["total"], row.get("times", 1)) for row in rows)
    if math.isinf(pure) or delta < SMALLEST_DELTA:  # a share of delta may be too small for composition
        return pure
    kinds = [BoundedRange if is_ranged(row["mechanism"]) else Pure for row in rows]
    counts: dict[PrivacyLoss, int] = defaultdict(int)
    rho = 0.0
    for kind, row in zip(kinds, rows, strict=True):
        count, of_length = row.get("times", 1), row.get("length_epsilon", 0.0)
        counts[kind(row["largest"])] += row["tokens"] * count
        if of_length:
            counts[Pure(of_length)] += count
        ranged = RANGED if kind is BoundedRange else 1.0
        rho += count * ((row["total"] - of_length) * row["largest"] / ranged + of_length**2) / 2
    return min(pure, epsilon_at(sorted(counts.items(), key=repr), delta), concentrated(rho, delta))


def largest_composed(rows: pa.Table, tolds: Sequence[Told], delta: float, above: float = 0.0) -> Composed | None:
    """Return the document of ``rows`` that spent most at δ; None where none spent more than ``above``.

    ``rows`` has a row for each noise and document: ``key``, ``told`` (its place in ``tolds``), ``planned``, readings,
    and ``times``, the number of noises that the row represents.
    """
    if not rows.num_rows:
        return None
    rows = rows.combine_chunks()
    documents = np.asarray(pc.dictionary_encode(rows["key"].combine_chunks()).indices, dtype=np.int64)
    metrics, names = _of_rows(rows, [told.metric for told in tolds])
    ranged = np.array([is_ranged(told.mechanism) for told in tolds])[rows["told"].to_numpy()]
    of_length = np.array([told.length_epsilon for told in tolds])[rows["told"].to_numpy()]
    bound = _bounds(rows, documents, (metrics, len(names)), ranged, of_length, delta)
    histories = _histories(rows, documents, metrics, ranged, of_length)
    order = np.argsort(documents, kind="stable")
    begins = np.searchsorted(documents[order], np.arange(bound.size + 1))

    def rows_of(document: int) -> list[dict[str, Any]]:
        found = rows.take(pa.array(order[begins[document] : begins[document + 1]])).to_pylist()
        return [{**row, **tolds[row["told"]]._asdict()} for row in found]

    best, worst = above, -1
    seen: set[bytes] = set()
    candidates = np.flatnonzero(bound > above)
    for document in candidates[np.argsort(-bound[candidates], kind="stable")].tolist():
        if bound[document] <= best:
            break
        history = histories[document].tobytes()
        if history not in seen:
            seen.add(history)
            epsilon = composed_epsilon(rows_of(document), delta)
            best, worst = (epsilon, document) if epsilon > best else (best, worst)
    if worst < 0:
        return None
    found = rows_of(worst)
    before = {
        name: composed_epsilon([row for row in found if row["release"] == name and not row["planned"]], delta)
        for name in sorted({row["release"] for row in found if not row["planned"]})
    }
    now = composed_epsilon([row for row in found if row["planned"]], delta)
    return Composed(best, delta, len({row["metric"] for row in found if row["total"]}), before, now)


def _of_rows(rows: pa.Table, names: Sequence[str]) -> tuple[Ints, list[str]]:
    """Return for each row the number of its release's name among the different ones, and these."""
    different, which = np.unique(np.array(names), return_inverse=True)
    return which[rows["told"].to_numpy()].astype(np.int64), different.tolist()


def _bounds(
    rows: pa.Table,
    documents: Ints,
    metrics: tuple[Ints, int],
    ranged: npt.NDArray[np.bool_],
    of_length: Floats,
    delta: float,
) -> Floats:
    """Return upper bounds of documents' ε without composing: the smaller of two bounds in each metric, summed."""
    size = int(documents.max()) + 1
    metric_of, count_of_metrics = metrics
    times, largest = rows["times"].to_numpy(), rows["largest"].to_numpy()
    total = rows["total"].to_numpy() * times
    words = np.minimum((total - of_length * times) * largest, np.finfo(float).max)
    rho = words / 2 / np.where(ranged, RANGED, 1.0) + times * of_length**2 / 2
    held = np.zeros((count_of_metrics, size), dtype=bool)
    held[metric_of[total > 0], documents[total > 0]] = True
    each: Floats = (delta / np.maximum(held.sum(axis=0), 1)).astype(np.float64)
    out = np.zeros(size)
    for metric in range(count_of_metrics):
        at = metric_of == metric
        pure = np.bincount(documents[at], weights=total[at], minlength=size)
        whole: Floats = np.bincount(documents[at], weights=rho[at], minlength=size).astype(np.float64)
        out += np.minimum(pure, _concentrated(whole, each))
    return out * (1 + 2.0**-30)


def _concentrated(rho: Floats, delta: Floats) -> Floats:
    """Return the zero-concentrated ε of many: ``ρ + 2 sqrt(ρ ln(1/δ))`` (Bun, Steinke 2016), never below the best."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = rho + 2 * np.sqrt(rho * np.log(1 / (delta * (1 - 1e-9))))
    return np.where(np.isnan(found), np.inf, found).astype(np.float64)


def _histories(
    rows: pa.Table, documents: Ints, metrics: Ints, ranged: npt.NDArray[np.bool_], of_length: Floats
) -> npt.NDArray[np.uint64]:
    """Return 128 bits for each document that are equal where its rows are, in any order; uint64 [D, 2]."""
    out = np.zeros((int(documents.max()) + 1, 2), dtype=np.uint64)
    parts = [
        metrics.astype(np.uint64),
        ranged.astype(np.uint64),
        *(rows[name].to_numpy().astype(np.uint64) for name in ("tokens", "times")),
    ]
    parts += [np.ascontiguousarray(rows[name].to_numpy()).view(np.uint64) for name in ("total", "largest")]
    parts += [of_length.view(np.uint64)] if of_length.any() else []
    for half, start in enumerate((0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)):
        mixed = np.full(rows.num_rows, start, dtype=np.uint64)
        for part in parts:
            mixed = (mixed ^ part) * np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(29)
            mixed *= np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(32)
        np.add.at(out[:, half], documents, mixed)
    return out
