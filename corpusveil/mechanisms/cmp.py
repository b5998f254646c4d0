"""CMP, or MADLIB (Feyisetan, Balle, Drake, Diethe 2020): noise on the word's vector, then the nearest word.

    phi(w) + N,   density of N in R^k proportional to exp(-epsilon |N|)

The direction is uniform and the length Gamma(k, 1/epsilon); it is not Gaussian noise. The noisy vectors can be
distinguished by at most ``epsilon |phi(w) - phi(w')|``, and the nearest word is post-processing. In one dimension N is
Laplace noise and the law is exact; in more dimensions there is no closed form.

The length is about k/epsilon: in 300 dimensions at epsilon = 10 it is 30, several times the distance of two words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from corpusveil.arrays import Float64
from corpusveil.mechanisms.on_vectors import OnVectors
from corpusveil.mechanisms.registry import register
from corpusveil.sampling.draws import Draws
from corpusveil.sampling.gamma import gamma_noise
from corpusveil.sampling.weights import check_epsilon


@register
@dataclass(frozen=True, slots=True)
class Cmp(OnVectors):
    """Calibrated multivariate perturbation, on Euclidean distances (Feyisetan, Balle, Drake, Diethe 2020).

    >>> cv.Cmp(space).guarantee(epsilon=1.0).holds
    True
    """

    name: ClassVar[str] = "cmp"
    paper: ClassVar[str] = "CMP / MADLIB (Feyisetan, Balle, Drake, Diethe 2020)"
    summary: ClassVar[str] = "noise on the word's vector, then the nearest word: epsilon times Euclidean distance"

    claim: ClassVar[str] = "epsilon times the Euclidean distance"

    def noise(self, draws: Draws, epsilon: Float64) -> Float64:
        return gamma_noise(draws, self.space.dimensions, epsilon)

    def distribution(self, word: int, epsilon: float) -> Float64:
        """Return the law of the output for ``word``, float64 [V]. Raises NoClosedForm in more than one dimension."""
        if self.space.dimensions > 1:
            return OnVectors.distribution(self, word, epsilon)
        word, epsilon = self.check_id(word), check_epsilon(epsilon)
        _, ids, left, right = self._intervals()
        at = float(self.space.vectors[word, 0])
        law = np.zeros(len(self.space))
        law[ids] = laplace_mass(left - at, right - at, epsilon)
        return self.mixed(law)

    def _intervals(self) -> tuple[npt.NDArray[Any], ...]:
        """Return the different places on the line, the least id at each, and where its interval begins and ends."""
        places, ids = np.unique(self.space.vectors[:, 0].astype(np.float64), return_index=True)
        between = (places[1:] + places[:-1]) / 2
        return places, ids, np.append(-np.inf, between), np.append(between, np.inf)

    def retention(self, epsilon: float) -> float:
        """Return the mean probability that a word stays unchanged: exact in one dimension, otherwise an estimate."""
        epsilon = check_epsilon(epsilon)
        if self.space.dimensions > 1:
            return OnVectors.retention(self, epsilon)
        places, _, left, right = self._intervals()
        return float(self.mixed(laplace_mass(left - places, right - places, epsilon).sum() / len(self.space)))

    def retention_error(self, epsilon: float) -> float:
        """Return the standard error of ``retention``; 0 if it is exact."""
        return 0.0 if self.space.dimensions == 1 else OnVectors.retention_error(self, epsilon)


def laplace_mass(left: Float64, right: Float64, epsilon: float) -> Float64:
    """Return the mass of Laplace noise of scale 1/epsilon in each interval, to full relative precision."""

    def beside(near: Float64, far: Float64) -> Float64:
        return np.exp(-epsilon * near) * -np.expm1(-epsilon * (far - near)) / 2

    below = beside(np.maximum(-right, 0), np.maximum(-left, 0))
    above = beside(np.maximum(left, 0), np.maximum(right, 0))
    return np.where(right <= 0, below, np.where(left >= 0, above, below + above))
