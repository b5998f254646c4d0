"""How often the best guess of a word is right, by the law of a mechanism on distances of vectors.

It takes all pairs of words, twice, in blocks. Distances come from matrix products instead of dimension by dimension,
and no row of integers is built:

    Z_w = sum_u c_u exp(-s d(w, u)),        V = sum_u c_u max_w (pi_w / Z_w) exp(-s d(w, u))

d is symmetric, so the first pass computes each pair once. The second pass takes words by falling pi / Z. A later word
never explains an earlier word better than that word explains itself, so blocks of only later words are left out.
Products are in float64, and nearly equal vectors are subtracted, so a share differs from that of the integers by less
than ``TOLERANCE`` of itself (a test compares them).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corpusveil.arrays import Float32, Float64, Int64
from corpusveil.compiled import njit
from corpusveil.mechanisms.exponential_rows import ExponentialRows
from corpusveil.mechanisms.vector_blocks import exponential
from corpusveil.sampling import weights

TOLERANCE = 1e-6
"""The largest relative error by which a share may be too small."""
TILE = 1024
NEAR = 1e-6
"""Squared distances below this part of the largest squared length are computed by subtraction."""
_LOWEST = -46.0
_FLOOR = weights.FLOOR / weights.TOTAL


class _Squares:
    """Squared distances of words, in tiles: of vectors float32 [V, d] in some order."""

    def __init__(self, vectors: Float32, order: Int64) -> None:
        self.points = vectors[order].astype(np.float64)
        self.points -= self.points.mean(axis=0)
        self.lengths = (self.points**2).sum(axis=1)
        self.near = NEAR * float(self.lengths.max())

    def tile(self, rows: slice, columns: slice) -> Float64:
        """Return the squared distances of two ranges of words, float64 [R, C]."""
        out: Float64 = self.points[rows] @ self.points[columns].T
        out *= -2.0
        out += self.lengths[rows, None]
        out += self.lengths[columns]
        for row, column in np.argwhere(out < self.near).tolist():
            gap = self.points[rows.start + row] - self.points[columns.start + column]
            out[row, column] = gap @ gap
        return out


def guessed_by_distances(rows: ExponentialRows, words: Int64, shares: Float64) -> tuple[Float64, Float64]:
    """Return how often the best guess from each output is right, and how often each input stays, by ``rows``.

    ``words`` int64 [N] are the possible inputs, and ``shares`` float64 [m, N] their public probabilities or weights,
    for each of m readers; the results are float64 [m, V] and [N].
    """
    size, s = rows.blocks.words, rows.s
    factors = rows.factors.reshape(-1)[:size]
    room = 1.0 - size * _FLOOR
    normalizers = _normalizers(_Squares(rows.blocks.vectors, np.arange(size)), rows, factors)
    right = np.empty((len(shares), size))
    for reader, own in enumerate(shares):
        some = own > 0
        logs = np.full(size, -np.inf)
        logs[words[some]] = np.log(own[some] * room / normalizers[words[some]])
        order = np.argsort(-logs, kind="stable")
        best = _best(_Squares(rows.blocks.vectors, order), logs[order], s, rows.gamma, rows.squared)
        right[reader, order] = factors[order] * np.exp(best) + _FLOOR * own.max()
    return right, factors[words] * room / normalizers[words] + _FLOOR


def _tiles(size: int) -> list[slice]:
    return [slice(first, min(first + TILE, size)) for first in range(0, size, TILE)]


def _normalizers(squares: _Squares, rows: ExponentialRows, factors: Float64) -> Float64:
    """Return Z of every word, float64 [V]."""
    out = np.zeros(factors.size)
    for here in _tiles(factors.size):
        for there in _tiles(factors.size):
            if there.start >= here.start:
                tile = squares.tile(here, there)
                both = there.start > here.start
                _add(tile, rows.s, rows.gamma, rows.squared, both, factors[here], factors[there], out[here], out[there])
    return out


def _best(squares: _Squares, logs: Float64, s: float, gamma: float, squared: bool) -> Float64:
    """Return ``max_w logs_w - s min(d(w, u), gamma)`` of every word u, float64 [V]; ``logs`` fall."""
    best = logs.copy()
    for there in _tiles(logs.size):
        for here in _tiles(logs.size):
            if logs[here.start] <= best[there].min():
                break
            _raise(squares.tile(here, there), s, gamma, squared, logs[here], best[there])
    return best


@njit()
def _add(
    tile: Any, s: float, gamma: float, squared: bool, both: bool, factors: Any, others: Any, sums: Any, across: Any
) -> None:
    """Add the kernel values of a tile to the sums of its rows and, where it has ``both``, of its columns."""
    values = np.empty(tile.shape[1])
    for row in range(tile.shape[0]):
        for column in range(tile.shape[1]):
            distance = tile[row, column] if squared else math.sqrt(tile[row, column])
            exponent = -s * (distance if distance < gamma else gamma)  # noqa: FURB136 - min() is no vector code
            values[column] = exponential(exponent if exponent > _LOWEST else _LOWEST)  # noqa: FURB136
        if both:
            for column in range(tile.shape[1]):
                across[column] += factors[row] * values[column]
        total = 0.0
        for column in range(tile.shape[1]):
            total += others[column] * values[column]
        sums[row] += total


@njit()
def _raise(tile: Any, s: float, gamma: float, squared: bool, logs: Any, best: Any) -> None:
    """Update the best explanation of a tile's columns, if a row explains them better."""
    for row in range(tile.shape[0]):
        for column in range(tile.shape[1]):
            distance = tile[row, column] if squared else math.sqrt(tile[row, column])
            value = logs[row] - s * (distance if distance < gamma else gamma)  # noqa: FURB136
            best[column] = value if value > best[column] else best[column]  # noqa: FURB136
