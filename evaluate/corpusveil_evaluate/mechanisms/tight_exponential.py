"""Tight exponential: weights solved so that the full epsilon is in the exponent; ours.

    P[w, u] = c_u exp(-epsilon |phi(w) - phi(u)|),   sum_u c_u exp(-epsilon |phi(w) - phi(u)|) = 1 for every w

The normalizer is 1 for every word, so it costs no epsilon: the law is exactly ``epsilon d``-private, and at an equal
guarantee it keeps more and nearer words than SanText (``docs/mathematics.md``; after the tight constraints of
ElSalamouny, Chatzikokolakis, Palamidessi 2014). On a path it is the clamped geometric. It needs c above 0, which holds
if epsilon is large against 1 / distance: if each word's kernel values of all others total at most 1/2.

Otherwise it falls back to the *calibrated exponential*: ``exp(-s d) / Z_w`` with s the largest found in ``[epsilon / 2,
epsilon]`` for which the realized ``s + max |ln Z_w - ln Z_w'| / d(w, w')``, over all pairs, is at most epsilon. The
guarantee states which law was used, and the realized epsilon.

The weights come from conjugate gradients (Hestenes, Stiefel 1952) without a matrix: each step computes all n^2 kernel
values in blocks. The certificate, which is the normalizers of these weights, is trusted, not the solver.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from corpusveil.arrays import Float64
from corpusveil.compiled import njit
from corpusveil.mechanisms.exponential_rows import (
    TOGETHER,
    ExponentialRows,
    kernel_values,
    law_of,
    padded,
    place_point,
    rows_of,
)
from corpusveil.mechanisms.on_distances import OnDistances
from corpusveil.mechanisms.registry import register
from corpusveil.mechanisms.vector_blocks import LANES, VectorBlocks, blocks_of, squared_distances
from corpusveil.sampling import weights
from corpusveil.sampling.weights import check_epsilon
from corpusveil.search.slices import in_slices
from corpusveil.spaces import Space

RESIDUAL = 2.0**-22
"""The tolerance of a normalizer around 1: it adds at most 2^-21 to a log-ratio, and the integers add 2^-20."""
LEAST_WEIGHT = 2.0**-20
STEPS = 60
HALVINGS = 6
SLACK = 2.0**-30
"""The tolerance of a difference of two log-normalizers, for the rounding of sums: far below the stated 2^-19."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The sampled law at one epsilon: exponent ``s``, factors c (None: calibrated, all 1), the realized epsilon."""

    s: float
    factors: Float64 | None
    realised: float


@njit()
def _sums(law: Any, out: Any, low: int, high: int) -> None:
    vectors, chunks, _, s, gamma, squared, factors = law
    values = np.empty(LANES)
    points = np.empty((TOGETHER, chunks.shape[1]))
    for start in range(low, high, TOGETHER):
        group = min(TOGETHER, high - start)
        for r in range(group):
            place_point(vectors, start + r, points[r])
            out[start + r] = 0.0
        for k in range(chunks.shape[0]):
            for r in range(group):
                kernel_values(chunks[k], points[r], s, gamma, squared, factors[k], values)
                inside = 0.0
                for lane in range(LANES):
                    inside += values[lane]
                out[start + r] += inside


def kernel_sums(blocks: VectorBlocks, s: float, gamma: float = math.inf, factors: Float64 | None = None) -> Float64:
    """Return ``sum_u c_u exp(-s min(d(w, u), gamma))`` of every word w; ``factors`` c, float64 [V] -> float64 [V].

    The order of summation is fixed, so the sums are equal on every machine.
    """
    out = np.empty(blocks.words)
    in_slices(out.size, _sums, law_of(blocks, s, gamma, False, padded(blocks, factors)), out)
    return out


@njit()
def _steepest(vectors: Any, chunks: Any, values: Any, slack: float, out: Any, low: int, high: int) -> None:
    n = vectors.shape[0]
    squared = np.empty(LANES)
    point = np.empty(chunks.shape[1])
    for word in range(low, high):
        place_point(vectors, word, point)
        worst = 0.0
        for k in range(chunks.shape[0]):
            squared_distances(chunks[k], point, squared)
            for u in range(k * LANES, min((k + 1) * LANES, n)):
                gap = abs(values[word] - values[u]) - slack
                if gap > 0.0 and gap * gap > worst * worst * squared[u - k * LANES]:
                    worst = gap / math.sqrt(squared[u - k * LANES]) if squared[u - k * LANES] > 0.0 else np.inf
        out[word] = worst


def steepest(blocks: VectorBlocks, values: Float64, slack: float) -> float:
    """Return the largest ``(|values_w - values_u| - slack) / d(w, u)`` of all pairs, or 0; values float64 [V]."""
    out = np.empty(blocks.words)
    in_slices(out.size, _steepest, blocks.vectors, blocks.chunks, values, slack, out)
    return float(out.max())


@njit()
def _dot(a: Any, b: Any) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


def solve(blocks: VectorBlocks, epsilon: float) -> Float64 | None:
    """Return weights c with all normalizers within ``RESIDUAL`` of 1; None where none above 0 are found."""
    ones = np.ones(blocks.words)
    first = kernel_sums(blocks, epsilon)
    guess = ones / float(first.max())
    residual = ones - first / float(first.max())
    direction = residual.copy()
    squared = _dot(residual, residual)
    for _ in range(STEPS):
        if float(np.abs(residual).max()) <= RESIDUAL / 4:
            break
        image = kernel_sums(blocks, epsilon, factors=direction)
        curvature = _dot(direction, image)
        if not curvature > 0:
            return None
        step = squared / curvature
        guess = guess + step * direction
        residual = residual - step * image
        before, squared = squared, _dot(residual, residual)
        direction = residual + squared / before * direction
    if float(guess.min()) < LEAST_WEIGHT or float(guess.max()) > 2:
        return None
    certificate = kernel_sums(blocks, epsilon, factors=guess)
    return guess if float(np.abs(certificate - 1).max()) <= RESIDUAL else None


def realised(blocks: VectorBlocks, s: float) -> float:
    """Return the epsilon that the plain exponential of exponent s realizes: exact, from its normalizers."""
    return s + steepest(blocks, np.log(kernel_sums(blocks, s)), SLACK)


def calibrate(blocks: VectorBlocks, epsilon: float) -> Solution:
    """Return the largest s found in ``[epsilon / 2, epsilon]`` that realizes at most epsilon."""
    if realised(blocks, epsilon) <= epsilon:
        return Solution(epsilon, None, epsilon)
    low, high = epsilon / 2, epsilon
    best = min(realised(blocks, low), epsilon)  # never more than 2 s, except for rounding
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        loss = realised(blocks, middle)
        if loss <= epsilon:
            low, best = middle, loss
        else:
            high = middle
    return Solution(low, None, best)


@functools.lru_cache(maxsize=64)
def solution_of(space: Space, epsilon: float) -> Solution:
    """Return the sampled law at an epsilon; computed once per process."""
    blocks = blocks_of(space)
    factors = solve(blocks, epsilon)
    return calibrate(blocks, epsilon) if factors is None else Solution(epsilon, factors, epsilon)


@register
@dataclass(frozen=True, slots=True)
class TightExponential(OnDistances):
    """The exponential with solved weights, or the calibrated one; distance is Euclidean, on the vectors as given.

    >>> cv.TightExponential(space).guarantee(1.0).claim
    'exactly epsilon times the Euclidean distance'
    """

    name: ClassVar[str] = "tight-exponential"
    paper: ClassVar[str] = "ours; after ElSalamouny, Chatzikokolakis, Palamidessi 2014"
    summary: ClassVar[str] = "exponential on vectors with solved weights: the full epsilon in the exponent"
    claim: ClassVar[str] = "exactly epsilon times the Euclidean distance"

    def exponential_rows(self, epsilon: float) -> ExponentialRows:
        solution = solution_of(self.space, check_epsilon(epsilon))
        return rows_of(self.space, solution.s, factors=solution.factors)

    def reach(self, epsilon: float) -> float:
        return solution_of(self.space, check_epsilon(epsilon)).s * self.diameter()

    def plain_ldp(self, epsilon: float) -> float:
        return min(epsilon * self.diameter(), math.log(weights.TOTAL / weights.FLOOR))

    def unknown_bound(self, epsilon: float, public: Float64) -> float:
        """Return a bound from ``c_min exp(-s D) / Z_max <= P[w, u] <= 1``, and from the floor."""
        factors = solution_of(self.space, check_epsilon(epsilon)).factors
        least = -math.log(len(self.space)) if factors is None else math.log(float(factors.min())) - RESIDUAL
        low = min(self.reach(epsilon) - least, math.log(weights.TOTAL / weights.FLOOR))
        return max(math.log(public.max()) + low, -math.log(public.min())) + weights.EXTRA_LOG_RATIO

    def notes(self, epsilon: float) -> tuple[str, ...]:
        solution = solution_of(self.space, epsilon)
        used = (
            "The weights were solved: the exponent uses all of epsilon, and all normalizers are 1 within 2^-22."
            if solution.factors is not None
            else "No positive weights were found at this epsilon, so the calibrated exponential is used: the exponent "
            f"uses {solution.s / epsilon:.4f} of epsilon, and {solution.realised / epsilon:.4f} is realized."
        )
        return (used, *OnDistances.notes(self, epsilon))
