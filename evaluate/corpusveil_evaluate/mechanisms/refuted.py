"""What is stated of mechanisms whose published guarantees are false."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from corpusveil.arrays import Float64


class Refuted:
    """What is stated of a mechanism whose published guarantee is false. Mixed in before the class that samples."""

    __slots__ = ()

    private: ClassVar[bool] = False
    neighbors: ClassVar[str] = "none"
    assumptions: ClassVar[tuple[str, ...]] = ()
    flaw: ClassVar[str]
    """Why the claim is false."""

    def notes(self, epsilon: float) -> tuple[str, ...]:  # noqa: ARG002 - the same at any
        return (self.flaw,)

    def plain_ldp(self, epsilon: float) -> Any:  # noqa: ARG002 - at any
        return None

    def distances(self, word: int, epsilon: float) -> Float64 | None:  # noqa: ARG002 - for none
        """Return None: nothing is promised."""
        return None

    def unknown_bound(self, epsilon: float, public: Float64) -> float:  # noqa: ARG002 - at any
        """Return infinity: some outputs are impossible, or there is no bound on how unlikely they are."""
        return math.inf

    def unknown_bound_at_most(self, public: Float64) -> float:  # noqa: ARG002 - for any
        return math.inf
