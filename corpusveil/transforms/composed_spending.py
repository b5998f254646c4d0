"""What documents have spent in (ε, δ), over releases: the largest of all, exactly composed within a metric.

It holds between documents in which each known word differs by a distance of at most 1, in every metric that spent.
Within a metric the tokens of all releases compose (``budget/composition.py``); of K metrics each gets δ/K, and their
ε's add up. An entry says how many tokens a document has, their largest epsilon and the sum: every token is taken to
have the largest, unless the sum bounds them better.

Few documents are composed at all. Bounds that cost nothing, the sum of epsilons and the zero-concentrated one, are
computed of all; then documents are composed in falling order of these, each history once, until no bound exceeds what
was found.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.budget.accounting import added
from corpusveil.budget.composition import concentrated, epsilon_at
from corpusveil.budget.privacy_loss import BoundedRange, PrivacyLoss, Pure
from corpusveil.errors import UnknownError
from corpusveil.mechanisms import registry

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

RANGED = 4.0
"""By how much less a token of bounded range costs, zero-concentrated (η²/8 for ε²/2)."""


@dataclass(frozen=True, slots=True)
class Composed:
    """The document that spent most: ``epsilon`` at ``delta``, in how many ``metrics``, and by each release alone.

    ``before`` are releases of the ledger, ``now`` is what is planned by itself; 0 where nothing is.
    """

    epsilon: float
    delta: float
    metrics: int
    before: Mapping[str, float]
    now: float


def is_ranged(mechanism: str) -> bool:
    """Say whether a mechanism's tokens are of bounded range at distance 1; an unknown one's are not."""
    try:
        return registry.find(mechanism).ranged
    except UnknownError:
        return False


def composed_epsilon(rows: Sequence[Mapping[str, Any]], delta: float) -> float:
    """Return the ε at δ of what one document spent: rows with ``metric``, ``mechanism`` and readings."""
    by_metric: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["tokens"] and row["total"]:
            by_metric[row["metric"]].append(row)
    return added(_in_metric(some, delta / len(by_metric)) for some in by_metric.values())


def _in_metric(rows: Sequence[Mapping[str, Any]], delta: float) -> float:
    pure = added(row["total"] for row in rows)
    if math.isinf(pure):
        return pure
    kinds = [BoundedRange if is_ranged(row["mechanism"]) else Pure for row in rows]
    counts: dict[PrivacyLoss, int] = defaultdict(int)
    for kind, row in zip(kinds, rows, strict=True):
        counts[kind(row["largest"])] += row["tokens"]
    rho = sum(
        row["total"] * row["largest"] / 2 / (RANGED if kind is BoundedRange else 1)
        for kind, row in zip(kinds, rows, strict=True)
    )
    return min(pure, epsilon_at(sorted(counts.items(), key=repr), delta), concentrated(rho, delta))


def largest_composed(rows: pa.Table, key: str, delta: float, above: float = 0.0) -> Composed | None:
    """Return the document of ``rows`` that spent most at δ; None where none spent more than ``above``.

    ``rows`` has a row for each noise and document: ``key``, ``release``, ``metric``, ``mechanism``, ``planned`` and
    readings.
    """
    rows = rows.combine_chunks()
    documents = np.asarray(pc.dictionary_encode(rows[key].chunk(0)).indices) if rows.num_rows else np.zeros(0, int)
    if not documents.size:
        return None
    bound = _bounds(rows, documents, delta)
    histories = _histories(rows, documents)
    best: tuple[float, int] | None = None
    seen: set[bytes] = set()
    order = np.argsort(documents, kind="stable")
    begins = np.searchsorted(documents[order], np.arange(bound.size + 1))
    candidates = np.flatnonzero(bound > above)
    for document in candidates[np.argsort(-bound[candidates], kind="stable")].tolist():
        if bound[document] <= (above if best is None else best[0]):
            break
        history = histories[document].tobytes()
        if history in seen:
            continue
        seen.add(history)
        epsilon = composed_epsilon(_rows_of(rows, order[begins[document] : begins[document + 1]]), delta)
        if epsilon > (above if best is None else best[0]):
            best = epsilon, document
    if best is None:
        return None
    found = _rows_of(rows, order[begins[best[1]] : begins[best[1] + 1]])
    names = sorted({row["release"] for row in found if not row["planned"]})
    before = {name: composed_epsilon([r for r in found if not r["planned"] and r["release"] == name], delta)
              for name in names}  # fmt: skip
    now = composed_epsilon([row for row in found if row["planned"]], delta)
    return Composed(best[0], delta, len({row["metric"] for row in found if row["total"]}), before, now)


def _rows_of(rows: pa.Table, at: Ints) -> list[dict[str, Any]]:
    taken: list[dict[str, Any]] = rows.take(pa.array(at)).to_pylist()
    return taken


def _codes(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Return the number of each value among the different ones, and these."""
    encoded = pc.dictionary_encode(column.combine_chunks())
    encoded = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
    return np.asarray(encoded.indices, dtype=np.int64), encoded.dictionary.to_pylist()


def _bounds(rows: pa.Table, documents: Ints, delta: float) -> Floats:
    """Return what no document's ε exceeds, without composing: the cheaper of two bounds in each metric, summed."""
    size = int(documents.max()) + 1
    metrics, names = _codes(rows["metric"])
    mechanisms, called = _codes(rows["mechanism"])
    less = np.array([RANGED if is_ranged(name) else 1.0 for name in called])[mechanisms]
    total, largest = rows["total"].to_numpy(), rows["largest"].to_numpy()
    spends = (total > 0).astype(np.int64)
    held = np.zeros((len(names), size), dtype=bool)
    held[metrics[spends > 0], documents[spends > 0]] = True
    count = held.sum(axis=0)
    out = np.zeros(size)
    rho = np.minimum(total * largest, np.finfo(float).max) / 2 / less
    for metric in range(len(names)):
        at = metrics == metric
        pure = np.bincount(documents[at], total[at], size)
        whole: Floats = np.bincount(documents[at], weights=rho[at], minlength=size).astype(np.float64)
        each = delta / np.maximum(count, 1)
        out += np.minimum(pure, _concentrated(whole, np.asarray(each, dtype=np.float64)))
    return out * (1 + 2.0**-30)


def _concentrated(rho: Floats, delta: Floats) -> Floats:
    """Return the zero-concentrated ε of many: ``ρ + 2 sqrt(ρ ln(1/δ))`` (Bun, Steinke 2016), never below the best."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = rho + 2 * np.sqrt(rho * np.log(1 / (delta * (1 - 1e-9))))
    return np.where(np.isnan(found), np.inf, found).astype(np.float64)


def _histories(rows: pa.Table, documents: Ints) -> npt.NDArray[np.uint64]:
    """Return 128 bits for each document that are equal where its rows are, in any order; uint64 [D, 2]."""
    size = int(documents.max()) + 1
    parts = [_codes(rows[name])[0].astype(np.uint64) for name in ("metric", "mechanism")]
    parts += [rows["tokens"].to_numpy().astype(np.uint64)]
    parts += [rows[name].to_numpy().view(np.uint64) for name in ("total", "largest")]
    out = np.zeros((size, 2), dtype=np.uint64)
    for half, start in enumerate((0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)):
        mixed = np.full(rows.num_rows, start, dtype=np.uint64)
        for part in parts:
            mixed = (mixed ^ part) * np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(29)
            mixed *= np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(32)
        np.add.at(out[:, half], documents, mixed)
    return out
