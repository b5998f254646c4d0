"""Attribute inference: at chance where nothing is told, at the baseline where everything is, and relative gain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from corpusveil.errors import BadValueError
from corpusveil.evaluation.attacks.attribute_inference import ATTACKERS, Attacker, infer_attribute, relative_gain
from corpusveil.evaluation.utility.labelled_texts import LabelledTexts
from corpusveil.evaluation.utility.text_classifiers import Tfidf
from tests.contracts.spaces import words_of

WORDS = words_of(60)


def authored(rows: int = 300, seed: int = 0, share: float = 0.5) -> LabelledTexts:
    """Return texts of authors, each with a third of the vocabulary that the others hardly use."""
    rng = np.random.default_rng(seed)
    who = (rng.random(rows) < share).astype(int) + (rng.random(rows) < share * 0.5)
    texts = [" ".join(WORDS[(20 * one + int(n)) % 60] for n in rng.integers(0, 24, 10)) for one in who]
    return LabelledTexts(texts, who.tolist(), name="authors")


@pytest.mark.parametrize("attacker", ATTACKERS)
def test_outputs_that_say_nothing_leave_the_attacker_at_the_majority(attacker: Attacker) -> None:
    """Words drawn whatever the author; the same attacker on the original texts is far above (power)."""
    task = authored(400)
    rng = np.random.default_rng(1)
    privates = [[" ".join(rng.choice(WORDS, 10)) for _ in task.texts] for _ in range(5)]
    found = infer_attribute(task, privates, attacker, Tfidf())
    assert found.baseline > found.floor + 0.3
    assert found.mean < found.floor + 0.1


@pytest.mark.parametrize("attacker", ATTACKERS)
def test_unchanged_text_leaves_the_attacker_at_the_baseline(attacker: Attacker) -> None:
    task = authored(200)
    found = infer_attribute(task, [task.texts] * 5, attacker, Tfidf(), measure="macro_f1")
    assert found.values == found.baselines


def test_relative_gain() -> None:
    """Utility falls from 0.9 to 0.72 and the attacker from 0.8 to 0.4: a gain of 0.8 - 0.5."""
    assert relative_gain(0.72, 0.9, 0.4, 0.8) == pytest.approx(0.3)
    with pytest.raises(BadValueError):
        relative_gain(0.5, 0, 0.5, 0.5)


def test_second_texts_that_stand_in_the_clear_are_not_denoised() -> None:
    task = authored(60)
    pairs = LabelledTexts(task.texts, task.labels, task.texts, name="pairs")
    seen: list[tuple[str, ...]] = []

    def readable(texts: Sequence[str]) -> list[str]:
        seen.append(tuple(texts))
        return list(texts)

    private = pairs.with_texts([text[::-1] for text in task.texts])
    infer_attribute(pairs, [private], "static", Tfidf(), fewest=1, readable=readable)
    assert seen == [tuple(private.texts)]
