"""The distance from a word at which another word becomes nearer, for estimates of the share of unchanged words.

From word w in direction v (a unit vector) the word u becomes the nearer one at ``|u - w|^2 / (2 <v, u - w>)``, where
that is positive. Cells are convex, so w stays the nearest up to the smallest of these, its *exit*, and with noise ``R
v`` it stays unchanged with probability ``E_v[F(exit)]``, F the law of R (``mechanisms.md`` §7).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from corpusveil.arrays import Float64, Int64
from corpusveil.compiled import njit
from corpusveil.spaces.nearest_words import TILE_COLUMNS, in_slices, search_of
from corpusveil.spaces.space import Space

RAYS = 1024
NEAR = 2.0**-10
"""As a share of the sum of two squared norms: smaller squared distances are computed in float64, not from products."""


@functools.lru_cache(maxsize=4)
def exits(space: Space, stretch: bytes = b"") -> Float64:
    """Return the exit along one direction from each of 1,024 words; float64 [1024], infinite without an exit.

    Directions are multiplied by ``stretch``, the bytes of a matrix float64 [d, d], if given; the exit is in units of
    the stretched directions.

    Words are drawn without repetition if there are enough, directions uniformly, both from a fixed public seed. The
    distances come from float32 products: about five digits.
    """
    rng = np.random.default_rng(0)
    size = len(space)
    words = np.concatenate([rng.permutation(size) for _ in range(-(-RAYS // size))])[:RAYS].astype(np.int64)
    directions = rng.standard_normal((RAYS, space.dimensions))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    if stretch:
        directions = directions @ np.frombuffer(stretch).reshape(space.dimensions, space.dimensions).T
    return walk(space, words, directions)


def walk(space: Space, words: Int64, directions: Float64) -> Float64:
    """Return the exit from each word in its direction; int64 [R], float64 [R, d] -> float64 [R]."""
    scale = np.ldexp(1.0, -search_of(space).exponent)
    starts = (space.vectors[words] * scale).astype(np.float32)
    rays = directions.astype(np.float32)
    along = np.einsum("rd,rd->r", rays, starts)
    rates = np.zeros(len(words))
    for first in range(0, len(space), TILE_COLUMNS):
        ends = space.vectors[first : first + TILE_COLUMNS] * np.float32(scale)
        norms = np.einsum("vd,vd->v", ends, ends)
        own = np.einsum("rd,rd->r", starts, starts)
        in_slices(
            len(words), _rates, rays @ ends.T, starts @ ends.T, along, own, norms, words, first, starts, ends,
            directions, rates,
        )  # fmt: skip
    out = np.full(len(words), np.inf)
    np.divide(1, rates * scale, out=out, where=rates > 0)
    return out


@njit(nogil=True, cache=True)
def _rates(
    ahead: Any,
    products: Any,
    along: Any,
    own: Any,
    norms: Any,
    words: Any,
    first: int,
    starts: Any,
    ends: Any,
    directions: Any,
    rates: Any,
    low: int,
    high: int,
) -> None:
    """Raise each row's rate, the largest ``2 <v, u - w> / |u - w|^2``, by one tile of words u."""
    for r in range(low, high):
        for u in range(norms.size):
            if first + u == words[r]:
                continue
            gain: Any = np.float64(ahead[r, u] - along[r])
            both = np.float64(own[r] + norms[u])
            squared: Any = both - 2.0 * products[r, u]
            if squared < NEAR * both:
                gain = 0.0
                squared = 0.0
                for j in range(ends.shape[1]):
                    gap = np.float64(ends[u, j]) - np.float64(starts[r, j])
                    squared += gap * gap
                    gain += directions[r, j] * gap
                if squared == 0.0:  # the same vector twice: the lower id is the nearest
                    if first + u < words[r]:
                        rates[r] = np.inf
                    continue
            if gain > 0.0 and 2.0 * gain > rates[r] * squared:
                rates[r] = 2.0 * gain / squared
