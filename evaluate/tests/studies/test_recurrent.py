"""The LSTM of the comparative analysis: what it refuses anywhere, and where PyTorch is, that it learns the order."""

from __future__ import annotations

import importlib.util

import pytest

from corpusveil.errors import PackageError
from corpusveil.spaces import Space
from corpusveil_evaluate.studies.recurrent import Recurrent
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts
from tests.engines.corpora import WORDS, make_space

TORCH = importlib.util.find_spec("torch") is not None


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Space:
    return make_space(tmp_path_factory.mktemp("space") / "space")


def ordered() -> LabelledTexts:
    """Texts of the same two words in two orders: no bag of words tells them apart."""
    rows = [(f"{WORDS[0]} {WORDS[n]} {WORDS[1]}", "one") for n in range(2, 200)]
    rows += [(f"{WORDS[1]} {WORDS[n]} {WORDS[0]}", "other") for n in range(2, 200)]
    return LabelledTexts([text for text, _ in rows], [label for _, label in rows])


@pytest.mark.skipif(TORCH, reason="PyTorch is installed")
def test_without_pytorch_one_sentence_names_the_extra(space: Space) -> None:
    with pytest.raises(PackageError, match=r"needs PyTorch: pip install 'corpusveil\[transformers\]'"):
        Recurrent(space).fit(ordered(), 0)


@pytest.mark.skipif(not TORCH, reason="PyTorch is not installed")
def test_it_learns_the_order_of_words_the_same_for_a_seed(space: Space) -> None:
    task = ordered()
    model = Recurrent(space, units=16, epochs=20, rate=0.02)
    found = [model.fit(task, 0)(task) for _ in range(2)]
    assert found[0] == found[1]
    assert sum(a == b for a, b in zip(found[0], task.labels, strict=True)) > 0.95 * len(task)
    assert len(model.fit(task, 0)(LabelledTexts(["", "unknownword"], ["one", "other"]))) == 2
