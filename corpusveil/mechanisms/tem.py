"""TEM (Carvalho, Vasiloudis, Feyisetan, Wang 2023): the exponential mechanism on truncated distances.

    P[w, u] is proportional to exp(-(epsilon/2) min(|phi(w) - phi(u)|, gamma))

over the whole vocabulary: ``epsilon min(d, gamma)``-private, hence ``epsilon gamma``-LDP. Published as Gumbel noise of
scale 2/epsilon on scores: ``-d`` of the words L_w within gamma, and of one element "bottom", which represents all n -
|L_w| others, ``-gamma + (2/epsilon) ln(n - |L_w|)``; bottom then becomes a uniform word outside. This has the law
above, which is sampled directly. (With ``ln(n / |L_w|)`` in that score, or with the input as output for bottom, as in
packages, the guarantee is lost.)

``gamma = (2/epsilon) ln((1 - beta)(n - 1)/beta)`` puts at most about beta on all words beyond it; then plain LDP is at
most ``2 ln((1 - beta)(n - 1)/beta)`` at every epsilon, and where no distance is above gamma TEM is SanText. If gamma is
below nearly all distances, it is randomized response.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from corpusveil.arrays import Float64
from corpusveil.errors import SettingError
from corpusveil.mechanisms.base import check_fraction
from corpusveil.mechanisms.distances import euclidean
from corpusveil.mechanisms.exponential_rows import ExponentialRows, rows_of
from corpusveil.mechanisms.on_distances import OnDistances
from corpusveil.mechanisms.registry import register
from corpusveil.sampling import weights
from corpusveil.sampling.weights import check_epsilon


@register
@dataclass(frozen=True, slots=True)
class Tem(OnDistances):
    """The truncated exponential mechanism on vectors (Carvalho, Vasiloudis, Feyisetan, Wang 2023).

    ``gamma`` is a distance of vectors as given; None: by the rule from ``beta``. Raises UserError for values out of
    range.

    >>> cv.Tem(space).guarantee(epsilon=1.0).holds
    True
    """

    name: ClassVar[str] = "tem"
    paper: ClassVar[str] = "TEM (Carvalho, Vasiloudis, Feyisetan, Wang 2023)"
    summary: ClassVar[str] = "truncated exponential mechanism on vectors: epsilon times min(distance, gamma)"
    claim: ClassVar[str] = "epsilon times min(the Euclidean distance, gamma); epsilon times gamma for any two words"

    gamma: float | None = None
    beta: float = 0.001

    def __post_init__(self) -> None:
        OnDistances.__post_init__(self)
        check_fraction("beta", self.beta)
        if self.gamma is None:
            if self._outside() <= 1:
                raise SettingError(
                    f"beta = {self.beta}: with {len(self.space)} words, give a beta below 1 - 1/{len(self.space)}."
                )
        elif isinstance(self.gamma, bool) or not isinstance(self.gamma, (int, float)) or not 0 < self.gamma < math.inf:
            raise SettingError(f"gamma = {self.gamma}: gamma is a distance; give a finite number above 0.")

    def _outside(self) -> decimal.Decimal:
        b = decimal.Decimal(self.beta)
        return weights.divide((1 - b) * (len(self.space) - 1), b)

    def gamma_at(self, epsilon: float) -> float:
        """Return gamma at an epsilon; in decimals, since logarithms of two machines may differ."""
        if self.gamma is not None:
            return float(self.gamma)
        return float(weights.divide(2 * weights.ln(self._outside()), decimal.Decimal(check_epsilon(epsilon))))

    def exponential_rows(self, epsilon: float) -> ExponentialRows:
        gamma = self.gamma_at(epsilon)
        return rows_of(self.space, check_epsilon(epsilon) / 2, math.inf if gamma >= self.diameter() else gamma)

    def reach(self, epsilon: float) -> float:
        return epsilon / 2 * min(self.gamma_at(epsilon), self.diameter())

    def _distance(self, gamma: str) -> str:
        return f"min(the Euclidean distance of vectors in {self.space.dimensions} dimensions, {gamma})"

    def distances(self, word: int, epsilon: float) -> Float64:
        return np.minimum(euclidean(self.space, self.check_id(word)), self.gamma_at(epsilon))

    @property
    def distance(self) -> str:
        rule = f"(2/epsilon) ln((1 - beta)(n - 1)/beta) with beta = {self.beta} and n = {len(self.space):,}"
        return self._distance(rule if self.gamma is None else f"{self.gamma:g}")

    def distance_at(self, epsilon: float) -> str:
        return self._distance(f"{self.gamma_at(epsilon):.6g}")
