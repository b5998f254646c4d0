"""Attribute inference: at chance where nothing is told, at the baseline where everything is, and relative gain."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest

from corpusveil.budget import Budget
from corpusveil.errors import BadValueError
from corpusveil.evaluation.attacks.attribute_inference import ATTACKERS, Attacker, infer_attribute, relative_gain
from corpusveil.evaluation.statistics.perplexity import KneserNey
from corpusveil.evaluation.utility.labelled_texts import LabelledTexts
from corpusveil.evaluation.utility.text_classifiers import Tfidf
from corpusveil.language.denoise import Denoiser
from corpusveil.mechanisms import Mechanism, make
from corpusveil.sampling.keys import Key
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.identities import RowNumbers
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.table import privatize
from tests.contracts.spaces import small_space, words_of

WORDS = words_of(60)


def authored(rows: int = 300, seed: int = 0, share: float = 0.5) -> LabelledTexts:
    """Return texts of authors, each with a third of the vocabulary that the others hardly use."""
    rng = np.random.default_rng(seed)
    who = (rng.random(rows) < share).astype(int) + (rng.random(rows) < share * 0.5)
    texts = [" ".join(WORDS[(20 * one + int(n)) % 60] for n in rng.integers(0, 24, 10)) for one in who]
    return LabelledTexts(texts, who.tolist(), name="authors")


def key(number: int) -> Key:
    return Key(hashlib.sha256(bytes([number])).digest())


def released(
    task: LabelledTexts, epsilon: float, seeds: int = 5, mechanism: Mechanism | None = None
) -> list[list[str]]:
    """Return releases under a key each."""
    mechanism = make("santext", small_space(words=WORDS)) if mechanism is None else mechanism
    made = [Release(mechanism, Budget(epsilon), key=key(n)) for n in range(1, seeds + 1)]
    return [privatize(list(task.texts), release, RowNumbers("authors")) for release in made]


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


def test_an_attacker_who_denoises_first_learns_more() -> None:
    """Each author says words in an order of his own: context gives back what the mechanism took."""
    rng = np.random.default_rng(2)

    def said(author: int) -> str:
        begin = 30 * author + int(rng.integers(0, 20))
        return " ".join(WORDS[30 * author + (begin + k) % 30] for k in range(10))

    who = (rng.random(600) < 0.5).astype(int)
    task = LabelledTexts([said(int(one)) for one in who], who.tolist(), name="authors")
    public = [said(one) for one in (0, 1) for _ in range(400)]
    mechanism = make("ring-geometric", small_space(words=WORDS))
    privates = released(task, 0.2, mechanism=mechanism)
    readable = Denoiser(mechanism, Budget(0.2), TextPolicy(), KneserNey.of_texts(public).model).readable
    for attacker in ATTACKERS:
        drawn = infer_attribute(task, privates, attacker, Tfidf())
        first = infer_attribute(task, privates, attacker, Tfidf(), readable=readable)
        assert first.mean > drawn.mean + 0.05
        assert first.baselines == drawn.baselines


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
