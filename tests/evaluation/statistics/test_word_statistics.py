"""Statistics against hand-computed values, enumeration and sampling, with controls that must fail."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.errors import BadTypeError, BadValueError, DataError, ShapeError, UserError
from corpusveil.evaluation.statistics.changed_words import changed_share
from corpusveil.evaluation.statistics.listed_words import english_share
from corpusveil.evaluation.statistics.rare_words import surviving_rare
from corpusveil.evaluation.statistics.shared_words import jaccard
from corpusveil.evaluation.statistics.statistic import Evidence, statistics
from corpusveil.evaluation.statistics.word_statistics import relative, word_statistics
from corpusveil.evaluation.terms import WordList
from corpusveil.mechanisms import make
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from tests.contracts.mechanism import matrix
from tests.contracts.spaces import words_of
from tests.engines.corpora import TEST_KEY
from tests.mechanisms.spaces import normal

KEY = Key(TEST_KEY)
ANIMALS = ("cat", "dog", "cow", "hen", "fox", "owl")


@pytest.fixture(scope="module")
def space() -> Space:
    return build_space(Vectors(words_of(60), normal(60, 3)))


@pytest.fixture(scope="module")
def animals() -> Space:
    return build_space(Vectors(list(ANIMALS), normal(len(ANIMALS), 2)))


class TestWordStatistics:
    @pytest.mark.parametrize("name", ["santext", "ring-geometric", "tem"])
    def test_samples_have_the_exact_expectation_and_that_of_no_other_epsilon(self, space: Space, name: str) -> None:
        mechanism = make(name, space)
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

    def test_exact_distinct_outputs_are_those_of_all_sequences(self, animals: Space) -> None:
        mechanism = make("santext", animals)
        law = matrix(mechanism, 1.5)
        expected = 0.0
        for outputs in itertools.product(range(6), repeat=4):
            expected += float(np.prod(law[2, list(outputs)])) * len(set(outputs))
        found = word_statistics(mechanism, 1.5, np.array([2]), 4, KEY)
        assert found.distinct_exact == pytest.approx(expected, rel=1e-12)
        assert found.retention_exact == pytest.approx(law[2, 2], rel=1e-12)

    def test_means_and_deviations_are_over_the_words(self, space: Space) -> None:
        """One word twice counts twice, exactly and in samples; percentages are out of the runs."""
        mechanism = make("santext", space)
        law = matrix(mechanism, 2.0)
        found = word_statistics(mechanism, 2.0, np.array([3, 3, 9]), 10, KEY)
        assert found.retention_exact == pytest.approx((2 * law[3, 3] + law[9, 9]) / 3, rel=1e-12)
        assert found.n_w == pytest.approx(100 * (2 * law[3, 3] + law[9, 9]) / 3, rel=1e-12)
        assert found.distinct_exact is not None
        assert found.s_w == pytest.approx(10 * found.distinct_exact)
        sure = word_statistics(mechanism, 1e6, np.arange(60), 10, KEY)
        assert (sure.retention, sure.retention_deviation, sure.distinct, sure.distinct_deviation) == (
            1.0,
            0.0,
            1.0,
            0.0,
        )
        assert sure.words == 60

    def test_without_a_closed_form_there_are_samples_only(self, space: Space) -> None:
        found = word_statistics(make("mahalanobis", space), 5.0, np.arange(20), 30, KEY)
        assert found.retention_exact is None
        assert found.distinct_exact is None
        assert 0 < found.retention < 1
        assert found.n_w == 100 * found.retention
        assert found.s_w == pytest.approx(found.distinct * 100 / 30)

    def test_batches_change_nothing_that_is_expected(self, space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("corpusveil.evaluation.statistics.word_statistics.AT_ONCE", 64)
        found = word_statistics(make("santext", space), 2.0, np.tile(np.arange(60), 20), 30, KEY)
        assert found.retention == pytest.approx(found.retention_exact, rel=0.05)
        assert found.distinct == pytest.approx(found.distinct_exact, rel=0.02)

    def test_bad_calls_are_refused(self, space: Space) -> None:
        mechanism = make("santext", space)
        for words, runs in ((np.array([60]), 5), (np.array([-1]), 5), (np.array([], int), 5), (np.array([1]), 0)):
            with pytest.raises(UserError):
                word_statistics(mechanism, 1.0, words, runs, KEY)
        with pytest.raises(BadValueError):
            word_statistics(mechanism, -1.0, np.array([1]), 5, KEY)

    def test_relative_is_the_ratio(self) -> None:
        assert relative([32.1, 0.0], [5.1, 97.5]) == pytest.approx([32.1 / 5.1, 0.0])
        with pytest.raises(BadValueError):
            relative(1.0, 0.0)


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

    def test_what_can_not_be_compared_is_said(self) -> None:
        with pytest.raises(DataError):
            changed_share(["a b c"], ["a b"])
        with pytest.raises(ShapeError):
            changed_share(["a"], ["a", "b"])
        with pytest.raises(BadTypeError):
            changed_share("abc", "abc")
        assert changed_share(["12", ""], ["13", ""]).share == 0.0

    def test_content_words_are_all_but_stop_words(self) -> None:
        """In capitals, too; nothing is said of texts without one."""
        (content,) = (statistic for statistic in statistics() if statistic.name == "content words unchanged")
        reading = content.value(Evidence(["The cat is IN the box"], ["the dog is on a box"]))
        assert reading is not None
        assert reading.value == 1 / 2
        assert content.value(Evidence(["it is the"], ["it is a"])) is None

    def test_of_a_release_is_what_the_tokens_say(self, animals: Space) -> None:
        """Words, unknown words, numbers, contacts and marks through a release: every word token finds its output."""
        texts = ["The cat, 17 dogs: a@b.org and the owl!", "Hen. Fox. Cow."] * 50
        policy = cv.TextPolicy(unknown_words="mask", numbers="resample", contacts="mask")
        release = cv.Release(make("santext", animals), cv.Budget(epsilon=1.0), policy, KEY)
        private = cv.privatize(texts, release, ids=cv.RowNumbers("animals"))
        found = changed_share(texts, private)
        assert (found.words, found.left_out) == (50 * 9, 0)
        same = 0
        for text, other in zip(texts, private, strict=True):
            for mark in ",:!.":
                text, other = text.replace(mark, " "), other.replace(mark, " ")  # noqa: PLW2901
            pairs = zip(text.replace("a@b org", "@").lower().split(), other.lower().split(), strict=True)
            same += sum(one == two for one, two in pairs if one.isalpha())
        assert found.share == pytest.approx(1 - same / (50 * 9))


class TestSurvivingRare:
    def test_ties_are_alphabetical_and_survival_is_anywhere(self) -> None:
        """Counts: d 1, c 1, b 2, a 3. The three rarest are c, d, b; c and b survive in other texts."""
        originals, privates = ["a a a b", "b d c"], ["C x", "x b a"]
        assert surviving_rare(originals, privates, 3) == pytest.approx(2 / 3)
        assert surviving_rare(originals, privates, 1) == 1.0
        assert surviving_rare(originals, privates, 2) == 0.5
        assert surviving_rare(originals, privates) == 0.75

    def test_a_mask_is_no_survivor(self) -> None:
        assert surviving_rare(["word number"], ["[word] [number]"]) == 0.0

    def test_against_a_plain_count(self) -> None:
        rng = np.random.default_rng(2)
        words = [f"w{letter}{other}" for letter in "abcdefghij" for other in "abcdefghij"]
        originals = [" ".join(rng.choice(words, 7)) for _ in range(40)]
        privates = [" ".join(rng.choice(words, 4)) for _ in range(20)]
        counts: dict[str, int] = {}
        for word in " ".join(originals).split():
            counts[word] = counts.get(word, 0) + 1
        rare = sorted(counts, key=lambda word: (counts[word], word))[:30]
        there = set(" ".join(privates).split())
        assert surviving_rare(originals, privates, 30) == pytest.approx(sum(word in there for word in rare) / 30)

    def test_bad_calls_are_refused(self) -> None:
        with pytest.raises(DataError):
            surviving_rare(["12"], ["a"])
        with pytest.raises(BadValueError):
            surviving_rare(["a"], ["a"], 0)


class TestEnglishShare:
    def test_is_of_word_tokens_in_any_case(self, animals: Space, tmp_path: Path) -> None:
        assert english_share(["Cat xyzzy 12, cat!", "owl [word]"], WordList.of_space(animals)) == 0.75
        (tmp_path / "list.txt").write_text("Cat\nowl\n")
        words = WordList.of_file(str(tmp_path / "list.txt"))
        assert words.label == "list list.txt, 2 words"
        assert english_share(["cat fox"], words) == 0.5
        assert WordList.of_space(animals).label.endswith("6 words")

    def test_without_words_there_is_no_share(self, animals: Space) -> None:
        with pytest.raises(DataError):
            english_share(["12"], WordList.of_space(animals))


class TestJaccard:
    def test_by_hand(self) -> None:
        found = jaccard(["a b b C", "x y", "", "12", "a"], ["c d a", "z", "", "", ""])
        assert found.tolist() == [0.5, 0.0, 1.0, 1.0, 0.0]

    def test_against_sets(self) -> None:
        rng = np.random.default_rng(4)
        one, two = ([" ".join(rng.choice(words_of(30), rng.integers(1, 9))) for _ in range(200)] for _ in range(2))
        expected = [
            len(set(a.split()) & set(b.split())) / len(set(a.split()) | set(b.split()))
            for a, b in zip(one, two, strict=True)
        ]
        assert jaccard(one, two) == pytest.approx(expected)
