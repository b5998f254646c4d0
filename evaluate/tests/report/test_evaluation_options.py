"""Further options of an evaluation: pairs, other mechanisms, models, lists of words, differences."""

from __future__ import annotations

import json
import random
import re
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpusveil.cli import demonstration
from corpusveil.mechanisms import make
from corpusveil.mechanisms.risk import Prior
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil_evaluate.attacks.equal_risk import point
from corpusveil_evaluate.matching import match
from corpusveil_evaluate.report.evaluate_release import evaluate_release
from corpusveil_evaluate.report.findings import Findings
from corpusveil_evaluate.report.question import Question
from corpusveil_evaluate.statistics.statistic import Figure
from evaluate.tests.releases import evaluate, manifest_of, privatize
from tests.engines.corpora import WORDS, write_shard


def pairs(documents: int = 240) -> list[dict[str, Any]]:
    """Return pairs whose label is whether both are of one topic; the trait shows in the second text alone."""
    rng = random.Random(3)
    rows = []
    for _ in range(documents):
        topic, same, trait = rng.randrange(2), rng.randrange(2), rng.randrange(2)
        first = [rng.choice(WORDS[8 * topic : 8 * topic + 8]) for _ in range(12)]
        other = 8 * (topic if same else 1 - topic)
        second = [rng.choice(WORDS[other : other + 8]) for _ in range(12)] + [WORDS[60 + trait]] * 2
        rows.append({"text": " ".join(first), "text2": " ".join(second), "same": same, "trait": f"a{trait}"})
    rows[0]["text2"] = None
    return rows


class TestPairs:
    @pytest.fixture(scope="class")
    @classmethod
    def corpus(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("pairs")
        write_shard(folder / "x.jsonl", [row for row in pairs() if row["text2"]])
        return folder

    def told(self, corpus: Path, private: Path, output: Path, *more: str) -> Findings:
        assert evaluate(corpus, private, output, "--label", "same", "--attribute", "trait", "--seeds", "3", *more) == 0
        report = json.loads((output / "report.json").read_text())
        figures = tuple(Figure(**figure) for figure in report["measures"])
        return Findings("", 1, 1, tuple(report["guarantee"]), (), figures, notes=report["notes"])

    def test_a_label_of_both_texts_is_learnt_from_both_alone(self, corpus: Path, tmp_path: Path) -> None:
        """Of unchanged text; without second texts it can't be, and an attacker who has none learns nothing of them."""
        found = self.told(corpus, corpus, tmp_path / "a", "--second", "text2")
        assert found.at("accuracy, private to private").value > 0.8
        assert found.at("attribute, adaptive").value < 0.7
        assert "an attacker does not" in " ".join(found.notes)
        assert self.told(corpus, corpus, tmp_path / "b").at("accuracy, private to private").value < 0.7

    def test_second_texts_that_are_kept_in_the_clear_are_the_attackers_too(
        self, corpus: Path, space: Space, tmp_path: Path
    ) -> None:
        made = privatize(corpus, space, tmp_path / "p", 0.05, "--keep", "text2")
        found = self.told(corpus, made, tmp_path / "r", "--second", "text2")
        assert found.at("attribute, adaptive").value > 0.95
        assert "kept in the clear by the release" in " ".join(found.notes)

    def test_private_second_texts_are_those_of_their_own_release(
        self, corpus: Path, space: Space, tmp_path: Path
    ) -> None:
        """As private as theirs: at a large epsilon the trait is still there, at a small one it is not."""
        first = privatize(corpus, space, tmp_path / "p", 12.0)
        options = ("--second", "text2", "--space", str(space.url))
        tried = ("--epsilon", "0.01", "--epsilon", "12")
        for epsilon, known in ((12.0, True), (0.01, False)):
            second = privatize(corpus, space, tmp_path / f"s{epsilon}", epsilon, "--text", "text2")
            more = (*options, "--second-private", str(second), *(() if known else tried))
            found = self.told(corpus, first, tmp_path / f"r{epsilon}", *more)
            assert (found.at("attribute, adaptive").value > 0.9) is known
            assert (found.at("accuracy, private to private").value > 0.8) is known
            assert "a separate release" in " ".join(found.notes)
            assert f" is at most {epsilon:g} times their distance" in " ".join(
                line for line in found.guarantee if line.startswith("Second texts: ")
            )
        for name in ("attribute, adaptive", "accuracy, private to private"):
            assert found.at(name, 12.0).value > found.at(name, 0.01).value + 0.2  # both texts are released anew

    def test_a_document_without_second_text_is_left_out_and_said(self, tmp_path: Path) -> None:
        write_shard(tmp_path / "in" / "x.jsonl", pairs())
        matched = match([str(tmp_path / "in")], [str(tmp_path / "in")], columns=("same", "text2"))
        found = evaluate_release(matched, None, Question.of(label="same", second="text2", seeds=2))
        said = "1 documents have no value in the column same or no second text; classifiers leave them out."
        assert said in found.counted


class TestMechanisms:
    @pytest.fixture(scope="class")
    @classmethod
    def found(cls, source: Path, private: Path, space: Space) -> Findings:
        matched = match([str(source)], [str(private)], columns=("topic",))
        tried = ("santext", "cmp", "custext-per-word")
        asked = Question.of(label="topic", epsilons=(0.1, 1.0, 6.0), seeds=2, space=space, mechanisms=tried)
        return evaluate_release(matched, manifest_of(private), asked)

    def test_each_has_its_own_guarantee_and_law(self, found: Findings, space: Space) -> None:
        """One without an exact law has no risk, and one without a guarantee no promise."""
        for name, figure in (
            ("cmp", "words guessed, Bayes-optimal"), ("custext-per-word", "promised for any two words, nats")
        ):  # fmt: skip
            assert found.at("words unchanged", 6.0, name).value > 0
            with pytest.raises(KeyError):
                found.at(figure, 6.0, name)
        assert "custext-per-word has no guarantee: The published claim is false" in " ".join(found.notes)
        everything = Prior(np.arange(len(space)), np.full(len(space), 1 / len(space)), 1.0)
        for name in ("ring-geometric", "santext"):
            told = point(make(name, space), 1.0, everything)
            assert found.at("promised for any two words, nats", 1.0, name).value == told.plain_ldp
            assert found.at("retention of a word (N_w)", 1.0, name).value == pytest.approx(told.retention, abs=0.02)
            assert found.at("words unchanged", 1.0, name).value == pytest.approx(told.retention, abs=0.04)

    def test_at_equal_risk_figures_lie_between_those_of_the_epsilons_beside(self, found: Findings) -> None:
        equal = [one for one in found.measures if one.group == "equal"]
        kept = [one for one in equal if one.name == "accuracy, private to private"]
        assert {one.mechanism for one in kept} >= {"ring-geometric"}
        for one in kept:
            grid = (0.1, 1.0, 6.0)
            low, high = max(e for e in grid if e <= one.epsilon), min(e for e in grid if e >= one.epsilon)
            ends = sorted(found.at(one.name, e, one.mechanism).value for e in (low, high))
            assert ends[0] - 1e-9 <= one.value <= ends[1] + 1e-9
            risks = sorted(
                found.at("content words guessed, Bayes-optimal", e, one.mechanism).value for e in (low, high)
            )
            assert risks[0] <= one.risk <= risks[1]

    def test_publishable_keeps_what_they_promise_and_nothing_of_the_input(self, found: Findings) -> None:
        tried = [one for one in found.publishable().measures if one.epsilon is not None]
        assert {one.name for one in tried} == {"promised for any two words, nats"}

    def test_of_a_documents_budget_not_even_that(self, source: Path, space: Space, tmp_path: Path) -> None:
        """The share of a word is computed from the texts' lengths."""
        made = privatize(source, space, tmp_path / "p", 12.0, "--per", "document")
        asked = Question.of(epsilons=(12.0, 60.0), seeds=2, space=space)
        found = evaluate_release(match([str(source)], [str(made)]), manifest_of(made), asked)
        assert not found.publishable().measures
        told = point(make("ring-geometric", space), 1.0, Prior(np.arange(9), np.full(9, 1 / 9), 1.0))
        assert found.at("promised for any two words, nats", 12.0).value == told.plain_ldp  # 12 words a document


class TestFigures:
    def test_differences_are_paired_and_zero_for_unchanged_text(self, source: Path, private: Path) -> None:
        """By hand of two splits; the floor of two labels, of which one is never said, is that of its accuracy."""
        columns, asked = ("topic", "trait"), Question.of(label="topic", attribute="trait", seeds=2)
        same = evaluate_release(match([str(source)], [str(source)], columns=columns), None, asked)
        for one in same.measures:
            if one.difference is not None:
                assert (one.difference, one.low, one.high) == (0, 0, 0)
        found = evaluate_release(match([str(source)], [str(private)], columns=columns), None, asked)
        kept, whole = (found.at(f"macro F1, {mode}") for mode in ("private to private", "original to original"))
        assert kept.difference == pytest.approx(kept.value - whole.value)
        assert (kept.low + kept.high) / 2 == pytest.approx(kept.difference)  # type: ignore[operator]
        accuracy = found.at("accuracy, private to private").floor
        assert kept.floor == pytest.approx(accuracy / (1 + accuracy), abs=0.01)  # type: ignore[operator]


class TestModels:
    def test_each_has_rows_of_its_own_and_the_first_is_the_one_compared(
        self, source: Path, private: Path, space: Space
    ) -> None:
        matched = match([str(source)], [str(private)], columns=("topic",))
        asked = Question.of(label="topic", epsilons=(1.0,), seeds=2, space=space, models=("tfidf", "vectors"))
        found = evaluate_release(matched, manifest_of(private), asked)
        rows = [one for one in found.measures if one.name == "accuracy, private to private"]
        assert [(one.model, one.epsilon) for one in rows] == [("tfidf", None), ("vectors", None), ("tfidf", 1.0)]
        assert found.at("PUC, alpha 0.5").value > 0
        assert "Figures at further epsilons use the first classifier." in found.notes


class TestWordLists:
    def share(self, source: Path, **more: Any) -> Figure:
        found = evaluate_release(match([str(source)], [str(source)]), None, Question.of(seeds=2, **more))
        return found.at("words of the list, original")

    def test_a_given_list_is_what_words_are_looked_up_in(self, tmp_path: Path) -> None:
        """By hand: of the eight words of two texts, three are in the list, whatever their capitals."""
        write_shard(tmp_path / "in" / "x.jsonl", [{"text": "one two three four"}, {"text": "five One six seven"}])
        (tmp_path / "mine.txt").write_text("One\nsix\n")
        told = self.share(tmp_path / "in", words=str(tmp_path / "mine.txt"))
        assert (told.value, told.model) == (3 / 8, "list mine.txt, 2 words")


def test_the_demo_says_what_its_release_gives_away(
    source: Path, space: Space, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also to who has its key; the page is private."""
    key = Key.generate()
    key.save(tmp_path / "release.key")
    privatize(source, space, tmp_path / "private-local", 1.0, "--key", str(tmp_path / "release.key"))
    asked = Question.of(epsilons=(1.0, 6.0), seeds=2, space=space, keys=(key,))
    demonstration._evaluate([str(source)], tmp_path, asked, demonstration._Report())
    told = capsys.readouterr().out
    for name in ("words unchanged (of all words", "similarity of meaning: ", f"leaked key {key.fingerprint()}: 100.0%"):
        assert name in told
    page = tmp_path / "evaluation" / "report.html"
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


class TestSimilarityOfMeaning:
    """Measured by what no mechanism moved in, or it is said that it was."""

    FLATTERS = "the mechanism moved in these vectors"

    def told(self, source: Path, private: Path, output: Path, space: Space, *more: str) -> tuple[Figure, str]:
        assert evaluate(source, private, output, "--space", str(space.url), "--seeds", "2", *more) == 0
        report = json.loads((output / "report.json").read_text())
        found = Findings("", 1, 1, (), (), tuple(Figure(**one) for one in report["measures"]))
        page = (output / "report.html").read_text()
        tiles = page[page.index('class="tiles"') :]
        return found.at("similarity of meaning"), tiles[: tiles.index("<h2>")]

    def test_by_another_embedding_it_is_lower_and_says_which(
        self, source: Path, private: Path, space: Space, tmp_path: Path
    ) -> None:
        """Vectors of the same words that have nothing to do with the space's; the space's own ones are recognised."""
        words = space.vocabulary.words
        others = np.random.default_rng(8).normal(size=(len(words), 16)).astype(np.float32)
        np.savez(tmp_path / "others.npz", vocab=np.array(words), vectors=others)
        np.savez(tmp_path / "same.npz", vocab=np.array(words), vectors=3 * np.asarray(space.vectors))
        own, _ = self.told(source, private, tmp_path / "a", space)
        figure, tiles = self.told(
            source, private, tmp_path / "b", space, "--similarity-vectors", str(tmp_path / "others.npz")
        )
        assert figure.model == "averaged vectors of others.npz, centered"
        assert self.FLATTERS not in tiles
        assert figure.value < own.value
        again, tiles = self.told(
            source, private, tmp_path / "c", space, "--similarity-vectors", str(tmp_path / "same.npz")
        )
        assert self.FLATTERS in again.model
        assert self.FLATTERS in tiles

    def test_a_space_of_several_embeddings_knows_them_all(self, tmp_path: Path) -> None:
        """Of the second one it has the list only, so its name counts."""
        from corpusveil.spaces.build import build_space
        from corpusveil.spaces.vectors import Vectors
        from corpusveil_evaluate.statistics.encoders import made_of

        one, two, three = (
            Vectors(["a", "b", "c", "d"], np.random.default_rng(seed).normal(size=(4, 3)).astype(np.float32), name)
            for seed, name in enumerate(("one", "two", "three"))
        )
        space = build_space([one, two])
        assert [made_of(space, some) for some in (one, two, three)] == [True, True, False]


def test_what_is_promised_of_unchanged_words_is_seen(
    space: Space, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a corpus of which three words in eleven are unknown: both figures are of the words that the space has."""
    rng = random.Random(11)
    rows = [
        {"text": " ".join([*(rng.choice(WORDS) for _ in range(8)), *(rng.choice(["qqq", "zzz"]) for _ in range(3))])}
        for _ in range(1000)
    ]
    write_shard(tmp_path / "in" / "x.jsonl", rows)
    made = privatize(tmp_path / "in", space, tmp_path / "out", 1.0)
    promised = re.search(r"Expected share of known words .*: ([\d.]+)%", capsys.readouterr().out)
    assert promised is not None
    found = evaluate_release(
        match([str(tmp_path / "in")], [str(made)]), manifest_of(made), Question.of(seeds=2, space=space)
    )
    known, lacking = found.at("known words unchanged"), found.at("unknown words")
    expected = float(promised.group(1)) / 100
    error = (expected * (1 - expected) / 8000) ** 0.5
    assert abs(known.value - expected) < 4 * error + 0.0005
    assert f"{expected:.1%} are expected" in known.note
    assert lacking.value == pytest.approx(3 / 11)
    assert found.at("words unchanged").value == pytest.approx(known.value * 8 / 11, abs=0.002)
