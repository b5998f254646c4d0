"""Attribute inference: at chance where nothing is told, at the baseline where everything is, and relative gain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from corpusveil.errors import BadValueError
from corpusveil_evaluate.attacks.attribute_inference import infer_attribute, relative_gain
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts
from corpusveil_evaluate.utility.text_classifiers import Tfidf
from tests.contracts.spaces import words_of


def test_relative_gain() -> None:
    """Utility falls from 0.9 to 0.72 and the attacker from 0.8 to 0.4: a gain of 0.8 - 0.5."""
    assert relative_gain(0.72, 0.9, 0.4, 0.8) == pytest.approx(0.3)
    with pytest.raises(BadValueError):
        relative_gain(0.5, 0, 0.5, 0.5)


def test_second_texts_that_stand_in_the_clear_are_not_denoised() -> None:
    texts = [" ".join(row) for row in np.random.default_rng(0).choice(words_of(60), (60, 10))]
    pairs = LabelledTexts(texts, ["x", "y"] * 30, texts, name="pairs")
    seen: list[tuple[str, ...]] = []

    def readable(texts: Sequence[str]) -> list[str]:
        seen.append(tuple(texts))
        return list(texts)

    private = pairs.with_texts([text[::-1] for text in texts])
    infer_attribute(pairs, [private], "static", Tfidf(), fewest=1, readable=readable)
    assert seen == [tuple(private.texts)]
