"""The number of words of a released document: its own number, a point of a public grid, or its number plus noise.

A released document is the first L words of the original, continued by fillers. Fillers are drawn from public counts and
replaced like words of the text. The law of L depends on the original only through its number of words n;
``docs/mathematics.md`` (Length) proves the guarantee.

*Grid*: L is the least multiple of a public number that is n or more. *Noise*: L = n + K, at least 1, and K is
two-sided geometric, ``Pr[K = k] ∝ e^(-epsilon |k|)`` (Ghosh, Roughgarden, Sundararajan 2009).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from corpusveil.arrays import Int64
from corpusveil.errors import BadRecordError, BadValueError
from corpusveil.sampling.draws import LENGTH, Draws
from corpusveil.sampling.weights import PRECISION_BITS, TOTAL, WeightTable, exp_fixed

LARGEST_STEP = 1_000_000
LEAST_EPSILON, MOST_EPSILON = 0.001, 20.0
SLACK = 2.0**-20
"""Noise is drawn at epsilon times 1 minus this, so that integer weights never exceed epsilon."""


@dataclass(frozen=True, slots=True)
class LengthGrid:
    """Pad documents to the next multiple of ``pad`` words; an empty text gets ``pad`` words, too.

    Raises UserError for a value out of range.
    """

    pad: int

    policy: ClassVar[str] = "grid"
    epsilon: ClassVar[float] = 0.0
    """The cost of the length for each word of difference: 0 within a cell."""

    def __post_init__(self) -> None:
        if isinstance(self.pad, bool) or not isinstance(self.pad, int) or not 1 <= self.pad <= LARGEST_STEP:
            raise BadValueError(f"pad = {self.pad}: give a whole number of words from 1 to {LARGEST_STEP:,}.")

    def released(self, words: Int64, draws: Draws | None = None) -> Int64:  # noqa: ARG002 - nothing is drawn
        """Return the numbers of released words for documents of ``words`` words; int64 [D] -> int64 [D]."""
        return np.asarray(np.maximum(-(-words // self.pad), 1) * self.pad, dtype=np.int64)

    def as_dict(self) -> dict[str, Any]:
        """Return the policy and its parameters, for a digest or a manifest."""
        return {"policy": self.policy, **dataclasses.asdict(self)}

    @property
    def disclosed(self) -> str:
        """What the output discloses about a document's length."""
        return f"how many words a document has, rounded up to a multiple of {self.pad:,}"


@dataclass(frozen=True, slots=True)
class LengthNoise:
    """Release documents with their number of words plus two-sided geometric noise of ``epsilon``.

    Where the sum is larger than the document, fillers follow; where it is smaller, the document is cut at its end: with
    probability ``e^-epsilon / (1 + e^-epsilon)``. Raises UserError for a value out of range.
    """

    epsilon: float

    policy: ClassVar[str] = "noise"

    def __post_init__(self) -> None:
        good = isinstance(self.epsilon, (int, float)) and not isinstance(self.epsilon, bool)
        if not good or not LEAST_EPSILON <= self.epsilon <= MOST_EPSILON:
            raise BadValueError(f"epsilon = {self.epsilon}: give a number from {LEAST_EPSILON:g} to {MOST_EPSILON:g}.")
        object.__setattr__(self, "epsilon", float(self.epsilon))

    def released(self, words: Int64, draws: Draws) -> Int64:
        """Return the numbers of released words for documents of ``words`` words; int64 [D] -> int64 [D].

        ``draws`` has one token for each document.
        """
        return np.asarray(np.maximum(words + two_sided(self.epsilon, draws), 1), dtype=np.int64)

    def as_dict(self) -> dict[str, Any]:
        """Return the policy and its parameters, for a digest or a manifest."""
        return {"policy": self.policy, **dataclasses.asdict(self)}

    @property
    def disclosed(self) -> str:
        """What the output discloses about a document's length."""
        return f"how many words a document has, plus noise (epsilon {self.epsilon:.4g} for each word)"


Length: TypeAlias = LengthGrid | LengthNoise


def length_of(fields: dict[str, Any] | None) -> Length | None:
    """Return the policy that ``as_dict`` wrote; None for None. Raises UserError for unknown fields."""
    if fields is None:
        return None
    given = dict(fields)
    kinds: dict[Any, Callable[..., Length]] = {kind.policy: kind for kind in (LengthGrid, LengthNoise)}
    try:
        return kinds[given.pop("policy")](**given)
    except (KeyError, TypeError):
        raise BadRecordError(
            "The manifest has a length policy that this version of corpusveil does not know; install a later one."
        ) from None


def geometric_weights(epsilon: float) -> tuple[list[int], int]:
    """Return the integer weights of the numbers in a block, total 2^64, and the weight of a further block.

    The law on 0, 1, 2, … is proportional to ``weight[k % B] (again / 2^64)^(k // B)``. Each probability is at most that
    of the number before it, and at least e^-epsilon times that probability.
    """
    exact = epsilon * (1 - SLACK)
    size = max(1, int(1 / exact))
    powers = [exp_fixed(-exact * k) for k in range(size)]
    weights = [power * TOTAL // sum(powers) for power in powers]
    weights[0] += TOTAL - sum(weights)
    # Rounded up, so that a further block is never rarer than epsilon allows.
    again = (exp_fixed(-exact * size) >> (PRECISION_BITS - 64)) + 1
    return weights, again


@functools.lru_cache(maxsize=16)
def _geometric(epsilon: float) -> tuple[int, int, WeightTable | None]:
    """Return how many numbers a block has, the weight of a further one, and what draws inside a block of several."""
    weights, again = geometric_weights(epsilon)
    return len(weights), again, WeightTable(np.array(weights, dtype=np.uint64)) if len(weights) > 1 else None


def two_sided(epsilon: float, draws: Draws) -> Int64:
    """Return a two-sided geometric number for each document; int64 [D].

    It is the difference of two geometric numbers. The log-ratio of its probabilities of neighboring numbers is at most
    epsilon, as for a geometric number.
    """
    (size, again, within), count = _geometric(epsilon), len(draws)
    numbers = np.zeros((2, count), dtype=np.int64)
    if within is not None:
        for side, lanes in enumerate(draws.pair(LENGTH)):
            numbers[side] = within.cells(lanes)
    going = np.ones((2, count), dtype=np.bool_)
    attempt = 0
    while (some := np.flatnonzero(going.any(axis=0))).size:
        attempt += 1
        further = draws.of(some).pair(LENGTH, attempt)
        for side, lanes in enumerate(further):
            going[side, some] &= lanes < np.uint64(again)
            numbers[side, some] += size * going[side, some]
    return np.asarray(numbers[0] - numbers[1], dtype=np.int64)
