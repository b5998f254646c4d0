"""Similarity by averaged vectors and by local encoders."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from corpusveil.errors import NoFileError, PackageError, ShapeError
from corpusveil.spaces import Space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil_evaluate.statistics.encoders import AveragedVectors, SentenceEncoder
from corpusveil_evaluate.statistics.similarity import cosine


@pytest.fixture(scope="module")
def space() -> Space:
    vectors = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], np.float32)
    return build_space(Vectors(["east", "north", "between", "nowhere"], vectors))


class TestAveragedVectors:
    def test_by_hand(self, space: Space) -> None:
        encoder = AveragedVectors(space)
        assert encoder.label == "averaged space vectors"
        texts = ["East, east north!", "unknown", "", "nowhere BETWEEN"]
        assert encoder.encode(texts) == pytest.approx(np.array([[2 / 3, 1 / 3], [0, 0], [0, 0], [0.5, 0.5]]))

    def test_centred_by_hand(self, space: Space) -> None:
        """The mean of the four vectors is (1/2, 1/2); what has no words stays without a direction."""
        encoder = AveragedVectors(space, centered=True)
        assert encoder.label == "averaged space vectors, centered"
        assert encoder.encode(["east", "", "east north"]) == pytest.approx(np.array([[0.5, -0.5], [0, 0], [0, 0]]))
        assert cosine(["east"], ["north"], encoder) == pytest.approx([-1.0])

    def test_cosines_by_hand_and_never_a_nan(self, space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
        """Equal texts 1, even without words; otherwise 0 where a text has nothing; in batches, too."""
        monkeypatch.setattr("corpusveil_evaluate.statistics.similarity.BATCH", 3)
        originals = ["east", "east", "east 12", "", "12", "unknown", "east", "nowhere"]
        privates = ["north", "between", "EAST", "", "13", "east", "", "east"]
        found = cosine(originals, privates, AveragedVectors(space))
        assert found == pytest.approx([0, math.sqrt(0.5), 1, 1, 0, 0, 0, 0], abs=1e-7)
        with pytest.raises(ShapeError):
            cosine(["a"], [], AveragedVectors(space))


class TestSentenceEncoder:
    def test_the_extra_is_named_when_it_is_missing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "sentence_transformers", None)
        with pytest.raises(PackageError):
            SentenceEncoder(str(tmp_path))

    @pytest.mark.parametrize("name", ["no-such-package", "/no/such/folder", "json"])
    def test_no_model_is_named(self, name: str) -> None:
        with pytest.raises(NoFileError):
            SentenceEncoder(name)

    def test_a_package_that_carries_a_model_is_not_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = tmp_path / "carries_one" / "model"
        folder.mkdir(parents=True)
        (folder / "modules.json").write_text("[]")
        (folder.parent / "__init__.py").write_text("raise RuntimeError('was run')")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setitem(sys.modules, "sentence_transformers", None)
        with pytest.raises(PackageError):
            SentenceEncoder("carries-one")
