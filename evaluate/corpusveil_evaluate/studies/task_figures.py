"""The measurements of a private version of a task, for the cells of several studies; figures by name, from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corpusveil_evaluate.statistics.encoders import Encoder
from corpusveil_evaluate.statistics.perplexity import KneserNey
from corpusveil_evaluate.statistics.statistic import Evidence, statistics
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts
from corpusveil_evaluate.utility.text_classifiers import Model
from corpusveil_evaluate.utility.training_modes import BASELINE, MODES, Scores, scores_in


def named_scores(scores: Scores, prefix: str) -> dict[str, float]:
    """Return accuracy, F1 (micro is accuracy) and the constant classifier's, under names that begin with a prefix."""
    return {
        f"{prefix}accuracy": scores.accuracy,
        f"{prefix}macro_f1": scores.macro_f1,
        f"{prefix}floor": scores.floor_accuracy,
        f"{prefix}floor_macro_f1": scores.floor_macro_f1,
    }


def mode_scores(
    original: LabelledTexts,
    private: LabelledTexts,
    model: Model,
    seed: int,
    modes: Sequence[str] = MODES,
    prefix: str = "",
) -> dict[str, float]:
    """Return the scores of a model in each mode; names are ``private-private:accuracy`` and so on."""
    figures: dict[str, float] = {}
    for mode in modes:
        figures |= named_scores(scores_in(mode, original, private, model, seed), f"{prefix}{mode}:")
    return figures


def original_scores(original: LabelledTexts, model: Model, seed: int, prefix: str = "") -> dict[str, float]:
    """Return the scores of a model that is trained and tested on original texts."""
    return mode_scores(original, original, model, seed, (BASELINE,), prefix)


def text_statistics(
    originals: Sequence[str],
    privates: Sequence[str],
    encoder: Encoder | None = None,
    language: KneserNey | None = None,
) -> dict[str, float]:
    """Return the statistics of private texts by key, except those whose encoder or model is missing."""
    perplexity = None if language is None else lambda some: language.perplexity(some).value
    evidence = Evidence(originals, privates, None, encoder, perplexity)
    readings = {statistic.key: statistic.value(evidence) for statistic in statistics() if statistic.key}
    return {key: reading.value for key, reading in readings.items() if reading is not None}


def drawn_words(size: int, count: int) -> Any:
    """Return ids of random words of a vocabulary, int64 [count], without repeats; all words if there are fewer."""
    return np.sort(np.random.default_rng(0).permutation(size)[:count]).astype(np.int64)
