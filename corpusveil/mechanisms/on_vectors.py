"""The common part of the mechanisms that add noise to a vector: blocks of tokens, the floor, and their guarantees.

Noise is added to a word's vector, and the output is a function of the noisy vector and the public vectors only. With n
words and probability ``n 2^-44``, the output is a uniformly drawn word instead, whatever the input is. That costs no
epsilon, and it gives every word a probability of at least 2^-44 at every epsilon, as the integer weights of the other
mechanisms do: no log-ratio is above ``44 ln 2 = 30.5`` nats.

The share of unchanged words is estimated. From word w in direction v (a unit vector) the word u becomes the nearer one
at ``|u - w|^2 / (2 <v, u - w>)``, where that is positive. Cells are convex, so w stays the nearest up to the smallest
of these, its *exit*, and with noise ``R v`` it stays unchanged with probability ``E_v[F(exit)]``, F the law of R
(``mechanisms.md`` §7).
"""

from __future__ import annotations

import abc
import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from corpusveil.arrays import Float64, Int32, Integers
from corpusveil.compiled import njit
from corpusveil.errors import NoClosedForm
from corpusveil.mechanisms.base import by_epsilon
from corpusveil.mechanisms.distances import OverVectors
from corpusveil.sampling.draws import MECHANISM, Draws
from corpusveil.sampling.weights import FLOOR, TOTAL, check_epsilon
from corpusveil.search.nearest_words import TILE_COLUMNS, TILE_ROWS, NearestSearch
from corpusveil.search.slices import in_slices
from corpusveil.spaces import Space

BLOCK = TILE_ROWS
"""Tokens per block: 2.4 MiB of noise for each 300 dimensions."""

FLOAT_NOISE = (
    "The noise is computed in float64, so the bound of epsilon times the distance holds up to float64 sampling "
    "error and is not pure epsilon. Only the word is released, never the noisy vector."
)

LOWEST = FLOOR / TOTAL
RAYS = 1024
NEAR = 2.0**-10
"""As a share of the sum of two squared norms: smaller squared distances are computed in float64, not from products."""


@functools.lru_cache(maxsize=4)
def search_of(space: Space) -> NearestSearch:
    """Return the search over a space's vectors; prepared once per process."""
    return NearestSearch.from_vectors(space.vectors)


@dataclass(frozen=True, slots=True)
class OnVectors(OverVectors):
    """A mechanism whose output is a function of a noisy vector. Raises UserError for vectors out of range."""

    floored: ClassVar[bool] = True
    """Whether a uniformly drawn word replaces a few of the outputs."""

    def __post_init__(self) -> None:
        OverVectors.__post_init__(self)
        search_of(self.space)

    def prepare(self) -> None:
        """Compute the common data of all tokens, before threads share the work."""

    @abc.abstractmethod
    def noise(self, draws: Draws, epsilon: Float64) -> Float64:
        """Return the noise of T tokens; ``epsilon`` float64 [T] -> float64 [T, d]."""

    def choose(
        self,
        points: Float64,
        ids: Int32,  # noqa: ARG002 - for those that leave the input out, and promise nothing
        draws: Draws,  # noqa: ARG002 - for those that draw
    ) -> Int32:
        """Return the output of each noisy vector; float64 [T, d], int32 [T] -> int32 [T]. Here: the nearest word."""
        return search_of(self.space).nearest(points)

    def privatize(self, ids: Int32, epsilon: float | Float64, draws: Draws) -> Int32:
        self.check_tokens(ids, draws)
        self.prepare()
        values = np.empty(ids.size)
        for value, at in by_epsilon(epsilon, ids.size):
            values[at] = value
        out = np.empty(ids.size, dtype=np.int32)
        points = np.empty((min(ids.size, BLOCK), self.space.dimensions))
        for first in range(0, ids.size, BLOCK):
            block = slice(first, min(first + BLOCK, ids.size))
            some = draws.for_tokens(block)
            noisy = points[: block.stop - first]
            in_slices(len(noisy), self._fill, ids[block], values[block], some, noisy)
            out[block] = self.choose(noisy, ids[block], some)
        if not self.floored:
            return out
        lanes = draws.uint64(MECHANISM)
        uniform = lanes < np.uint64(len(self.space) * FLOOR)
        out[uniform] = lanes[uniform] // np.uint64(FLOOR)
        return out

    def _fill(self, ids: Any, epsilon: Any, draws: Draws, points: Any, low: int, high: int) -> None:
        part = slice(low, high)
        points[part] = self.noise(draws.for_tokens(part), epsilon[part])
        points[part] += self.space.vectors[ids[part]]

    def mixed(self, law: Float64) -> Float64:
        """Return probabilities as they are sampled, with the floor."""
        return law * (1 - len(self.space) * LOWEST) + LOWEST if self.floored else law

    def exits(self) -> Float64:
        """Return the largest Gamma factor of the noise before another word is nearer; float64 [``RAYS``]."""
        return exits(self.space)

    def retention(self, epsilon: float) -> float:
        """Return an estimate of the mean probability that a word stays unchanged, from 1,024 words."""
        return float(self.mixed(self._returns(epsilon).mean()))

    def retention_error(self, epsilon: float) -> float:
        """Return the standard error of ``retention``; 0 where that is exact."""
        return float(self._returns(epsilon).std() / math.sqrt(RAYS))

    def _returns(self, epsilon: float) -> Float64:
        """Return the probability that a ray's word comes back unchanged; float64 [``RAYS``]."""
        from scipy import special  # loaded late: it takes longer than NumPy, and mechanisms on lists do without

        return np.asarray(special.gammainc(self.space.dimensions, check_epsilon(epsilon) * self.exits()))

    def notes(self, epsilon: float) -> tuple[str, ...]:
        error = self.retention_error(epsilon)
        estimated = (
            f"The expected share of unchanged words is an estimate from {RAYS:,} words (standard error {error:.1%})."
        )
        return (FLOAT_NOISE, *([estimated] if error else []))

    @property
    def assumptions(self) -> tuple[str, ...]:
        floor = (
            f"With probability {len(self.space):,} times 2^-44, the output is a uniformly drawn word, whatever the "
            "input is. Every word is therefore possible, and no log-ratio exceeds 30.5 nats."
        )
        return (FLOAT_NOISE, floor)

    def distribution(self, word: int, epsilon: float) -> Float64:
        self.check_id(word)
        check_epsilon(epsilon)
        raise NoClosedForm(
            f"{self.name}: the law of a word has no closed form in {self.space.dimensions} dimensions; sample it."
        )

    def unknown_bound(self, epsilon: float, public: Float64) -> float:  # noqa: ARG002 - holds at any
        """Return a bound from ``2^-44 <= P[w, u] <= 1``: the largest ratio itself is not known."""
        return self.unknown_bound_at_most(public)

    def plain_ldp(self, epsilon: float) -> float:
        """Return an upper bound on any log-ratio: epsilon times the diameter, never more than the floor allows."""
        return min(epsilon * self.diameter(), -math.log(LOWEST))


def ray_words(rng: np.random.Generator, size: int) -> Integers:
    """Draw the words of the estimates, without repetition if there are enough; int [1024]."""
    return np.concatenate([rng.permutation(size) for _ in range(-(-RAYS // size))])[:RAYS]


@functools.lru_cache(maxsize=4)
def exits(space: Space, stretch: bytes = b"") -> Float64:
    """Return the exit along one direction from each of 1,024 words; float64 [1024], infinite without an exit.

    Directions are multiplied by ``stretch``, the bytes of a matrix float64 [d, d], if given; the exit is in units of
    the stretched directions.

    Words are drawn without repetition if there are enough, directions uniformly, both from a fixed public seed. The
    distances come from float32 products: about five digits.
    """
    rng = np.random.default_rng(0)
    words = ray_words(rng, len(space)).astype(np.int64)
    directions = rng.standard_normal((RAYS, space.dimensions))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    if stretch:
        directions = directions @ np.frombuffer(stretch).reshape(space.dimensions, space.dimensions).T
    scale = np.ldexp(1.0, -search_of(space).exponent)
    starts = (space.vectors[words] * scale).astype(np.float32)
    rays = directions.astype(np.float32)
    along = np.einsum("rd,rd->r", rays, starts)
    rates = np.zeros(len(words))
    for first in range(0, len(space), TILE_COLUMNS):
        ends = space.vectors[first : first + TILE_COLUMNS] * np.float32(scale)
        norms = np.einsum("vd,vd->v", ends, ends)
        own = np.einsum("rd,rd->r", starts, starts)
        products = rays @ ends.T, starts @ ends.T, along, own, norms
        in_slices(len(words), _rates, products, words, first, (starts, ends, directions), rates)
    out = np.full(len(words), np.inf)
    np.divide(1, rates * scale, out=out, where=rates > 0)
    return out


@njit()
def _rates(products: Any, words: Any, first: int, vectors: Any, rates: Any, low: int, high: int) -> None:
    """Raise each row's rate, the largest ``2 <v, u - w> / |u - w|^2``, by one tile of words u."""
    ahead, both_products, along, own, norms = products
    starts, ends, directions = vectors
    for r in range(low, high):
        for u in range(norms.size):
            if first + u == words[r]:
                continue
            gain: Any = np.float64(ahead[r, u] - along[r])
            both = np.float64(own[r] + norms[u])
            squared: Any = both - 2.0 * both_products[r, u]
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
