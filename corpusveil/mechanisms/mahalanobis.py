"""Mahalanobis (Xu, Aggarwal, Feyisetan, Teissier 2020): noise stretched as the vectors are, then the nearest word.

    phi(w) + N,   density of N proportional to exp(-epsilon |N|_RM),   |z|_RM = sqrt(z' A^-1 z),
    A = lam Sigma + (1 - lam) I,   Sigma the covariance of the vectors, scaled to mean variance 1

``N = R L v`` with ``L L' = A``, R and v as in ``cmp``. The guarantee is epsilon times ``|phi(w) - phi(w')|_RM``. In
Euclidean terms only epsilon / sqrt(least eigenvalue of A) times the distance holds, which is at most epsilon / sqrt(1 -
lam), and without limit for lam = 1: it is computed and stated. L v is not made a unit vector: that would change the
law, and no bound with the stated epsilon would hold (``mechanisms.md`` §8).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from corpusveil.arrays import Float64
from corpusveil.compiled import njit
from corpusveil.errors import DataError
from corpusveil.mechanisms.base import check_fraction
from corpusveil.mechanisms.cmp import Cmp
from corpusveil.mechanisms.on_vectors import OnVectors, exits
from corpusveil.mechanisms.registry import register
from corpusveil.sampling.draws import Draws
from corpusveil.sampling.gamma import gamma_noise
from corpusveil.search.slices import in_slices
from corpusveil.spaces import Space


@register
@dataclass(frozen=True, slots=True)
class Mahalanobis(Cmp):
    """Noise with elliptical contours, then the nearest word (Xu, Aggarwal, Feyisetan, Teissier 2020).

    ``lam``, from 0 (the noise of ``cmp``) to 1, sets how far the contours follow the vectors. Raises UserError
    otherwise.

    >>> cv.Mahalanobis(space).guarantee(epsilon=1.0).holds
    True
    """

    lam: float = 0.2

    name: ClassVar[str] = "mahalanobis"
    paper: ClassVar[str] = "Mahalanobis (Xu, Aggarwal, Feyisetan, Teissier 2020)"
    summary: ClassVar[str] = "noise stretched as the vectors are, then the nearest word: epsilon times their norm"
    claim: ClassVar[str] = "epsilon times the regularized Mahalanobis norm of the difference of vectors"

    def __post_init__(self) -> None:
        OnVectors.__post_init__(self)
        check_fraction("lam", self.lam, ends=True)
        self.shape()

    def shape(self) -> Shape:
        """Return the factor of the noise and its extreme stretches."""
        return shape_of(self.space, self.lam)

    def prepare(self) -> None:
        self.shape()

    def noise(self, draws: Draws, epsilon: Float64) -> Float64:
        round_noise = gamma_noise(draws, self.space.dimensions, epsilon)
        out = np.empty_like(round_noise)
        _stretch(round_noise, self.shape().columns, out)
        return out

    def exits(self) -> Float64:
        return exits(self.space, self.shape().columns.T.tobytes())

    @property
    def constant(self) -> float:
        """1 / sqrt(least eigenvalue of A), or a little more: the factor of epsilon in Euclidean terms."""
        return 1 / self.shape().least

    @property
    def distance(self) -> str:
        return (
            f"the Mahalanobis norm (lam = {self.lam:g}) of the difference of vectors in {self.space.dimensions} "
            "dimensions"
        )

    def distances(self, word: int, epsilon: float) -> Float64 | None:  # noqa: ARG002 - the same at any
        from scipy import linalg  # loaded late, as in ``on_vectors``

        word = self.check_id(word)
        gaps = self.space.vectors.astype(np.float64) - self.space.vectors[word]
        solved = linalg.solve_triangular(self.shape().columns.T, gaps.T, lower=True)
        return np.asarray(np.sqrt(np.einsum("ij,ij->j", solved, solved)))

    def diameter(self) -> float:
        return OnVectors.diameter(self) * self.constant

    def notes(self, epsilon: float) -> tuple[str, ...]:
        return (
            (
                f"In Euclidean terms, the bound is {self.constant * epsilon:.4g} (epsilon / sqrt of the least "
                "eigenvalue) times the distance."
            ),
            *OnVectors.notes(self, epsilon),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """``columns`` float64 [d, d], row j the j-th column of L, and the least stretch of L or a little less."""

    columns: Float64
    least: float


@functools.lru_cache(maxsize=4)
def shape_of(space: Space, lam: float) -> Shape:
    """Return the shape of the noise, summed in a fixed order. Raises UserError where A has no Cholesky factor."""
    covariance = _covariance(space) if lam else np.zeros((space.dimensions, space.dimensions))
    mean = float(np.trace(covariance)) / space.dimensions
    if lam and not mean > 0:
        raise DataError("mahalanobis: all vectors are equal and have no covariance; use cmp.")
    matrix = (lam / mean if lam else 0.0) * covariance
    matrix[np.diag_indices_from(matrix)] += 1 - lam
    factor = np.zeros_like(matrix)
    # A little less, since LAPACK rounds: the bound in Euclidean terms divides by it.
    least = math.sqrt(max(float(np.linalg.eigvalsh(matrix)[0]), 0.0)) * (1 - 2.0**-20)
    if not (_cholesky(matrix, factor) and least > 0):
        raise DataError(
            f"lam = {lam:g}: the vectors have no extent in some direction of the space, and would get no noise "
            "there; use a smaller lam."
        )
    return Shape(np.ascontiguousarray(factor.T), least)


def _covariance(space: Space) -> Float64:
    """Return the covariance of the vectors; float64 [d, d]."""
    mean = np.zeros(space.dimensions)
    _mean(space.vectors, mean)
    out = np.zeros((space.dimensions, space.dimensions))
    in_slices(space.dimensions, _products, space.vectors, mean, out)
    return (out + np.tril(out, -1).T) / len(space)


@njit()
def _mean(vectors: Any, mean: Any) -> None:
    for v in range(vectors.shape[0]):
        for j in range(mean.size):
            mean[j] += vectors[v, j]
    for j in range(mean.size):
        mean[j] /= vectors.shape[0]


@njit()
def _products(vectors: Any, mean: Any, out: Any, low: int, high: int) -> None:
    """Add up the lower triangle's rows ``low`` to ``high``, each cell word by word."""
    row = np.empty(mean.size)
    for v in range(vectors.shape[0]):
        for j in range(high):
            row[j] = vectors[v, j] - mean[j]
        for i in range(low, high):
            factor = row[i]
            for j in range(i + 1):
                out[i, j] += factor * row[j]


@njit()
def _cholesky(matrix: Any, factor: Any) -> bool:
    """Fill the lower triangular L with L L' = matrix; False where that is not positive definite."""
    size = matrix.shape[0]
    largest = 0.0
    for i in range(size):
        largest = max(largest, matrix[i, i])
    for j in range(size):
        total = matrix[j, j]
        for k in range(j):
            total -= factor[j, k] * factor[j, k]
        if total <= largest * 1e-12:
            return False
        pivot = math.sqrt(total)
        factor[j, j] = pivot
        for i in range(j + 1, size):
            total = matrix[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = total / pivot
    return True


@njit()
def _stretch(noise: Any, columns: Any, out: Any) -> None:
    """Multiply each row by L, column by column: one fixed order, whatever the batch contains."""
    size = noise.shape[1]
    for t in range(noise.shape[0]):
        for i in range(size):
            out[t, i] = 0.0
        for j in range(size):
            factor = noise[t, j]
            for i in range(j, size):
                out[t, i] += factor * columns[j, i]
