"""Attribute inference: what private texts still disclose about their authors, by classifiers on the same models.

A *static* attacker trained on original texts, an *adaptive* attacker on texts released by the same mechanism; both are
tested on private texts (Utpala et al. 2023). Either may *denoise first*: the release, the mechanism's law and language
models are public, so an attacker can start from the result of ``denoise``. The baselines are chance, the constant
classifier, and the attacker on original texts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

from corpusveil.errors import SettingError
from corpusveil_evaluate.statistics.statistic import Figure, Reading, register
from corpusveil_evaluate.utility.training_modes import SCORE_NAMES, Mode, Score

ATTACKERS: dict[str, Mode] = {"static": "original-private", "adaptive": "private-private"}
"""The mode in which each is trained and tested."""
ATTRIBUTE_NAMES: dict[Score, str] = {"accuracy": "attribute", "macro_f1": "attribute (macro F1)"}
"""What reports call an attacker's success by each score."""
Readable = Callable[[Sequence[str]], list[str]]
"""A reader's denoising of a release before an attack."""

register("attribute, adaptive", group="attack")


def relative_gain(U_p: float, U_o: float, P_p: float, P_o: float) -> float:
    """Return U_p / U_o - P_p / P_o: the share of utility kept minus that of the (adaptive) attacker's success."""
    if not (U_o > 0 and P_o > 0):
        raise SettingError(f"U_o = {U_o}, P_o = {P_o}: relative gain divides by both; give numbers above 0.")
    return U_p / U_o - P_p / P_o


def _combine(by: Score, released: Mapping[str, Figure]) -> Iterator[Reading]:
    useful, attack = SCORE_NAMES[by], ATTRIBUTE_NAMES[by]
    private, original = (released.get(f"{useful}, {name} to {name}") for name in ("private", "original"))
    learnt, known = (released.get(f"{attack}, {name}") for name in ("adaptive", "from original texts"))
    if private and original and learnt and known and original.value > 0 and known.value > 0:
        floors = relative_gain(private.floor or 0.0, original.value, learnt.floor or 0.0, known.value)
        note = f"utility kept minus attack kept, by {useful}; constant classifiers have {floors:.3g}"
        yield Reading(relative_gain(private.value, original.value, learnt.value, known.value), private.model, note)


for score in SCORE_NAMES:
    register("relative gain" if score == "accuracy" else f"relative gain ({SCORE_NAMES[score]})",
        group="attack", unit="number", combine=functools.partial(_combine, score))  # fmt: skip
