"""What whole documents are promised in (ε, δ), beside the pure figure: for some lengths, before any text is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corpusveil.budget import Budget
from corpusveil.budget.composition import epsilon_at, pure_sum
from corpusveil.display import figure, round_up
from corpusveil.errors import BadValueError, NoGuaranteeError
from corpusveil.mechanisms import Mechanism

LENGTHS = (50, 200, 500, 1000)
"""Words of the documents that a release states figures for."""
DIGITS = 6
"""Of a figure in a manifest, rounded up: the last bits of a convolution differ between machines."""


@dataclass(frozen=True, slots=True)
class DocumentFigure:
    """The guarantee of a document of ``words`` replaced words: ``pure``, and ``epsilon`` at ``delta``.

    It holds between documents of one skeleton in which each word differs by at most ``distance``, in the metric of the
    mechanism. An infinite distance means any two words.
    """

    words: int
    pure: float
    epsilon: float
    delta: float
    distance: float

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, numbers rounded up to six digits; any two words have no distance."""
        return {
            "words": self.words,
            "pure": round_up(self.pure, DIGITS),
            "epsilon": round_up(self.epsilon, DIGITS),
            "delta": self.delta,
            "distance": None if math.isinf(self.distance) else self.distance,
        }


def check_distance(distance: float) -> float:
    """Return a distance of two words. Raises UserError unless it is above 0; infinity stands for any two."""
    if isinstance(distance, bool) or not isinstance(distance, (int, float)) or not distance > 0:
        raise BadValueError(f"distance = {distance}: give a number above 0, or inf for any two words.")
    return float(distance)


def document_figure(
    mechanism: Mechanism, budget: Budget, words: int, delta: float, distance: float = 1.0
) -> DocumentFigure:
    """Return what a document of so many replaced words is promised.

    Raises UserError for a mechanism that promises nothing, and for numbers out of range.
    """
    return figure_of(mechanism, budget.of_words(words), delta, distance)


def figure_of(mechanism: Mechanism, epsilons: Mapping[float, int], delta: float, distance: float) -> DocumentFigure:
    """Return what a document is promised whose tokens have these epsilons, each so many of them."""
    change = None if math.isinf(check_distance(distance)) else distance
    parts = []
    for epsilon, count in epsilons.items():
        loss = mechanism.privacy_loss(epsilon, change)
        if loss is None:
            raise NoGuaranteeError(
                f"{mechanism.name} has no guarantee, so nothing can be stated for a document; choose another mechanism."
            )
        parts.append((loss, count))
    words = sum(epsilons.values())
    return DocumentFigure(words, pure_sum(tuple(parts)), epsilon_at(parts, delta), delta, float(distance))


def sentences(figures: Sequence[DocumentFigure], by: str) -> list[str]:
    """Say what some figures of one δ and distance promise, and between which documents; nothing without figures."""
    if not figures:
        return []
    delta, distance = figures[0].delta, figures[0].distance
    apart = "by any distance" if math.isinf(distance) else f"by a distance of at most {distance:g}"
    each = "; ".join(f"{one.words:,} words: {figure(one.epsilon)} (pure {figure(one.pure)})" for one in figures)
    told = (
        f"(epsilon, delta) of documents at delta = {delta:g}, compared with documents of as many tokens in which "
        f"each known word differs {apart}; epsilon {by}: {each}."
    )
    return [told]
