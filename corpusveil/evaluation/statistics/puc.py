"""PUC, the privacy-utility composite of Meisenbacher, Nandakumar, Klymenko, Matthes (2024), and its general form."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from corpusveil.errors import BadValueError
from corpusveil.evaluation.statistics.changed_words import PP
from corpusveil.evaluation.statistics.figure import Figure
from corpusveil.evaluation.statistics.rare_words import LOW
from corpusveil.evaluation.statistics.registry import register
from corpusveil.evaluation.statistics.similarity import CS
from corpusveil.evaluation.statistics.statistic import Reading
from corpusveil.evaluation.statistics.word_statistics import N_W, S_W

MOST = 100.0
"""The scale of all scores in ``puc``: percent."""
ALPHAS = (0.75, 0.5, 0.25)
"""The weights of utility in reports."""


@dataclass(frozen=True, slots=True)
class Composite:
    """Scores on [0, ``most``] by name, and their weights; fix the weight before you see the scores.

    ``utilities`` has (value, baseline), and counts ``most * value / baseline``; ``higher`` are privacy scores for which
    more is better, ``lower`` those for which ``most - score`` counts.
    """

    utilities: Mapping[str, tuple[float, float]]
    higher: Mapping[str, float] = field(default_factory=dict)
    lower: Mapping[str, float] = field(default_factory=dict)
    most: float = MOST

    def __post_init__(self) -> None:
        if not self.utilities or not (self.higher or self.lower) or not self.most > 0:
            raise BadValueError("A composite needs a utility, a privacy score and a scale above 0.")
        for name, (value, baseline) in self.utilities.items():
            self._check(name, value)
            self._check(f"baseline of {name}", baseline)
            if not baseline > 0:
                raise BadValueError(f"baseline of {name} = {baseline}: give a number above 0.")
        for name, value in (*self.higher.items(), *self.lower.items()):
            self._check(name, value)

    def _check(self, name: str, value: float) -> None:
        if not 0 <= value <= self.most:
            raise BadValueError(f"{name} = {value}: give a number from 0 to {self.most:g}.")

    @property
    def utility(self) -> float:
        """Mean utility, in parts of ``most``; above ``most`` if a value exceeds its baseline."""
        return sum(self.most * value / baseline for value, baseline in self.utilities.values()) / len(self.utilities)

    @property
    def privacy(self) -> float:
        """Mean privacy score, 0 to ``most``."""
        scores = [*self.higher.values(), *(self.most - value for value in self.lower.values())]
        return sum(scores) / len(scores)

    def score(self, alpha: float) -> float:
        """Return ``alpha * utility + (1 - alpha) * privacy``. Raises UserError unless alpha is from 0 to 1."""
        if not 0 <= alpha <= 1:
            raise BadValueError(f"alpha = {alpha}: give a number from 0 to 1.")
        return alpha * self.utility + (1 - alpha) * self.privacy


def puc(
    accuracy: float, baseline: float, n_w: float, s_w: float, pp: float, cs: float, low: float, alpha: float
) -> float:
    """Return PUC: ``alpha 100 accuracy / baseline + (1 - alpha) [(100 - N_w) + S_w + PP + CS + (100 - LOW)] / 5``.

    All scores in percent, ``alpha`` from 0 to 1. Similarity to the original, CS, counts as privacy here, as in the
    paper. Raises UserError for numbers out of range (a mean cosine below 0 among them).
    """
    higher, lower = {"s_w": s_w, "pp": pp, "cs": cs}, {"n_w": n_w, "low": low}
    return Composite({"accuracy": (accuracy, baseline)}, higher, lower).score(alpha)


def _combine(alpha: float, released: Mapping[str, Figure]) -> Iterator[Reading]:
    private, original = (released.get(f"accuracy, {name} to {name}") for name in ("private", "original"))
    scores = [released.get(part.name) for part in (N_W, S_W, PP, CS, LOW)]
    if not (private and original and original.value > 0 and all(scores)):
        return
    n_w, s_w, pp, cs, low = (score.value for score in scores if score)
    if cs >= 0:
        value = puc(100 * private.value, 100 * original.value, 100 * n_w, s_w, 100 * pp, 100 * cs, 100 * low, alpha)
        yield Reading(value, note="of 100")


for place, weight in enumerate(ALPHAS, 230):
    register(f"PUC, alpha {weight:g}", group="privacy", unit="number", place=place,
        combine=functools.partial(_combine, weight))  # fmt: skip
