"""The guarantee of whole documents in (ε, δ) and the pure bound, for some lengths, before any text is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from corpusveil.budget import Budget
from corpusveil.budget.composition import epsilon_at, pure_sum
from corpusveil.budget.length import Length
from corpusveil.budget.privacy_loss import PrivacyLoss, Pure
from corpusveil.display import round_up
from corpusveil.errors import BadValueError, NoGuaranteeError
from corpusveil.kernel.lengths import length_epsilon
from corpusveil.mechanisms import Mechanism

LENGTHS = (50, 200, 500, 1000)
"""The numbers of words for which a release states figures."""
DIGITS = 6
"""The digits of a figure in a manifest, rounded up, since the last bits of a convolution differ between machines."""


@dataclass(frozen=True, slots=True)
class DocumentFigure:
    """The guarantee of a document of ``words``: ``pure``, and ``epsilon`` at ``delta``.

    ``words`` are the replaced units of a document, each a single word or a collocation; under ``word-share`` all its
    words.

    It holds between documents of one skeleton in which each word differs by at most ``distance``, in the metric of the
    mechanism. An infinite distance means any two words. With a length policy, ``words`` are the released words, and
    ``length_epsilon`` is included: the cost of one word more or less, None without a policy. Only at an infinite
    distance may the two documents have different lengths, because a word is then compared with a filler.
    """

    words: int
    pure: float
    epsilon: float
    delta: float
    distance: float
    length_epsilon: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, numbers rounded up to six digits; any two words have no distance."""
        return {
            "words": self.words,
            "pure": round_up(self.pure, DIGITS),
            "epsilon": round_up(self.epsilon, DIGITS),
            "delta": self.delta,
            "distance": None if math.isinf(self.distance) else self.distance,
            **({} if self.length_epsilon is None else {"length_epsilon": self.length_epsilon}),
        }


def document_figure(
    mechanism: Mechanism,
    budget: Budget,
    words: int,
    delta: float,
    distance: float = 1.0,
    length: Length | None = None,
) -> DocumentFigure:
    """Return the guarantee of a document of ``words`` (see ``DocumentFigure``); with a length policy, released words.

    ``uniform`` counts units, and under ``word-share`` n words form at most n units of equal shares. Raises UserError
    for a mechanism without a guarantee, and for numbers out of range.
    """
    if isinstance(distance, bool) or not isinstance(distance, (int, float)) or not distance > 0:
        raise BadValueError(f"distance = {distance}: give a number above 0, or inf for any two words.")
    parts: list[tuple[PrivacyLoss, int]] = []
    epsilons = budget.of_words(words)
    for epsilon, count in epsilons.items():
        loss = mechanism.privacy_loss(epsilon, None if math.isinf(distance) else float(distance))
        if loss is None:
            raise NoGuaranteeError(
                f"{mechanism.name} has no guarantee, so nothing can be stated for a document; choose another mechanism."
            )
        parts.append((loss, count))
    if of_length := length_epsilon(length):
        parts.append((Pure(of_length), 1))
    replaced, pure = sum(epsilons.values()), pure_sum(tuple(parts))
    bound = None if length is None else of_length
    return DocumentFigure(replaced, pure, epsilon_at(parts, delta), delta, float(distance), bound)


def neighbors(of: DocumentFigure) -> str:
    """Say which documents a figure compares."""
    apart = "by any distance" if math.isinf(of.distance) else f"by a distance of at most {of.distance:g}"
    if of.length_epsilon is None:
        return f"documents with the same number of tokens in which each known word differs {apart}"
    if not math.isinf(of.distance):  # a filler can be any word, at any distance
        return f"documents with the same number of words of their own in which each known word differs {apart}"
    ends = (
        "end at most one word earlier or later" if of.length_epsilon else "are released with the same number of words"
    )
    return f"documents of known words only, which may all differ, that {ends}"
