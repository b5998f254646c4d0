"""CusText as published (Chen, Mo, Wang, Chen, Nie, Wang, Cui 2023): each word has its own ``K`` words. No guarantee.

    P[w, u] is proportional to exp(epsilon s(w, u) / 2) on the K words nearest to w, itself among them, and 0 elsewhere.

Two words hardly ever have the same K nearest words, so some outputs are possible for one and impossible for the other:
the log-ratio is infinite, and no epsilon holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from corpusveil.mechanisms.on_sets import OnSets, Sets, SetTable, set_table
from corpusveil.mechanisms.registry import register
from corpusveil.sampling.weights import check_epsilon
from corpusveil_evaluate.mechanisms.nearest_sets import nearest_sets
from corpusveil_evaluate.mechanisms.refuted import Refuted


@register
@dataclass(frozen=True, slots=True)
class CusTextPerWord(Refuted, OnSets):
    """The exponential mechanism on each word's own ``K`` nearest words, as published. It guarantees nothing.

    >>> cv.CusTextPerWord(space, K=5).guarantee(1.0).notes[0]
    'The published claim is false. Each word has its own set of possible outputs, ...'
    """

    name: ClassVar[str] = "custext-per-word"
    paper: ClassVar[str] = "CusText (Chen, Mo, Wang, Chen, Nie, Wang, Cui 2023)"
    summary: ClassVar[str] = "exponential mechanism on each word's own K nearest words, as published"
    claim: ClassVar[str] = "epsilon-LDP for any two words"
    flaw: ClassVar[str] = (
        "The published claim is false. Each word has its own set of possible outputs, so an output that is "
        "possible for one word and impossible for another distinguishes the two with certainty."
    )

    @property
    def sets(self) -> Sets:
        return nearest_sets(self.space, self.K)

    def table(self, epsilon: float) -> SetTable:
        return set_table(nearest_sets, self.space, self.K, check_epsilon(epsilon), 0)

    @property
    def distance(self) -> str:
        return "none: words with different nearest words can be distinguished with certainty"
