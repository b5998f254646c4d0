"""The epsilon of each token of a document, and the resulting guarantee of the document."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from corpusveil.arrays import Float64, Int64
from corpusveil.choices import ALLOCATIONS, Allocation
from corpusveil.display import round_up
from corpusveil.errors import SettingError, not_a_choice
from corpusveil.sampling import grid
from corpusveil.sampling.weights import check_epsilon

SMALLEST_DOCUMENT = 1e-80
"""Shared by 2^62 tokens, it is still above the smallest epsilon of a token."""


def written(epsilon: float) -> str:
    """Write an epsilon with at most four digits, rounded up, so that "at most" stays true; 1 for 1.0."""
    return in_full(round_up(epsilon, 4))


def in_full(value: float) -> str:
    """Write a number with all its digits, a whole one without decimals."""
    return repr(float(value)).removesuffix(".0")


def times(epsilon: float, distance: str) -> str:
    """Write the product of an epsilon and a distance, without a factor of 1."""
    return distance if epsilon == 1 else f"{written(epsilon)} times {distance}"


@dataclass(frozen=True, slots=True)
class Budget:
    """The privacy budget of words: ``epsilon`` per token or per document, and how a document divides it.

    With ``per="token"``, each replaced token gets epsilon. With ``per="document"``, the m replaced tokens of a
    document, public draws included, share epsilon = E: ``allocation`` is ``uniform`` (E / m each) or ``word-share`` (E
    / n each, for all n words of the document: S1 and S2 of the collocation study, which spend less than E). Shares are
    rounded down to the public grid 2^(j/8). Readers can count m and n in the output. Raises UserError for values out of
    range.

    >>> cv.Budget(epsilon=10, per="document").allocation
    'uniform'
    """

    epsilon: float
    per: Literal["token", "document"] = "token"
    allocation: Allocation = "uniform"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if self.per not in ("token", "document"):
            raise SettingError(f"per = {self.per!r}: choose token or document.")
        if self.per == "document" and self.epsilon < SMALLEST_DOCUMENT:
            raise SettingError(f"epsilon = {self.epsilon}: give a document at least {SMALLEST_DOCUMENT}.")
        if self.allocation not in ALLOCATIONS:
            raise not_a_choice("allocation", self.allocation, ALLOCATIONS)
        if self.allocation != "uniform" and self.per != "document":
            raise SettingError(
                f"allocation = {self.allocation!r}: this needs a budget per document; add per='document'."
            )

    def shares(self, whole: Int64) -> Float64:
        """Return the epsilon of tokens by the number of shares, m or n; int64 [T] -> float64 [T]."""
        if self.per == "token":
            return np.full(whole.size, self.epsilon)
        return grid.share(self.epsilon, np.maximum(whole, 1))

    @property
    def factors(self) -> tuple[str, str]:
        """The factors, in words, of the sum of a document's distances and of the largest in the bound of a document."""
        whole = written(self.epsilon)
        if self.per == "token":
            each, largest = times(self.epsilon, ""), f"{'' if self.epsilon == 1 else whole + ' '}m times "
        else:
            each, largest = f"{self.share} times ", f"{whole} times "
        if self.allocation == "word-share":
            largest = f"{whole} m / n (never more than {whole}) times "
        return each, largest

    @property
    def share(self) -> str:
        """The epsilon of a word of a document, in letters, such as ``10 / m``."""
        return f"{written(self.epsilon)} / {'m' if self.allocation == 'uniform' else 'n'}"

    @property
    def shared_among(self) -> str:
        """The meaning of the letters in ``share``."""
        return {"uniform": "m replaced words", "word-share": "n words, replaced or not"}[self.allocation]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return dataclasses.asdict(self)
