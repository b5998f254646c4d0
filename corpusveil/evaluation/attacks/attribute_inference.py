"""Attribute inference: what private texts still disclose about their authors, by classifiers on the same models.

A *static* attacker trained on original texts, an *adaptive* attacker on texts released by the same mechanism; both are
tested on private texts (Utpala et al. 2023). Either may *denoise first*: the release, the mechanism's law and language
models are public, so an attacker can start from the result of ``denoise``. The baselines are chance, the constant
classifier, and the attacker on original texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

import numpy as np

from corpusveil.errors import not_a_choice
from corpusveil.evaluation.statistics.registry import register
from corpusveil.evaluation.utility.labelled_texts import LabelledTexts
from corpusveil.evaluation.utility.text_classifiers import Model
from corpusveil.evaluation.utility.training_modes import Mode, Options, Score, Summary, utility

Attacker = Literal["static", "adaptive"]
ATTACKERS: tuple[Attacker, ...] = get_args(Attacker)
ATTRIBUTE_NAMES: dict[Score, str] = {"accuracy": "attribute", "macro_f1": "attribute (macro F1)"}
"""What reports call an attacker's success by each score."""
Readable = Callable[[Sequence[str]], list[str]]
"""A reader's denoising of a release before an attack."""
_MODES: dict[Attacker, Mode] = {"static": "original-private", "adaptive": "private-private"}


@dataclass(frozen=True, slots=True)
class Inference:
    """An attacker's success. ``summary`` holds it over seeds, with the attacker on original texts as baseline.

    ``chance`` is the score of guessing labels uniformly; for macro F1 its limit for many texts. ``denoised`` says that
    the attacker denoised private texts before training.
    """

    attacker: Attacker
    summary: Summary
    chance: float
    denoised: bool = False

    @property
    def mean(self) -> float:
        return self.summary.mean

    @property
    def majority(self) -> float:
        """The score of always predicting the most frequent label."""
        return self.summary.floor

    def as_dict(self) -> dict[str, Any]:
        """Return figures by name, for JSON."""
        return {
            **self.summary.as_dict(), "attacker": self.attacker, "chance": self.chance,
            "majority": self.majority, "denoised": self.denoised,
        }  # fmt: skip


def infer_attribute(
    original: LabelledTexts,
    privates: Sequence[Sequence[str] | LabelledTexts],
    attacker: Attacker,
    model: Model,
    seeds: Sequence[int] | None = None,
    *,
    readable: Readable | None = None,
    **options: Unpack[Options],
) -> Inference:
    """Attack private versions of a task whose labels are the attribute; arguments are those of ``utility``.

    With ``readable``, such as that of a ``Denoiser``, the attacker denoises every private version first, for training
    and for testing.
    """
    if attacker not in ATTACKERS:
        raise not_a_choice("attacker", attacker, ATTACKERS)
    if readable is not None:
        privates = [_denoised(original, private, readable) for private in privates]
    summary = utility(original, privates, _MODES[attacker], model, seeds, **options)
    return Inference(attacker, summary, chance(original, summary.measure), readable is not None)


def _denoised(
    original: LabelledTexts, private: Sequence[str] | LabelledTexts, readable: Readable
) -> Sequence[str] | LabelledTexts:
    if not isinstance(private, LabelledTexts):
        return readable(private)
    clear = private.pairs is None or private.pairs == original.pairs  # second texts that are not private
    return private.with_texts(readable(private.texts), private.pairs if clear else readable(private.pairs or ()))


def chance(task: LabelledTexts, measure: Score) -> float:
    """Return the score of uniform guesses: 1/k of k labels are right; F1 of a label of share q is 2q / (1 + kq)."""
    shares = np.array(list(Counter(task.labels).values())) / len(task)
    if measure != "macro_f1":
        return 1 / shares.size
    return float(np.mean(2 * shares / (1 + shares.size * shares)))


ADAPTIVE = register("attribute, adaptive", group="attack", swept=True, compared=3)
