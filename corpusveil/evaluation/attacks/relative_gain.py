"""Relative gain (Mattern et al. 2022): the loss of utility set against that of the attacker."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from corpusveil.errors import BadValueError, MismatchError
from corpusveil.evaluation.attacks.attribute_inference import ATTRIBUTE_NAMES, Inference
from corpusveil.evaluation.statistics.figure import Figure
from corpusveil.evaluation.statistics.registry import register
from corpusveil.evaluation.statistics.statistic import Reading
from corpusveil.evaluation.utility.training_modes import SCORE_NAMES, Score, Summary, paired_difference


def relative_gain(U_p: float, U_o: float, P_p: float, P_o: float) -> float:
    """Return U_p / U_o - P_p / P_o: the share of utility kept minus that of the (adaptive) attacker's success."""
    if not (U_o > 0 and P_o > 0):
        raise BadValueError(f"U_o = {U_o}, P_o = {P_o}: relative gain divides by both; give numbers above 0.")
    return U_p / U_o - P_p / P_o


@dataclass(frozen=True, slots=True)
class Gain:
    """Relative gain, one value per seed.

    ``floor`` is the gain for texts without information, where both classifiers are constant: such a gain is no success.
    ``useful`` is False unless utility exceeds its constant classifier by more than seeds differ (paired t, 95 %).
    """

    values: tuple[float, ...]
    floor: float
    useful: bool

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def deviation(self) -> float:
        return float(np.std(self.values, ddof=1))


def gain(useful: Summary, attack: Inference) -> Gain:
    """Return the relative gain of a release from both its measurements, of equal seeds. The attacker is adaptive."""
    other = attack.summary
    if attack.attacker != "adaptive":
        raise BadValueError("Relative gain is defined for the adaptive attacker; use it to infer the attribute.")
    if useful.seeds != other.seeds:
        raise MismatchError("Utility and attack have different seeds; measure both on the same releases.")
    values = [
        relative_gain(*four)
        for four in zip(useful.values, useful.baselines, other.values, other.baselines, strict=True)
    ]
    floor = relative_gain(useful.floor, useful.baseline, other.floor, other.baseline)
    return Gain(tuple(values), floor, paired_difference(useful.values, useful.floors).low > 0)


def _combine(by: Score, released: Mapping[str, Figure]) -> Iterator[Reading]:
    useful, attack = SCORE_NAMES[by], ATTRIBUTE_NAMES[by]
    private, original = (released.get(f"{useful}, {name} to {name}") for name in ("private", "original"))
    learnt, known = (released.get(f"{attack}, {name}") for name in ("adaptive", "from original texts"))
    if private and original and learnt and known and original.value > 0 and known.value > 0:
        floors = relative_gain(private.floor or 0.0, original.value, learnt.floor or 0.0, known.value)
        note = f"utility kept minus attack kept, by {useful}; constant classifiers have {floors:.3g}"
        yield Reading(relative_gain(private.value, original.value, learnt.value, known.value), private.model, note)


for place, score in enumerate(SCORE_NAMES, 210):
    register("relative gain" if score == "accuracy" else f"relative gain ({SCORE_NAMES[score]})",
        group="attack", unit="number", place=place, combine=functools.partial(_combine, score))  # fmt: skip
