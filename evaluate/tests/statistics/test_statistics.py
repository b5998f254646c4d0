"""Statistics against values by hand, enumeration and sampling, with controls that must fail."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from corpusveil.errors import DataError, MissingError, PackageError, SettingError, UserError
from corpusveil.mechanisms import make_mechanism
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil_evaluate.statistics.changed_words import changed_share
from corpusveil_evaluate.statistics.encoders import AveragedVectors, SentenceEncoder
from corpusveil_evaluate.statistics.shared_words import english_share, jaccard, surviving_rare
from corpusveil_evaluate.statistics.similarity import cosine
from corpusveil_evaluate.statistics.statistic import Evidence, register, statistics
from corpusveil_evaluate.statistics.word_statistics import word_statistics
from tests.calls import refused
from tests.contracts.mechanism import matrix
from tests.contracts.spaces import words_of
from tests.engines.corpora import TEST_KEY
from tests.mechanisms.spaces import normal


@pytest.fixture(scope="module")
def plane() -> Space:
    vectors = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], np.float32)
    return build_space(Vectors(["east", "north", "between", "nowhere"], vectors))


def test_a_group_that_no_report_shows_is_refused_at_registration() -> None:
    with refused("wrong-setting", "sizes", "group", "langauge", "language"):
        register("sizes", group="langauge")
    assert "sizes" not in {statistic.name for statistic in statistics()}


class TestAveragedVectors:
    def test_by_hand(self, plane: Space) -> None:
        encoder = AveragedVectors(plane)
        assert encoder.label == "averaged space vectors"
        texts = ["East, east north!", "unknown", "", "nowhere BETWEEN"]
        assert encoder.encode(texts) == pytest.approx(np.array([[2 / 3, 1 / 3], [0, 0], [0, 0], [0.5, 0.5]]))

    def test_centred_by_hand(self, plane: Space) -> None:
        """The mean of the four vectors is (1/2, 1/2); what has no words stays without a direction."""
        encoder = AveragedVectors(plane, centered=True)
        assert encoder.label == "averaged space vectors, centered"
        assert encoder.encode(["east", "", "east north"]) == pytest.approx(np.array([[0.5, -0.5], [0, 0], [0, 0]]))
        assert cosine(["east"], ["north"], encoder) == pytest.approx([-1.0])

    def test_cosines_by_hand_and_never_a_nan(self, plane: Space, monkeypatch: pytest.MonkeyPatch) -> None:
        """Equal texts 1, even without words; otherwise 0 where a text has nothing; in batches, too."""
        monkeypatch.setattr("corpusveil_evaluate.statistics.similarity.BATCH", 3)
        originals = ["east", "east", "east 12", "", "12", "unknown", "east", "nowhere"]
        privates = ["north", "between", "EAST", "", "13", "east", "", "east"]
        found = cosine(originals, privates, AveragedVectors(plane))
        assert found == pytest.approx([0, math.sqrt(0.5), 1, 1, 0, 0, 0, 0], abs=1e-7)
        with pytest.raises(SettingError):
            cosine(["a"], [], AveragedVectors(plane))


class TestSentenceEncoder:
    def test_the_extra_is_named_when_it_is_missing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "sentence_transformers", None)
        with pytest.raises(PackageError):
            SentenceEncoder(str(tmp_path))

    @pytest.mark.parametrize("name", ["no-such-package", "/no/such/folder", "json"])
    def test_no_model_is_named(self, name: str) -> None:
        with pytest.raises(MissingError):
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


KEY = Key(TEST_KEY)
ANIMALS = ("cat", "dog", "cow", "hen", "fox", "owl")


@pytest.fixture(scope="module")
def space() -> Space:
    return build_space(Vectors(words_of(60), normal(60, 3)))


@pytest.fixture(scope="module")
def animals() -> Space:
    return build_space(Vectors(list(ANIMALS), normal(len(ANIMALS), 2)))


class TestWordStatistics:
    def test_samples_have_the_exact_expectation_and_that_of_no_other_epsilon(self, space: Space) -> None:
        mechanism = make_mechanism("ring-geometric", space)
        word = np.full(2000, 7)
        at = word_statistics(mechanism, 3.0, word, 50, KEY)
        other = word_statistics(mechanism, 3.3, word, 50, KEY)
        assert at.retention_exact is not None
        assert at.distinct_exact is not None
        assert other.retention_exact is not None
        assert other.distinct_exact is not None
        error = np.sqrt(at.retention_exact * (1 - at.retention_exact) / (50 * 2000))
        spread = at.distinct_deviation / np.sqrt(2000)
        assert abs(at.retention - at.retention_exact) < 5 * error
        assert abs(at.distinct - at.distinct_exact) < 5 * spread
        assert abs(at.retention - other.retention_exact) > 8 * error, "another epsilon is told apart"
        assert abs(at.distinct - other.distinct_exact) > 8 * spread, "another epsilon is told apart"

    def test_without_a_closed_form_there_are_samples_only(self, space: Space) -> None:
        found = word_statistics(make_mechanism("mahalanobis", space), 5.0, np.arange(20), 30, KEY)
        assert (found.retention_exact, found.distinct_exact) == (None, None)
        assert 0 < found.retention < 1
        assert (found.n_w, found.s_w) == (found.retention, found.distinct)

    def test_exact_distinct_outputs_are_those_of_all_sequences(self, animals: Space) -> None:
        mechanism = make_mechanism("santext", animals)
        law = matrix(mechanism, 1.5)
        expected = 0.0
        for outputs in itertools.product(range(6), repeat=4):
            expected += float(np.prod(law[2, list(outputs)])) * len(set(outputs))
        found = word_statistics(mechanism, 1.5, np.array([2]), 4, KEY)
        assert found.distinct_exact == pytest.approx(expected, rel=1e-12)
        assert found.retention_exact == pytest.approx(law[2, 2], rel=1e-12)


class TestChangedShare:
    def test_by_position_and_without_capitals(self) -> None:
        found = changed_share(["The cat saw 2 dogs.", "No, no!"], ["the fox saw nine dogs.", "no, no!"])
        assert (found.share, found.words, found.left_out) == (1 / 6, 6, 0)

    def test_a_mask_is_one_token_and_a_change(self) -> None:
        found = changed_share(["Mail a@b.org or cat 12"], ["mail [contact] or [word] [number]"])
        assert (found.share, found.words, found.left_out) == (1 / 3, 3, 0)

    def test_words_are_laid_side_by_side_where_marks_are_gone(self) -> None:
        found = changed_share(["cat, dog!", "a b c"], ["cat fox", "a b"])
        assert (found.share, found.words, found.texts, found.left_out) == (0.5, 2, 2, 1)

    def test_content_words_are_all_but_stop_words(self) -> None:
        """In capitals, too; nothing is said of texts without one."""
        (content,) = (statistic for statistic in statistics() if statistic.name == "content words unchanged")
        reading = content.value(Evidence(["The cat is IN the box"], ["the dog is on a box"]))
        assert reading is not None
        assert reading.value == 1 / 2
        assert content.value(Evidence(["it is the"], ["it is a"])) is None


def test_rare_words_survive_anywhere_and_ties_are_alphabetical(animals: Space) -> None:
    """Counts: d 1, c 1, b 2, a 3. The three rarest are c, d, b; c and b survive in other texts. A mask is none."""
    originals, privates = ["a a a b", "b d c"], ["C x", "x b a"]
    found = [surviving_rare(originals, privates, some) for some in (1, 2, 3)]
    assert found == pytest.approx([1, 1 / 2, 2 / 3])
    assert surviving_rare(originals, privates) == 0.75
    assert surviving_rare(["word number"], ["[word] [number]"]) == 0.0


def test_words_of_a_space_are_of_word_tokens_in_any_case(animals: Space) -> None:
    assert english_share(["Cat xyzzy 12, cat!", "owl [word]"], animals) == 0.75


def test_shared_words_by_hand() -> None:
    found = jaccard(["a b b C", "x y", "", "12", "a"], ["c d a", "z", "", "", ""])
    assert found.tolist() == [0.5, 0.0, 1.0, 1.0, 0.0]


def test_what_has_no_figure_is_refused(space: Space, animals: Space) -> None:
    mechanism = make_mechanism("santext", space)
    for words, runs in (([60], 5), ([-1], 5), ([], 5), ([1], 0)):
        with pytest.raises(UserError):
            word_statistics(mechanism, 1.0, np.array(words, int), runs, KEY)
    for error, call in (
        (SettingError, lambda: surviving_rare(["a"], ["a"], 0)),
        (DataError, lambda: surviving_rare(["12"], ["a"])),
        (DataError, lambda: english_share(["12"], animals)),
        (DataError, lambda: changed_share(["a b c"], ["a b"])),
        (SettingError, lambda: changed_share(["a"], ["a", "b"])),
        (SettingError, lambda: changed_share("abc", "abc")),
    ):
        with pytest.raises(error):
            call()
