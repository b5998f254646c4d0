"""What is measured of a private version of a task, for the cells of several studies; figures by name, from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corpusveil.errors import UserError
from corpusveil.evaluation.language import KneserNey
from corpusveil.evaluation.models import Model
from corpusveil.evaluation.similarity import Encoder, cosine
from corpusveil.evaluation.statistics import WordList, changed_share, english_share, jaccard, surviving_rare
from corpusveil.evaluation.tasks import Task
from corpusveil.evaluation.utility import MODES, Mode, Scores, score


def scored(scores: Scores, prefix: str) -> dict[str, float]:
    """Return accuracy, F1 (micro is accuracy) and the constant classifier's, under names that begin with a prefix."""
    return {
        f"{prefix}accuracy": scores.accuracy,
        f"{prefix}macro_f1": scores.macro_f1,
        f"{prefix}floor": scores.floor_accuracy,
        f"{prefix}floor_macro_f1": scores.floor_macro_f1,
    }


def learnt(
    original: Task, private: Task, model: Model, seed: int, modes: Sequence[Mode] = MODES, prefix: str = ""
) -> dict[str, float]:
    """Return how well a model does in each mode; names are ``private-private:accuracy`` and so on."""
    train, test = original.train_and_test(seed)
    trained: dict[str, Any] = {}
    found: dict[str, float] = {}
    tasks = {"original": original, "private": private}
    for mode in modes:
        source, target = mode.split("-")
        if source not in trained:
            trained[source] = model.fit(tasks[source].take(train), seed)
        tested = tasks[target].take(test)
        labels = [original.labels[row] for row in train.tolist()]
        found |= scored(score(trained[source](tested), tested.labels, labels), f"{prefix}{mode}:")
    return found


def baseline(original: Task, model: Model, seed: int, prefix: str = "") -> dict[str, float]:
    """Return how well a model does that is trained and tested on original texts."""
    train, test = original.train_and_test(seed)
    tested = original.take(test)
    labels = [original.labels[row] for row in train.tolist()]
    found = model.fit(original.take(train), seed)(tested)
    return scored(score(found, tested.labels, labels), f"{prefix}original-original:")


def compared(
    originals: Sequence[str],
    privates: Sequence[str],
    encoder: Encoder | None = None,
    language: KneserNey | None = None,
    words: WordList | None = None,
) -> dict[str, float]:
    """Return similarity (``cs``), ``pp``, ``low``, ``jaccard``, ``perplexity`` and ``english`` of private texts.

    ``pp`` is missing where no words can be laid side by side, and what has no encoder, model or list.
    """
    found = {"low": surviving_rare(originals, privates), "jaccard": float(np.mean(jaccard(originals, privates)))}
    try:
        changed = changed_share(originals, privates)
        found |= {"pp": changed.share, "unpaired": changed.left_out / changed.texts}
    except UserError:  # a mechanism or policy that adds or drops words leaves nothing to compare by position
        found["unpaired"] = 1.0
    if encoder is not None:
        found["cs"] = float(np.mean(cosine(originals, privates, encoder)))
    if language is not None and any(text.strip() for text in privates):
        found["perplexity"] = language.perplexity(privates).value
    if words is not None:
        found["english"] = english_share(privates, words)
    return found


def drawn_words(size: int, count: int, seed: int = 0) -> Any:
    """Return ids of random words of a vocabulary, int64 [count], without repeats; all where there are fewer."""
    return np.sort(np.random.default_rng(seed).permutation(size)[:count]).astype(np.int64)
