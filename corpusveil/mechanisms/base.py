"""The base of every mechanism: a frozen value over a space that samples, and states its law and its guarantee."""

from __future__ import annotations

import abc
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from corpusveil.arrays import Float64, Int32, Int64, Integers
from corpusveil.display import Card, Shown, round_up, rounded_up
from corpusveil.errors import SettingError, of_other_type
from corpusveil.sampling import grid, weights
from corpusveil.sampling.draws import Draws
from corpusveil.sampling.weights import check_epsilon
from corpusveil.spaces import Space
from corpusveil.text.policy import DOCUMENT_LENGTH


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Guarantee(Shown):
    """The guarantee of one token at one epsilon, or of a release; ``print`` states it in words.

    ``epsilon`` and ``plain_ldp`` (nats, always of one token) are None without a guarantee. ``metric`` defines distance,
    ``neighbors`` the inputs between which the guarantee holds, ``disclosed`` what it does not cover, ``assumptions``
    what it depends on, ``claim`` the paper's statement, ``per`` the unit of epsilon.

    >>> cv.RingGeometric(space).guarantee(epsilon=1.0).neighbors
    'any two words of the vocabulary'
    """

    mechanism: str
    metric: str
    epsilon: float | None
    plain_ldp: float | None
    neighbors: str
    disclosed: tuple[str, ...]
    assumptions: tuple[str, ...]
    claim: str
    holds: bool
    notes: tuple[str, ...] = ()
    per: str = "token"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return dataclasses.asdict(self)

    def card(self) -> Card:
        if not self.holds or self.epsilon is None:
            fields: list[tuple[str, str | Sequence[str]]] = [("why", self.notes), ("claimed", self.claim)]
            return Card(f"No guarantee: {self.mechanism}", [*fields, ("in the clear", "; ".join(self.disclosed))])
        return Card(
            f"Guarantee: {self.mechanism}, epsilon {round_up(self.epsilon, 4):g} a {self.per}",
            [
                ("distance", self.metric),
                ("between", self.neighbors),
                ("any two", f"at most {rounded_up(self.plain_ldp)} nats of plain LDP"),
                *([("in words", self.notes)] if self.notes else []),
                ("in the clear", "; ".join(self.disclosed)),
                ("assuming", self.assumptions),
                *([("claimed", self.claim)] if self.claim else []),
            ],
        )


COMPUTATIONAL = (
    "Noise is drawn by AES-128 and BLAKE2b under a secret key. The guarantee is computational, not "
    "information-theoretic: it holds against readers who do not have the key and cannot break these algorithms."
)

INTEGER_WEIGHTS = "Weights are integers out of 2^64. Rounding can add 2^-19 to a log-ratio, which no figure includes."


@dataclass(frozen=True, slots=True)
class Mechanism(abc.ABC):
    """A mechanism that replaces each word by one of the vocabulary of ``space``: V words, ids 0 to V - 1.

    A new one is a subclass in a file of its own, with ``@register`` (CONTRIBUTING.md).

    >>> mechanism = cv.RingGeometric(space)
    >>> round(float(mechanism.distribution(space.id("river"), epsilon=1.0).sum()), 6)
    1.0
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    summary: ClassVar[str]
    claim: ClassVar[str]
    """The guarantee as the paper states it."""
    neighbors: ClassVar[str] = "any two words of the vocabulary"
    disclosed: ClassVar[tuple[str, ...]] = ()
    """Disclosures that the guarantee does not cover, in addition to the number of tokens."""
    private: ClassVar[bool] = True
    """False if no guarantee holds: a release by such a mechanism must accept this explicitly."""

    space: Space

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space):
            raise of_other_type("space", self.space, "cv.load_space(URL)")

    @abc.abstractmethod
    def privatize(self, ids: Int32, epsilon: float | Float64, draws: Draws) -> Int32:
        """Replace words; int32 [T] -> int32 [T].

        ``epsilon`` is one number, taken exactly, or float64 [T], each rounded down to the grid 2^(j/8). ``draws`` has
        the random bits of these T tokens. Raises UserError for an epsilon that is not a finite number above 0, for an
        id that is not a word, and unless there are T ``draws``.
        """

    @abc.abstractmethod
    def distribution(self, word: int, epsilon: float) -> Float64:
        """Return the law of the output for a word's id, as sampled; float64 [V]. Raises NoClosedForm without one."""

    def distributions(self, words: Integers, epsilon: float) -> Float64:
        """Return the laws of several inputs, float64 [N, V]; see ``distribution``."""
        return np.array([self.distribution(word, epsilon) for word in words.tolist()]).reshape(-1, len(self.space))

    def guarantee(self, epsilon: float) -> Guarantee:
        """Return the guarantee of one token at this epsilon.

        Every guarantee says that draws are computational and that the token count is in the clear. Other disclosures
        depend on the text policy, which a mechanism does not know.
        """
        epsilon = check_epsilon(epsilon)
        return Guarantee(
            mechanism=self.name,
            metric=self.distance_at(epsilon),
            epsilon=epsilon if self.private else None,
            plain_ldp=self.plain_ldp(epsilon),
            neighbors=self.neighbors,
            disclosed=(DOCUMENT_LENGTH, *self.disclosed),
            assumptions=(COMPUTATIONAL, *self.assumptions),
            claim=self.claim,
            holds=self.private,
            notes=self.notes(epsilon),
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the guarantee, in addition to a secret key."""
        return (INTEGER_WEIGHTS,)

    def notes(self, epsilon: float) -> tuple[str, ...]:  # noqa: ARG002 - here there are none
        """Return sentences that readers of the guarantee should know."""
        return ()

    def plain_ldp(self, epsilon: float) -> float | None:  # noqa: ARG002 - here there is none
        """Return an upper bound on the log-ratio of any two words, in nats; None without a guarantee."""
        return None

    @property
    @abc.abstractmethod
    def distance(self) -> str:
        """The distance of this mechanism in words, for any epsilon."""

    def distance_at(self, epsilon: float) -> str:  # noqa: ARG002 - here it is the same at any
        """Return the distance in words at this epsilon."""
        return self.distance

    def distances(self, word: int, epsilon: float) -> Float64 | None:  # noqa: ARG002 - here there is none
        """Return the guarantee's distance of ``word`` from every word, float64 [V]; None without a guarantee."""
        return None

    @abc.abstractmethod
    def retention(self, epsilon: float) -> float:
        """Return the probability that a word stays unchanged (the mean over the vocabulary if it varies)."""

    @abc.abstractmethod
    def unknown_bound(self, epsilon: float, public: Float64) -> float:
        """Return the bound in nats between a known word and one drawn from ``public``, float64 [V]."""

    def unknown_bound_at_most(self, public: Float64) -> float:
        """Return a bound of ``unknown_bound`` at any epsilon: no probability is below the floor of the weights."""
        floor = weights.FLOOR / weights.TOTAL
        return float(max(np.log(public.max() / floor), -np.log(public.min()))) + weights.EXTRA_LOG_RATIO

    def parameters(self) -> dict[str, Any]:
        """Return everything except the space that shapes the law, for the release digest."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "space"}

    def check_id(self, word: int) -> int:
        """Return the id as int. Raises UserError if the vocabulary has no such id."""
        if not 0 <= int(word) < len(self.space):
            raise SettingError(f"id {word}: the vocabulary has ids 0 to {len(self.space) - 1}; give one of these.")
        return int(word)

    def check_tokens(self, ids: Int32, draws: Draws) -> None:
        """Raise UserError unless there is a draw for each id, and each id is a word: compiled loops do not check."""
        if len(draws) != ids.size:
            raise SettingError(f"{len(draws)} draws for {ids.size} tokens; give one draw for each token.")
        if ids.size:
            self.check_id(ids.min())
            self.check_id(ids.max())


def check_fraction(name: str, value: Any, *, ends: bool = False) -> None:
    """Raise UserError unless a parameter is a number between 0 and 1, or, with ``ends``, 0 or 1."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not good or not (0 < value < 1 or (ends and value in (0, 1))):
        raise SettingError(f"{name} = {value}: give a number {'from 0 to' if ends else 'between 0 and'} 1.")


def by_epsilon(epsilon: float | Float64, tokens: int) -> Iterator[tuple[float, slice | Int64]]:
    """Yield each different epsilon for tables, and an index of the tokens that have it; documents share one."""
    if np.ndim(epsilon) == 0:
        yield check_epsilon(float(epsilon)), slice(None)
        return
    values = np.asarray(epsilon, dtype=np.float64)
    if values.shape != (tokens,):
        raise SettingError(
            f"epsilon has shape {values.shape} for {tokens} tokens; give a single number, or a number for each token."
        )
    starts = np.flatnonzero(np.append(np.ones(min(tokens, 1), np.bool_), values[1:] != values[:-1]))
    runs = values[starts]
    if not (np.isfinite(runs).all() and (runs > 0).all()):
        raise SettingError("epsilon: give finite numbers above 0.")
    distinct, which = np.unique(grid.round_down(runs), return_inverse=True)
    order = np.argsort(which.astype(np.uint16), kind="stable")  # by radix: linear in the runs, however many epsilons
    sizes = np.diff(starts, append=tokens)[order]
    ends = np.cumsum(sizes)
    index = np.arange(tokens) + np.repeat(starts[order] - (ends - sizes), sizes)
    last = np.cumsum(np.bincount(which, minlength=len(distinct))) - 1
    bounds = [0, *ends[last].tolist()]
    for value, (first, stop) in zip(distinct.tolist(), itertools.pairwise(bounds), strict=True):
        yield value, index[first:stop]
