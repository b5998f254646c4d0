"""Attribute inference: what private texts still tell about who wrote them, by classifiers on the same models.

A *static* attacker trained on original texts, an *adaptive* one on texts released by the same mechanism; both are
tested on private ones (Utpala et al. 2023). Beside each stand chance, the constant classifier and the attacker on
original texts. Relative gain (Mattern et al. 2022) sets the loss of utility against that of the attacker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

import numpy as np

from corpusveil.errors import UserError
from corpusveil.evaluation.models import Model
from corpusveil.evaluation.tasks import Task
from corpusveil.evaluation.utility import Measure, Mode, Options, Summary, paired_difference, utility

Attacker = Literal["static", "adaptive"]
ATTACKERS: tuple[Attacker, ...] = get_args(Attacker)
_MODES: dict[Attacker, Mode] = {"static": "original-private", "adaptive": "private-private"}


@dataclass(frozen=True, slots=True)
class Inference:
    """An attacker's success. ``summary`` holds it over seeds, with the attacker on original texts as baseline.

    ``chance`` is what guessing labels uniformly reaches; for macro F1 its value in the limit of many texts.
    """

    attacker: Attacker
    summary: Summary
    chance: float

    @property
    def mean(self) -> float:
        return self.summary.mean

    @property
    def majority(self) -> float:
        """What saying the most frequent label reaches."""
        return self.summary.floor

    def as_dict(self) -> dict[str, Any]:
        """Return figures by name, for JSON."""
        return {**self.summary.as_dict(), "attacker": self.attacker, "chance": self.chance, "majority": self.majority}


def infer_attribute(
    original: Task,
    privates: Sequence[Sequence[str] | Task],
    attacker: Attacker,
    model: Model,
    seeds: Sequence[int] | None = None,
    **options: Unpack[Options],
) -> Inference:
    """Attack private versions of a task whose labels are the attribute; arguments are those of ``utility``."""
    if attacker not in ATTACKERS:
        raise UserError(f"attacker = {attacker!r}: it may be {' or '.join(ATTACKERS)}.")
    summary = utility(original, privates, _MODES[attacker], model, seeds, **options)
    return Inference(attacker, summary, chance(original, summary.measure))


def chance(task: Task, measure: Measure) -> float:
    """Return what uniform guesses reach: 1/k of k labels right; F1 of a label of share q is 2q / (1 + kq)."""
    shares = np.array(list(Counter(task.labels).values())) / len(task)
    if measure != "macro_f1":
        return 1 / shares.size
    return float(np.mean(2 * shares / (1 + shares.size * shares)))


def relative_gain(U_p: float, U_o: float, P_p: float, P_o: float) -> float:
    """Return U_p / U_o - P_p / P_o: the share of utility kept less that of the (adaptive) attacker's success."""
    if not (U_o > 0 and P_o > 0):
        raise UserError(f"U_o = {U_o}, P_o = {P_o}: relative gain divides by both, so they are above 0.")
    return U_p / U_o - P_p / P_o


@dataclass(frozen=True, slots=True)
class Gain:
    """Relative gain, one value a seed.

    ``floor`` is that of texts which tell nothing, where both classifiers are constant: a gain there is no success.
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
        raise UserError("Relative gain is defined by the adaptive attacker; infer the attribute with that.")
    if useful.seeds != other.seeds:
        raise UserError("Utility and attack are of different seeds; measure both on the same releases.")
    values = [
        relative_gain(*four)
        for four in zip(useful.values, useful.baselines, other.values, other.baselines, strict=True)
    ]
    floor = relative_gain(useful.floor, useful.baseline, other.floor, other.baseline)
    return Gain(tuple(values), floor, paired_difference(useful.values, useful.floors).low > 0)
