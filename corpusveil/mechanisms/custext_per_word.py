"""CusText as published (Chen, Mo, Wang, Chen, Cui 2023): each word has its own K nearest words. No guarantee.

    P[w, u] is proportional to exp(epsilon s(w, u) / 2) on the K words nearest to w, itself among them, and 0 elsewhere

Two words hardly ever have the same K nearest words, so some outputs are possible for one and impossible for the other:
the log-ratio is infinite, and no epsilon holds. ``custext`` is the sound form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from corpusveil.arrays import Float64
from corpusveil.mechanisms.base import Guarantee, nothing_holds
from corpusveil.mechanisms.distances import discrete
from corpusveil.mechanisms.on_sets import OnSets, Sets, SetTable, nearest_sets, set_table
from corpusveil.mechanisms.registry import register
from corpusveil.sampling.weights import check_epsilon


@register
@dataclass(frozen=True, slots=True)
class CusTextPerWord(OnSets):
    """The exponential mechanism on each word's ``K`` nearest words."""

    name: ClassVar[str] = "custext-per-word"
    paper: ClassVar[str] = "CusText (Chen, Mo, Wang, Chen, Cui 2023)"
    summary: ClassVar[str] = "exponential mechanism on each word's own K nearest words, as published"
    private: ClassVar[bool] = False

    @property
    def sets(self) -> Sets:
        return nearest_sets(self.space, self.K)

    def table(self, epsilon: float) -> SetTable:
        return set_table(nearest_sets, self.space, self.K, check_epsilon(epsilon), 0)

    @property
    def distance(self) -> str:
        return "none: words with different nearest words can be distinguished with certainty"

    def claimed_distances(self, word: int, epsilon: float) -> Float64:  # noqa: ARG002 - the same at any
        """Return 1 for any other word: the paper claims epsilon-LDP."""
        return discrete(self.space, self.check_id(word))

    def unknown_bound(self, epsilon: float, public: Float64) -> float:  # noqa: ARG002 - at any
        """Return infinity: some words are impossible."""
        return math.inf

    def unknown_bound_at_most(self, public: Float64) -> float:  # noqa: ARG002 - for any
        return math.inf

    def guarantee(self, epsilon: float) -> Guarantee:
        check_epsilon(epsilon)
        return nothing_holds(
            self,
            "epsilon-LDP for any two words",
            "The published claim is false. Each word has its own set of possible outputs, so an output that is "
            "possible for one word and impossible for another distinguishes the two with certainty.",
        )
