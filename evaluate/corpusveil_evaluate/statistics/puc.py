"""PUC, the privacy-utility composite of Meisenbacher, Nandakumar, Klymenko, Matthes (2024)."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from corpusveil.errors import BadValueError
from corpusveil_evaluate.statistics.changed_words import PP
from corpusveil_evaluate.statistics.rare_words import LOW
from corpusveil_evaluate.statistics.similarity import CS
from corpusveil_evaluate.statistics.statistic import Figure, Reading, register
from corpusveil_evaluate.statistics.word_statistics import N_W, S_W

ALPHAS = (0.75, 0.5, 0.25)
"""The weights of utility in reports."""


def puc(
    accuracy: float, baseline: float, n_w: float, s_w: float, pp: float, cs: float, low: float, alpha: float
) -> float:
    """Return PUC: ``alpha 100 accuracy / baseline + (1 - alpha) [(100 - N_w) + S_w + PP + CS + (100 - LOW)] / 5``.

    All scores in percent, ``alpha`` from 0 to 1. Similarity to the original, CS, counts as privacy here, as in the
    paper. Raises UserError for numbers out of range (a mean cosine below 0 among them).
    """
    scores = {"accuracy": accuracy, "n_w": n_w, "s_w": s_w, "pp": pp, "cs": cs, "low": low, "alpha": 100 * alpha}
    for name, value in scores.items():
        if not 0 <= value <= 100:
            raise BadValueError(f"{name} = {value}: give a number from 0 to 100, and for alpha from 0 to 1.")
    if not 0 < baseline <= 100:
        raise BadValueError(f"baseline = {baseline}: give a number above 0, at most 100.")
    return alpha * 100 * accuracy / baseline + (1 - alpha) * (100 - n_w + s_w + pp + cs + 100 - low) / 5


def _combine(alpha: float, released: Mapping[str, Figure]) -> Iterator[Reading]:
    private, original = (released.get(f"accuracy, {name} to {name}") for name in ("private", "original"))
    scores = [released.get(part.name) for part in (N_W, S_W, PP, CS, LOW)]
    if not (private and original and original.value > 0 and all(scores)):
        return
    n_w, s_w, pp, cs, low = (score.value for score in scores if score)
    if cs >= 0:
        value = puc(100 * private.value, 100 * original.value, 100 * n_w, s_w, 100 * pp, 100 * cs, 100 * low, alpha)
        yield Reading(value, note="of 100")


for weight in ALPHAS:
    register(f"PUC, alpha {weight:g}", group="privacy", unit="number",
        combine=functools.partial(_combine, weight))  # fmt: skip
