"""How much epsilon each token of a document gets, and what that promises for the document."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from corpusveil.errors import UserError
from corpusveil.sampling import grid
from corpusveil.sampling.weights import check_epsilon

SMALLEST_DOCUMENT = 1e-80
"""Shared by 2^62 tokens it is still above the smallest epsilon of a token."""


def written(epsilon: float) -> str:
    """Write an epsilon exactly, a whole one without decimals."""
    return repr(float(epsilon)).removesuffix(".0")


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget of ``epsilon`` a token or a document.

    ``per="token"``: every replaced token gets epsilon. ``per="document"`` with the allocation ``uniform``: a document
    with m replaced tokens gets epsilon / m each, rounded down to the public grid 2^(j/8), so that m shares never exceed
    epsilon. Tokens that are replaced by a public draw count towards m, too: m is then what a reader of the output can
    count anyway, and does not depend on which words the vocabulary has. The allocation ``words`` gives epsilon / n
    each, n being all words of the document, whether they are replaced or not and also those inside collocations: the S1
    and S2 of the collocation study, which spend less than the whole. Raises UserError for values out of range.
    """

    epsilon: float
    per: Literal["token", "document"] = "token"
    allocation: Literal["uniform", "words"] = "uniform"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if self.per not in ("token", "document"):
            raise UserError(f"per = {self.per!r}: a budget is per token or per document.")
        if self.per == "document" and self.epsilon < SMALLEST_DOCUMENT:
            raise UserError(f"epsilon = {self.epsilon}: the smallest budget of a document is {SMALLEST_DOCUMENT}.")
        if self.allocation not in ("uniform", "words"):
            raise UserError(f"allocation = {self.allocation!r}: it may be uniform or words.")
        if self.allocation == "words" and self.per != "document":
            raise UserError("allocation = 'words': this is for a budget per document.")

    def shares(self, replaced: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return each document's epsilon a token; ``replaced`` int64 [D] counts what it is shared by."""
        if self.per == "token":
            return np.full(replaced.size, self.epsilon)
        return grid.share(self.epsilon, np.maximum(replaced, 1))

    def promises(self) -> tuple[str, ...]:
        """Say what holds for a whole document, in words: three readings of one bound."""
        each = written(self.epsilon) if self.per == "token" else f"{written(self.epsilon)} / {self.shared_by}"
        largest = f"{written(self.epsilon)} times m" if self.per == "token" else written(self.epsilon)
        if self.allocation == "words":
            largest = f"{written(self.epsilon)} times m / n, so never more than {written(self.epsilon)},"
        neighbors = "A document with m replaced words, against one of as many tokens that differs in known words only"
        return (
            f"{neighbors}: the log-ratio of any output is at most {each} times the sum of the words' distances;",
            f"put otherwise, at most {largest} times the largest of these distances;",
            f"when one word differs, at most {each} times its distance.",
        )

    @property
    def shared_by(self) -> str:
        """What a document's budget is divided by: ``m`` replaced tokens or ``n`` words."""
        return "m" if self.allocation == "uniform" else "n"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, for a digest or a manifest."""
        return dataclasses.asdict(self)
