"""CusText (Chen, Mo, Wang, Chen, Nie, Wang, Cui 2023) on a fixed public partition of the vocabulary, smoothed.

    P[w, u] = (1 - eta) exp(epsilon s(w, u) / 2) / Z_w  on w's group,   + eta / n  on every word

with scores from -1 to 0 by distance within the group. Groups of K words are made from the public vectors: the lowest id
without a group, and its K - 1 nearest words without a group. When fewer than 2 K words remain, they are the last group.

It is plain ``epsilon``-LDP between words of one group. Between groups only the smoothing counts: two words are
distinguished by at most ``ln(1 + (1 - eta) p_max n / eta)`` nats, p_max the largest probability in a group, which is
large; so the group is practically disclosed. The published form, in which each word has its own K nearest words,
guarantees nothing (``custext-per-word`` of ``corpusveil-evaluate``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from corpusveil.arrays import Float64
from corpusveil.mechanisms.base import check_fraction
from corpusveil.mechanisms.on_sets import OnSets, Sets, SetTable, group_sets, partition, set_table
from corpusveil.mechanisms.registry import register
from corpusveil.sampling import weights
from corpusveil.sampling.weights import check_epsilon


@register
@dataclass(frozen=True, slots=True)
class CusText(OnSets):
    """The exponential mechanism in public groups of ``K`` words (Chen, Mo, Wang, Chen, Nie, Wang, Cui 2023).

    ``eta`` is the share of the uniform law that is mixed in. Raises UserError for values out of range.

    >>> cv.CusText(space, K=5).guarantee(epsilon=1.0).holds
    True
    """

    name: ClassVar[str] = "custext"
    paper: ClassVar[str] = "CusText (Chen, Mo, Wang, Chen, Nie, Wang, Cui 2023), on a partition"
    summary: ClassVar[str] = "exponential mechanism within public groups of K words, smoothed: epsilon within a group"
    claim: ClassVar[str] = "epsilon-LDP for any two words (not true: it holds within a group of a fixed partition)"
    neighbors: ClassVar[str] = "any two words of one group; between groups, only the bound for any two words holds"
    disclosed: ClassVar[tuple[str, ...]] = (
        "the group of near words to which a word belongs (only the smoothing hides it)",
    )

    eta: float = 0.01

    def __post_init__(self) -> None:
        OnSets.__post_init__(self)
        check_fraction("eta", self.eta)

    @property
    def sets(self) -> Sets:
        return group_sets(self.space, self.K)

    def table(self, epsilon: float) -> SetTable:
        n = len(self.space)
        top, bottom = float(self.eta).as_integer_ratio()
        added = max(weights.FLOOR, weights.TOTAL * top // (bottom * n))
        return set_table(group_sets, self.space, self.K, check_epsilon(epsilon), added)

    @property
    def distance(self) -> str:
        return (
            f"1 between two different words of one public group of {self.K} or more near words; between groups, the "
            "bound for any two words divided by epsilon"
        )

    def distances(self, word: int, epsilon: float) -> Float64:
        groups = partition(self.space, self.K)
        out = np.full(len(self.space), self.plain_ldp(epsilon) / check_epsilon(epsilon))
        out[groups == groups[self.check_id(word)]] = 1.0
        out[word] = 0.0
        return out

    def plain_ldp(self, epsilon: float) -> float:
        """Return an upper bound of the log-ratio of two rows: the largest weight over the common weight of all."""
        bound = math.log(float(self.own(epsilon).max()) * weights.TOTAL / self.table(epsilon).added)
        return min(bound, float(epsilon)) if int(self.sets.sizes[0]) == len(self.space) else bound

    def unknown_bound(self, epsilon: float, public: Float64) -> float:
        least = self.table(epsilon).added / weights.TOTAL
        return max(math.log(public.max() / least), math.log(float(self.own(epsilon).max()) / public.min()))

    def notes(self, epsilon: float) -> tuple[str, ...]:  # noqa: ARG002 - the same at any
        return ("The group of near words that a word belongs to is practically disclosed.",)
