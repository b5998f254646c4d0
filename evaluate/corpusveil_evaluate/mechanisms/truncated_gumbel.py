"""Truncated Gumbel (N. Xu, Feyisetan, Aggarwal, Z. Xu, Teissier 2021): noisy distances to randomly many near words.

    K = a Poisson(ln n) number where it is in [1, n), else n
    u = argmin of d(w, u) + g_u over the K words nearest to w (itself among them), g Gumbel(0, b) given |g| <= D

D the largest distance of two words, D0 the least, ``b = 2 D / min(W(2 alpha D), ln(alpha D0))`` and ``alpha = (epsilon
- 2 (1 + ln n) / D0) / 3``. The published theorem says ``epsilon d``. It is false: with n - 1 words at distance 1 of one
another and one word at distance R of all, the far word is drawn with a probability that is exponentially small in n, so
the log-ratio grows with n, but epsilon R does not. This mechanism guarantees nothing.

b exists only for ``epsilon > (2 (1 + ln n) + 3) / D0``, and below that the mechanism refuses. (The condition that the
paper states has no 3 and leaves ``ln(alpha D0)`` negative; packages continue with a complex W: ``as_run.py``.)
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from corpusveil.arrays import Float64, Int32, Integers, UInt64
from corpusveil.compiled import njit
from corpusveil.errors import DataError, NoClosedForm
from corpusveil.mechanisms.base import Guarantee, by_epsilon
from corpusveil.mechanisms.distances import OverVectors
from corpusveil.mechanisms.registry import register
from corpusveil.mechanisms.vector_blocks import LANES, blocks_of, squared_distances
from corpusveil.sampling.draws import MECHANISM, NOISE, Draws
from corpusveil.sampling.weights import check_epsilon
from corpusveil.search.neighbors import squared_distance
from corpusveil.search.slices import in_slices
from corpusveil.spaces import Space
from corpusveil_evaluate.mechanisms.nearest_sets import nearest_sets
from corpusveil_evaluate.mechanisms.refuted import Refuted

NEAR = 64
"""The number of nearest words that are kept; a larger K sorts the whole vocabulary."""
POINTS = 24
"""Gauss points of each piece of the quadrature, 4 pieces between any two places where the integrand has a kink."""
BLOCK = 1 << 21
"""Densities of the quadrature in memory, 16 MiB for each of its arrays."""
SHARP = 3.75
"""``D / b`` from which the noise's density at -D is below 1e-17 of its maximum, so the kink there has no effect."""
EXACT_NEAR = 128
"""The most candidates of a word for the share of unchanged words; K between this and n has less than 1e-60."""
EXACT_ALL = 1024
"""The most words of a space whose laws are computed all together: the cost grows with the cube of their number."""
EXACT_WORDS = 64
"""Up to this many words, the share of unchanged words is the mean of all laws; beyond, of this many sampled laws."""


@functools.lru_cache(maxsize=4)
def extent(space: Space) -> tuple[float, float]:
    """Return the least and the largest distance of two words."""
    blocks = blocks_of(space)
    least, most = np.empty(len(space)), np.empty(len(space))
    in_slices(len(space), _extent, blocks.vectors, blocks.chunks, least, most)
    return math.sqrt(least.min()), math.sqrt(most.max())


@njit()
def _extent(vectors: Any, chunks: Any, least: Any, most: Any, low: int, high: int) -> None:
    n = vectors.shape[0]
    point = np.zeros(chunks.shape[1])
    squares = np.empty(LANES)
    for word in range(low, high):
        point[: vectors.shape[1]] = vectors[word]
        least[word] = np.inf
        most[word] = 0.0
        for k in range(chunks.shape[0]):
            squared_distances(chunks[k], point, squares)
            for u in range(k * LANES, min((k + 1) * LANES, n)):
                if u != word:
                    least[word] = min(least[word], squares[u - k * LANES])
                    most[word] = max(most[word], squares[u - k * LANES])


def floor_of(n: int, least: float) -> float:
    """Return the epsilon above which b exists: ``alpha D0 > 1``."""
    return (2 * (1 + math.log(n)) + 3) / least


def scale_of(n: int, epsilon: float, least: float, most: float) -> float:
    """Return b."""
    from scipy import special  # loaded late, as in ``on_vectors``

    alpha = (epsilon - 2 * (1 + math.log(n)) / least) / 3
    return float(2 * most / min(float(special.lambertw(2 * alpha * most).real), math.log(alpha * least)))


@functools.lru_cache(maxsize=16)
def counts_law(n: int) -> Float64:
    """Return the law of K; float64 [n], that of k at k - 1."""
    from scipy import special

    law = np.exp(special.xlogy(np.arange(1, n + 1), math.log(n)) - special.gammaln(np.arange(2.0, n + 2)) - math.log(n))
    law[-1] = 1 - law[:-1].sum()
    return np.asarray(law)


def _uniform(lanes: UInt64) -> Float64:
    """Return float64 above 0 and below 1."""
    # The half keeps them from 0, whose logarithm is infinite.
    return ((lanes >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


@njit()
def _pick(vectors: Any, ids: Any, members: Any, noise: Any) -> Any:
    """Return the word of the least noisy distance for each token; ids int32 [T], noise float64 [T, K] -> int32 [T]."""
    out = np.empty(ids.size, dtype=np.int32)
    for t in range(ids.size):
        best = np.inf
        for j in range(noise.shape[1]):
            value = math.sqrt(squared_distance(vectors, ids[t], members[ids[t], j])) + noise[t, j]
            if value < best:
                best = value
                out[t] = members[ids[t], j]
    return out


def truncated(uniform: Float64, b: Float64, most: float) -> Float64:
    """Return Gumbel(0, b) noise given that it is within ``most`` of 0, by its inverse distribution function."""
    low, high = np.exp(-np.exp(most / b)), np.exp(-np.exp(-most / b))
    return np.asarray(np.clip(-b * np.log(-np.log(low + uniform * (high - low))), -most, most))


def _nodes(apart: Float64, b: float, most: float) -> tuple[Float64, Float64]:
    """Return places and weights of the quadrature over the least noisy distance; ``apart`` [V] ascends from 0.

    The integrand has a kink where a word's noise is cut, at its distance less D, unless the noise hardly gets there.
    """
    if most / b < SHARP:
        kinks = np.unique(np.concatenate([apart - most, np.linspace(apart[-1] - most, most, 65)]))
    else:
        kinks = np.linspace(-most, most, 1 + max(64, math.ceil(4 * most / b)))
    nodes, factors = np.polynomial.legendre.leggauss(POINTS)
    halves = np.diff(kinks)[:, None] / 2
    return (kinks[:-1, None] + halves * (1 + nodes)).ravel(), (halves * factors).ravel()


@register
@dataclass(frozen=True, slots=True)
class TruncatedGumbel(Refuted, OverVectors):
    """The mechanism as printed. Raises UserError where two words have one vector, and below its floor of epsilon.

    >>> cv.TruncatedGumbel(space).guarantee(1e6).notes[0]
    'The published theorem is false. ...'
    """

    name: ClassVar[str] = "truncated-gumbel"
    paper: ClassVar[str] = "Truncated Gumbel (N. Xu, Feyisetan, Aggarwal, Z. Xu, Teissier 2021)"
    summary: ClassVar[str] = "noisy distances of a random number of near words, as published; its theorem is false"
    claim: ClassVar[str] = "epsilon times the Euclidean distance"
    flaw: ClassVar[str] = (
        "The published theorem is false. Take n words at distance 1 of each other and a far word at distance R "
        "of all of them: the far word is drawn with a probability that is exponentially small in n (n = 100, R "
        "= 1.5: a log-ratio of 27.6 where 21.7 is claimed)."
    )

    def __post_init__(self) -> None:
        OverVectors.__post_init__(self)
        if extent(self.space)[0] == 0:
            raise DataError(
                f"{self.name}: two words of the space have the same vector, so b is not defined; remove either word."
            )

    def check(self, epsilon: float) -> float:
        """Return epsilon. Raises UserError where b does not exist."""
        epsilon = check_epsilon(epsilon)
        floor = floor_of(len(self.space), extent(self.space)[0])
        if not epsilon > floor:
            raise DataError(
                f"epsilon = {epsilon:g}: in this space {self.name} is defined only above (2 (1 + ln n) + 3) / D0 = "
                f"{floor:.6g}; choose a larger epsilon or another mechanism."
            )
        return epsilon

    def scale(self, epsilon: float) -> float:
        return scale_of(len(self.space), self.check(epsilon), *extent(self.space))

    def counts(self) -> Float64:
        """Return the law of K; float64 [V], that of k at k - 1."""
        return counts_law(len(self.space))

    def privatize(self, ids: Int32, epsilon: float | Float64, draws: Draws) -> Int32:
        self.check_tokens(ids, draws)
        each = np.empty(ids.size)
        for value, at in by_epsilon(epsilon, ids.size):
            each[at] = self.scale(value)
        bounds = np.cumsum(self.counts())
        bounds[-1] = 1.0
        counts = np.searchsorted(bounds, _uniform(draws.uint64(MECHANISM)), side="right") + 1
        members = nearest_sets(self.space, NEAR).members
        out = np.empty(ids.size, dtype=np.int32)
        for count in np.unique(counts).tolist():
            for part in np.array_split(at := np.flatnonzero(counts == count), -(-at.size * count // (1 << 22))):
                some = draws.for_tokens(part)
                uniform = _uniform(some.lanes(NOISE, -(-count // 2))[:, :count])
                noise = truncated(uniform, each[part, None], extent(self.space)[1])
                if count <= members.shape[1]:
                    out[part] = _pick(self.space.vectors, ids[part], members, noise)
                    continue
                for i, t in enumerate(part.tolist()):
                    near = self._nearest(int(ids[t]), count)
                    out[t] = near[np.argmin(self._distances(int(ids[t]), near) + noise[i])]
        return out

    def _distances(self, word: int, near: Int32) -> Float64:
        apart = [squared_distance(self.space.vectors, word, int(u)) for u in near]
        return np.asarray(np.sqrt(np.array(apart)), dtype=np.float64)

    def _nearest(self, word: int, count: int) -> Int32:
        every = np.arange(len(self.space), dtype=np.int32)
        return np.asarray(every[np.argsort(self._distances(word, every), kind="stable")[:count]], dtype=np.int32)

    def distribution(self, word: int, epsilon: float) -> Float64:
        """Return the law of the output for ``word``, float64 [V], by quadrature over the least noisy distance.

        P[w, u] = int f(x - d_u) sum_{k >= rank u} p_k prod_{j <= k, j != u} (1 - F(x - d_j)) dx
        """
        near = self._nearest(self.check_id(word), len(self.space))
        near_law = self._law(near, self.counts(), epsilon)
        law = np.zeros(len(self.space))
        law[near] = near_law / near_law.sum()
        return law

    def distributions(self, words: Integers, epsilon: float) -> Float64:
        """Return the laws of several words. Raises NoClosedForm in a space of more than ``EXACT_ALL`` words."""
        if len(self.space) > EXACT_ALL:
            raise NoClosedForm(
                f"{self.name}: the laws of all words are computed in spaces of at most {EXACT_ALL:,} words; this one "
                f"has {len(self.space):,}, so they are sampled."
            )
        return OverVectors.distributions(self, words, epsilon)

    def _law(self, near: Int32, counts: Float64, epsilon: float) -> Float64:
        """Return the probability of each of the nearest words, the word itself first, over the law of their number."""
        b, most = self.scale(epsilon), extent(self.space)[1]
        apart = self._distances(int(near[0]), near)
        low, high = math.exp(-math.exp(most / b)), math.exp(-math.exp(-most / b))
        x, weight = _nodes(apart, b, most)
        law = np.zeros(near.size)
        block = max(1, BLOCK // near.size)
        for start in range(0, x.size, block):
            some = slice(start, start + block)
            gaps = x[some] - apart[:, None]
            inside = np.clip(gaps, -most, most)
            left = np.clip((high - np.exp(-np.exp(-inside / b))) / (high - low), 1e-300, 1.0)
            density = np.where(gaps == inside, np.exp(-inside / b - np.exp(-inside / b)) / b / (high - low), 0.0)
            survival = np.cumsum(np.log(left), axis=0)
            tails = np.cumsum((counts[:, None] * np.exp(survival))[::-1], axis=0)[::-1]
            law += (density * tails / left) @ weight[some]
        return law

    def claimed_distances(self, word: int, epsilon: float) -> Float64 | None:
        return OverVectors.distances(self, word, epsilon)

    @property
    def distance(self) -> str:
        return "none: the published theorem on the Euclidean distance is false"

    def retention(self, epsilon: float) -> float:
        """Return the mean probability that a word stays unchanged, over at most 64 words.

        With more than 128 words, a larger K counts as 128. A larger K has a probability of about 1 in the number of
        words, so the error is smaller than this.
        """
        epsilon, size = self.check(epsilon), len(self.space)
        counts = self.counts()
        if size > EXACT_NEAR:
            counts = np.append(counts[: EXACT_NEAR - 1], counts[EXACT_NEAR - 1 :].sum())
        words = np.random.default_rng(0).permutation(size)[:EXACT_WORDS]
        shares = [self._law(self._nearest(int(word), size)[:EXACT_NEAR], counts, epsilon) for word in words]
        return float(np.mean([share[0] / share.sum() for share in shares]))

    def guarantee(self, epsilon: float) -> Guarantee:
        return OverVectors.guarantee(self, self.check(epsilon))
