"""Further options of an evaluation: pairs, other mechanisms, models, lists of words, differences."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

from corpusveil.spaces import Space
from corpusveil_evaluate.matching import match
from corpusveil_evaluate.report.evaluate_release import evaluate_release
from corpusveil_evaluate.report.findings import Findings
from corpusveil_evaluate.report.question import Question
from corpusveil_evaluate.statistics.statistic import Figure
from evaluate.tests.releases import evaluate, manifest_of, privatize
from tests.engines.corpora import WORDS, write_shard


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
