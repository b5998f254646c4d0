"""Loops of the search for the nearest words: nominate words from a tile of products, and choose the nearest."""

from __future__ import annotations

from typing import Any

import numpy as np

from corpusveil.compiled import njit
from corpusveil.spaces.byte_products import COLUMNS, ROWS, SHIFT, multiply

LANES = 64
UNDECIDED = -1


@njit(cache=True)
def squared_norms(vectors: Any, out: Any) -> None:
    """Write the squared norms of vectors; float32 [V, d], float64 [V]."""
    for v in range(vectors.shape[0]):
        total = 0.0
        for j in range(vectors.shape[1]):
            total += np.float64(vectors[v, j]) * np.float64(vectors[v, j])
        out[v] = total


@njit(nogil=True, cache=True)
def offer(
    tile: Any,
    norms: Any,
    factors: Any,
    steps: Any,
    scales: Any,
    first: int,
    slack: Any,
    least: Any,
    keys: Any,
    rows: Any,
    counts: Any,
    low: int,
    high: int,
) -> None:
    """Keep, for each row, the words whose key is within ``slack`` of the k-th least so far; ``least`` float32 [T, k].

    A key is ``factors norms - steps scales tile``, the steps by row, the scales by column. Columns are processed in
    ``LANES`` interleaved groups: the least key of each group takes one vector instruction for many columns, and few
    groups need a second pass. The k least of the groups' least keys bound the k least keys from above.
    """
    columns = tile.shape[1]
    groups = columns // LANES * LANES
    minima = np.empty(LANES, np.float32)
    for r in range(low, high):
        factor = factors[r]
        step = steps[r]
        minima[:] = np.inf
        for start in range(0, groups, LANES):
            for lane in range(LANES):
                key = factor * norms[start + lane] - step * scales[start + lane] * np.float32(tile[r, start + lane])
                kept = minima[lane]
                minima[lane] = key if key < kept else kept  # noqa: FURB136 - min() does not compile to vectors
        last = least.shape[1] - 1
        for lane in range(LANES):
            _lower(least[r], minima[lane])
        for j in range(groups, columns):
            _lower(least[r], factor * norms[j] - step * scales[j] * np.float32(tile[r, j]))
        for lane in range(LANES):
            if minima[lane] <= least[r, last] + slack[r]:
                _keep(
                    tile[r],
                    norms,
                    scales,
                    factor,
                    step,
                    first,
                    lane,
                    groups,
                    LANES,
                    slack,
                    least,
                    keys,
                    rows,
                    counts,
                    r,
                )
        _keep(tile[r], norms, scales, factor, step, first, groups, columns, 1, slack, least, keys, rows, counts, r)


@njit(nogil=True, cache=True)
def offer_packed(
    left: Any,
    sums: Any,
    panels: Any,
    norms: Any,
    factors: Any,
    steps: Any,
    scales: Any,
    slack: Any,
    least: Any,
    keys: Any,
    rows: Any,
    counts: Any,
    low: int,
    high: int,
) -> None:
    """Do the work of ``offer`` for all words, with integer products that never leave the cache.

    ``left`` int8 [T, d'] are the points, ``sums`` int32 [T] the sums of their values, ``panels`` the words
    (``byte_products.pack_all``); the rest is as in ``offer``.
    """
    last = least.shape[1] - 1
    products = np.empty((ROWS, COLUMNS), np.int32)
    line = np.empty(COLUMNS, np.int32)
    close = np.zeros(COLUMNS, np.uint8)
    groups = close.view(np.uint64)
    norm, scale = np.zeros(COLUMNS, np.float32), np.zeros(COLUMNS, np.float32)
    for number in range(len(panels)):
        first = COLUMNS * number
        width = min(COLUMNS, len(norms) - first)
        for c in range(width):
            norm[c], scale[c] = norms[first + c], scales[first + c]
        for top in range(low, high, ROWS):
            multiply(left, top, high, panels[number], products)
            for r in range(min(ROWS, high - top)):
                i = top + r
                factor, step = factors[i], steps[i]
                bar = least[i, last] + slack[i]
                shift = np.int32(SHIFT) * sums[i]
                for c in range(COLUMNS):
                    line[c] = products[r, c] - shift
                    close[c] = factor * norm[c] - step * scale[c] * np.float32(line[c]) <= bar
                for group in range(len(groups)):
                    if not groups[group]:
                        continue
                    stop = min(8 * group + 8, width)
                    for c in range(8 * group, stop):
                        if close[c]:
                            _lower(least[i], factor * norm[c] - step * scale[c] * np.float32(line[c]))
                    _keep(
                        line, norm, scale, factor, step, first, 8 * group, stop, 1, slack, least, keys, rows, counts, i
                    )


@njit(nogil=True, cache=True)
def _lower(least: Any, key: Any) -> None:
    """Enter a key among the least, which ascend."""
    last = least.size - 1
    if key >= least[last]:
        return
    at = last
    while at > 0 and least[at - 1] > key:
        least[at] = least[at - 1]
        at -= 1
    least[at] = key


@njit(nogil=True, cache=True)
def _keep(
    products: Any,
    norms: Any,
    scales: Any,
    factor: Any,
    step: Any,
    first: int,
    start: int,
    stop: int,
    stride: int,
    slack: Any,
    least: Any,
    keys: Any,
    rows: Any,
    counts: Any,
    r: int,
) -> None:
    """Enter those columns ``start, start + stride, ..`` among row r's candidates that are within the limit."""
    room = keys.shape[1]
    limit = least[r, least.shape[1] - 1] + slack[r]
    for j in range(start, stop, stride):
        key = factor * norms[j] - step * scales[j] * np.float32(products[j])
        if key <= limit and counts[r] <= room:
            if counts[r] == room:
                counts[r] = _compact(keys[r], rows[r], room, limit)
            if counts[r] < room:
                keys[r, counts[r]] = key
                rows[r, counts[r]] = first + j
            counts[r] += 1


@njit(nogil=True, cache=True)
def _compact(keys: Any, rows: Any, count: int, limit: Any) -> int:
    """Move the candidates within the limit to the front; return their number."""
    kept = 0
    for i in range(count):
        if keys[i] <= limit:
            keys[kept] = keys[i]
            rows[kept] = rows[i]
            kept += 1
    return kept


@njit(nogil=True, cache=True)
def _rank(vectors: Any, v: int, point: Any) -> float:
    """Return the deciding rank, summed dimension by dimension."""
    total = 0.0
    for j in range(point.size):
        value = np.float64(vectors[v, j])
        total += value * (value - 2 * point[j])
    return total


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _quick_rank(vectors: Any, v: int, point: Any) -> float:
    """Return the rank as any order of summation gives it: several times as fast."""
    total = 0.0
    for j in range(point.size):
        value = np.float64(vectors[v, j])
        total += value * (value - 2 * point[j])
    return total


@njit(nogil=True, cache=True)
def decide(
    vectors: Any,
    points: Any,
    doubts: Any,
    slack: Any,
    least: Any,
    keys: Any,
    rows: Any,
    counts: Any,
    all_words: bool,
    out: Any,
    compared: Any,
    low: int,
    high: int,
) -> None:
    """Choose among the candidates of each row by rank in float64, then by id; ``out`` int32 [T, k].

    Quickly summed ranks differ from the deciding ranks by less than half of ``doubts``, float64 [T]; only words within
    this of the k-th least are ranked again. ``compared`` counts them, 0 if nothing was in doubt. If there were too many
    candidates, ``all_words`` are ranked, or ``compared`` becomes ``UNDECIDED``.
    """
    room = keys.shape[1]
    wanted = out.shape[1]
    best = np.empty(wanted)
    quick = np.empty(vectors.shape[0] if all_words else room)
    for r in range(low, high):
        every = counts[r] > room
        if every and not all_words:
            compared[r] = UNDECIDED
            continue
        many = vectors.shape[0] if every else _compact(keys[r], rows[r], counts[r], least[r, wanted - 1] + slack[r])
        compared[r] = 0
        if not every and many == 1:
            out[r, 0] = rows[r, 0]
            continue
        best[:] = np.inf
        for i in range(many):
            quick[i] = _quick_rank(vectors, i if every else rows[r, i], points[r])
            _lower(best, quick[i])
        limit = best[wanted - 1] + doubts[r]
        found = 0
        for i in range(many):
            if quick[i] > limit:
                continue
            v = i if every else rows[r, i]
            rank = _rank(vectors, v, points[r])
            compared[r] += 1
            at = found
            while at > 0 and (rank < best[at - 1] or (rank == best[at - 1] and v < out[r, at - 1])):
                if at < wanted:
                    best[at] = best[at - 1]
                    out[r, at] = out[r, at - 1]
                at -= 1
            if at < wanted:
                best[at] = rank
                out[r, at] = v
                found = min(found + 1, wanted)
