"""The epsilon of each token of a document, and the resulting guarantee of the document."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from corpusveil.arrays import Float64, Int64
from corpusveil.choices import ALLOCATIONS, Allocation
from corpusveil.display import round_up
from corpusveil.errors import BadValueError, ConflictError, SizeError, not_a_choice
from corpusveil.sampling import grid
from corpusveil.sampling.weights import check_epsilon

_NEIGHBORS = "two documents with equally many tokens and m replaced words each that differ only in known words"
SMALLEST_DOCUMENT = 1e-80
"""Shared by 2^62 tokens, it is still above the smallest epsilon of a token."""


def parse_weights(text: str) -> tuple[int, ...]:
    """Return the weights of ``10:3,20:2,1``: ten tokens of weight 3, twenty of weight 2, all others of weight 1.

    Raises UserError for anything else.
    """
    weights: list[int] = []
    for item in text.split(","):
        times, colon, weight = item.rpartition(":")
        if not weight.strip().isdecimal() or not (times.strip().isdecimal() or not colon):
            raise BadValueError(f"weights = {text}: write them as 10:3,20:2,1 (ten of weight 3, twenty of 2, then 1).")
        count = int(times) if colon else 1
        if len(weights) + count > MOST_WEIGHTS:
            raise BadValueError(
                f"weights = {text}: give at most {MOST_WEIGHTS:,} weights; the last is for all further tokens."
            )
        weights += [int(weight)] * count
    return tuple(weights)


def written(epsilon: float) -> str:
    """Write an epsilon with at most four digits, rounded up, so that "at most" stays true; 1 for 1.0."""
    return in_full(round_up(epsilon, 4))


def in_full(value: float) -> str:
    """Write a number with all its digits, a whole one without decimals."""
    return repr(float(value)).removesuffix(".0")


def times(epsilon: float, distance: str) -> str:
    """Write the product of an epsilon and a distance, without a factor of 1."""
    return distance if epsilon == 1 else f"{written(epsilon)} times {distance}"


def _check_words(words: int) -> int:
    if words < 1:
        raise BadValueError(f"words = {words}: give 1 or more.")
    return words


MOST_WEIGHT = 1 << 20
DIFFERENT_WEIGHTS = 64
MOST_WEIGHTS = 1 << 16


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget of ``epsilon`` a token or a document, and how a document's is shared among its tokens.

    ``per="token"``: every replaced token gets epsilon. ``per="document"``: the m replaced tokens of a document,
    including collocations, share epsilon = E. Each share is rounded down to the public grid 2^(j/8), so that the shares
    never exceed E together. Tokens that are replaced by a public draw count, too, so a reader can count m in the output
    anyway, and m does not depend on which words the vocabulary has.

    * ``uniform``: E / m each.
    * ``word-share``: E / n each, n being all words of the document, replaced or not, including those inside
      collocations: S1 and S2 of the collocation study, which do not spend all of E.
    * ``per-word``: a collocation of k words gets k shares of E / n, n being the words that are replaced.
    * ``position``: E w_i / (w_1 + … + w_m), w_i being the weight of the i-th replaced token. ``weights`` are whole
      numbers from 1 on; the last one is for all tokens that follow.

    Raises UserError for values out of range, and for allocations that depend on the words: their budgets disclose the
    words, outside every bound (``mechanisms.md`` §12).
    """

    epsilon: float
    per: Literal["token", "document"] = "token"
    allocation: Allocation = "uniform"
    weights: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "weights", tuple(self.weights))
        if self.per not in ("token", "document"):
            raise BadValueError(f"per = {self.per!r}: choose token or document.")
        if self.per == "document" and self.epsilon < SMALLEST_DOCUMENT:
            raise BadValueError(f"epsilon = {self.epsilon}: give a document at least {SMALLEST_DOCUMENT}.")
        if self.allocation not in ALLOCATIONS:
            raise not_a_choice("allocation", self.allocation, ALLOCATIONS)
        if self.allocation != "uniform" and self.per != "document":
            raise ConflictError(
                f"allocation = {self.allocation!r}: this needs a budget per document; add per='document'."
            )
        if bool(self.weights) != (self.allocation == "position"):
            raise ConflictError("weights and allocation = 'position' belong together; give both or neither.")
        if not all(isinstance(weight, int) and 1 <= weight <= MOST_WEIGHT for weight in self.weights):
            raise BadValueError(f"weights = {list(self.weights)}: give whole numbers from 1 to {MOST_WEIGHT:,}.")
        if len(set(self.weights)) > DIFFERENT_WEIGHTS:
            raise SizeError(
                f"weights: there are {len(set(self.weights))} different weights; give at most {DIFFERENT_WEIGHTS}."
            )

    def shares(self, whole: Int64, part: Int64 | int = 1) -> Float64:
        """Return the epsilon of a token that has ``part`` of ``whole`` shares; int64 [T], float64 [T].

        Both depend on the allocation: 1 of m, 1 of n, k of n, or the token's weight of the sum of weights. With a
        budget per token, the result is epsilon.
        """
        if self.per == "token":
            return np.full(whole.size, self.epsilon)
        return grid.share(self.epsilon, np.maximum(whole, 1), part)

    def weight(self, position: Int64) -> Int64:
        """Return the weight of replaced tokens by their place among those of a document, from 0 on; int64 [T]."""
        weights = np.array(self.weights, dtype=np.int64)
        return weights[np.minimum(position, weights.size - 1)]

    def weight_before(self, tokens: Int64) -> Int64:
        """Return the sum of the weights of a document's first replaced tokens; int64 [D]."""
        weights = np.array(self.weights, dtype=np.int64)
        sums = np.concatenate([[0], np.cumsum(weights)])
        within = np.minimum(tokens, weights.size)
        return np.asarray(sums[within] + (tokens - within) * weights[-1], dtype=np.int64)

    def of_words(self, words: int) -> dict[float, int]:
        """Return the epsilons of a document's tokens, each with the number of its tokens.

        All ``words`` of the document are known, replaced, and units of one word.
        """
        _check_words(words)
        if self.weights:
            weights = self.weight(np.arange(min(words, len(self.weights)), dtype=np.int64))
            of_each, counts = np.unique(weights, return_counts=True)
            shares = self.shares(np.full(of_each.size, self.weight_before(np.array([words]))[0]), of_each)
            counted = dict(zip(shares.tolist(), counts.tolist(), strict=True))
            if words > len(self.weights):
                last = float(self.shares(self.weight_before(np.array([words])), np.array(self.weights[-1:]))[0])
                counted[last] = counted.get(last, 0) + words - len(self.weights)
            return counted
        return {float(self.shares(np.array([words]))[0]): words}

    def of_units(self, words: int, longest: int) -> list[float]:
        """Return the epsilons of units of 1, 2, … ``longest`` words in a document of ``words`` under ``per-word``."""
        sizes = np.arange(1, min(longest, _check_words(words)) + 1)
        return [float(share) for share in self.shares(np.full(sizes.size, words), sizes)]

    def promises(self, neighbors: str = _NEIGHBORS) -> tuple[str, ...]:
        """State the guarantee of a whole document against its ``neighbors``, in words: three readings of one bound."""
        whole = written(self.epsilon)
        if self.per == "token":
            each, largest = times(self.epsilon, ""), f"{'' if self.epsilon == 1 else whole + ' '}m times "
        else:
            each, largest = f"{self.share} times ", f"{whole} times "
        if self.allocation == "word-share":
            largest = f"{whole} m / n (never more than {whole}) times "
        longest, own = {
            "per-word": (", k being that of the longest unit", ", k being that of its unit"),
            "position": (", w being the largest weight", ", w being its own weight"),
        }.get(self.allocation, ("", ""))
        document = (
            f"For {neighbors}, the log-ratio of any output is at most {each}the sum of the words' distances{longest}."
        )
        word = f"If one word differs, it is at most {each}its distance{own}."
        return document, f"That is at most {largest}the largest distance.", word

    @property
    def share(self) -> str:
        """The share of a replaced word of a document, in words."""
        fraction = {"uniform": "/ m", "word-share": "/ n", "per-word": "k / n", "position": "w / W"}
        return f"{written(self.epsilon)} {fraction[self.allocation]}"

    @property
    def shared_among(self) -> str:
        """The meaning of the letters in ``share``."""
        meant = {
            "uniform": "m replaced words",
            "word-share": "n words, replaced or not",
            "per-word": "n replaced words, k of them in the word's unit",
            "position": f"weights w = {', '.join(map(str, self.weights))} by position (the last repeats), W in all",
        }
        return meant[self.allocation]

    @property
    def by_words(self) -> bool:
        """Say whether shares depend on the number of words in a unit."""
        return self.allocation in ("word-share", "per-word")

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, for a digest or a manifest."""
        fields = dataclasses.asdict(self)
        weights = list(fields.pop("weights"))
        return {**fields, "weights": weights} if weights else fields
