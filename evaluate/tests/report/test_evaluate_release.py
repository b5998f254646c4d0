"""A release beside its original: documents that belong together, figures with known answers, and the report."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import re
import stat
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.errors import DataError, SettingError
from corpusveil.passages.pieces import pieces_of
from corpusveil.passages.store import Store
from corpusveil.spaces import Space
from corpusveil.text.tokens import string_buffers
from corpusveil.transforms.release.promises import NO_AUTHOR
from corpusveil_evaluate.attacks.picked_texts import texts_picked
from corpusveil_evaluate.matching import Matched, match
from corpusveil_evaluate.report.beside_original import evaluate_release as evaluate_texts
from corpusveil_evaluate.report.evaluate_release import evaluate_release
from corpusveil_evaluate.report.findings import Findings
from corpusveil_evaluate.report.question import Question
from corpusveil_evaluate.report.release_page import render
from corpusveil_evaluate.statistics.statistic import Figure
from corpusveil_evaluate.statistics.words_back import flipped, words_back
from evaluate.tests.releases import DOCUMENTS, call, texts
from tests.calls import refused, succeeds
from tests.engines.corpora import WORDS, make_space, write_shard
from tests.engines.corpora import manifest as manifest_of
from tests.passages.stores import passage_release, small_store


class TestMatching:
    def test_what_does_not_belong_together_is_refused(self, source: Path, tmp_path: Path) -> None:
        """Other numbers of documents, an id that is there twice on a side, and columns that plain text has not."""
        rows = {"few": texts(3), "some": texts(30), "twice": [*texts(30), *texts(1)]}
        for name, some in rows.items():
            write_shard(tmp_path / name / "x.jsonl", some)
        (tmp_path / "x.txt").write_text("one\ntwo\n")
        wrong: list[tuple[type[Exception], str, str, dict[str, Any]]] = [
            (SettingError, "some", "few", {}),
            (DataError, "some", "twice", {"id": "url"}),
            (DataError, "twice", "some", {"id": "url"}),
            (DataError, "x.txt", "x.txt", {"id": "url"}),
            (DataError, "x.txt", "x.txt", {"columns": ("topic",)}),
        ]
        for error, original, private, more in wrong:
            with pytest.raises(error):
                match([str(tmp_path / original)], [str(tmp_path / private)], **more)

    def test_by_id_in_any_order(self, tmp_path: Path) -> None:
        rows = texts(30)
        write_shard(tmp_path / "a" / "x.jsonl", rows)
        write_shard(tmp_path / "b" / "x.jsonl", [{"text": row["text"][::-1], "url": row["url"]} for row in rows[:0:-1]])
        found = match([str(tmp_path / "a")], [str(tmp_path / "b")], id="url")
        assert found.privates == [text[::-1] for text in found.originals]
        assert (len(found.originals), found.documents) == (29, 30)

    def test_a_sample_is_even_and_stays_together(self, tmp_path: Path) -> None:
        rows = [{"text": f"w{number}"} for number in range(5000)]
        for name in ("a", "b"):
            write_shard(tmp_path / name / "x.jsonl", rows)
        found = match([str(tmp_path / "a")], [str(tmp_path / "b")], most=1000)
        numbers = [int(text[1:]) for text in found.originals]
        assert (found.originals, found.sampled, found.documents) == (found.privates, True, 5000)
        assert numbers == sorted(set(numbers))
        assert abs(np.mean(numbers) - 2500) < 6 * 5000 / np.sqrt(12 * 1000)

    def test_documents_that_were_left_out_or_set_aside_are_counted(self, tmp_path: Path) -> None:
        rows = texts(30)
        write_shard(tmp_path / "a" / "x.jsonl", rows)
        with (tmp_path / "a" / "x.jsonl").open("a") as file:
            file.write("{broken\n")
        write_shard(tmp_path / "b" / "x.jsonl", rows[5:])
        found = match([str(tmp_path / "a")], [str(tmp_path / "b")], id="url")
        assert (len(found.originals), found.documents, found.missing, found.unreadable) == (25, 30, 5, 1)
        assert not found.sampled
        write_shard(tmp_path / "b" / "x.jsonl", rows)
        assert match([str(tmp_path / "a")], [str(tmp_path / "b")]).originals == [row["text"] for row in rows]


class TestFigures:
    @pytest.fixture(scope="class")
    @classmethod
    def found(cls, source: Path, private: Path, space: Space) -> Findings:
        matched = match([str(source)], [str(private)], columns=("topic", "trait"))
        manifest = manifest_of(private)
        question = Question.from_arguments(label="topic", attribute="trait", seeds=3, space=space)
        return evaluate_release(matched, manifest, question)

    def test_at_unchanged_text_everybody_is_at_the_baseline(self, source: Path) -> None:
        matched = match([str(source)], [str(source)], columns=("topic", "trait"))
        found = evaluate_release(matched, None, Question.from_arguments(label="topic", attribute="trait", seeds=3))
        assert found.at("words unchanged").value == 1
        assert found.at("rarest words that survive (LOW)").value == 1
        assert found.at("shared words (Jaccard)").value == 1
        assert found.at("perplexity, original").value == found.at("perplexity, private").value
        for name in ("private to private", "private to original", "original to private"):
            assert found.at(f"accuracy, {name}").value == found.at("accuracy, original to original").value > 0.9
        for name in ("static", "adaptive"):
            assert found.at(f"attribute, {name}").value == found.at("attribute, from original texts").value > 0.9
        differences = [(one.difference, one.low, one.high) for one in found.measures if one.difference is not None]
        assert set(differences) == {(0, 0, 0)}

    def test_differences_are_paired(self, found: Findings) -> None:
        """By hand; the floor of two labels, of which one is never said, is that of its accuracy."""
        kept, whole = (found.at(f"macro F1, {mode}") for mode in ("private to private", "original to original"))
        assert kept.difference == pytest.approx(kept.value - whole.value)
        assert (kept.low + kept.high) / 2 == pytest.approx(kept.difference)  # type: ignore[operator]
        accuracy = found.at("accuracy, private to private").floor
        assert kept.floor == pytest.approx(accuracy / (1 + accuracy), abs=0.01)  # type: ignore[operator]

    def test_at_texts_of_others_everybody_is_at_chance(self, source: Path, tmp_path: Path) -> None:
        """Outputs that do not depend on the input: attackers and classifiers know nothing."""
        write_shard(tmp_path / "x.jsonl", texts(DOCUMENTS, 99))
        matched = match([str(source)], [str(tmp_path)], columns=("topic", "trait"))
        found = evaluate_release(matched, None, Question.from_arguments(label="topic", attribute="trait", seeds=5))
        for name in ("accuracy, private to private", "attribute, static", "attribute, adaptive"):
            assert abs(found.at(name).value - 0.5) < 0.2, name

    def test_what_is_weighed_together_is_made_of_the_figures_shown(self, found: Findings) -> None:
        """Relative gain by its formula, from the report's own numbers."""
        kept = found.at("accuracy, private to private").value / found.at("accuracy, original to original").value
        lost = found.at("attribute, adaptive").value / found.at("attribute, from original texts").value
        assert found.at("relative gain").value == pytest.approx(kept - lost)

    def test_what_cannot_be_measured_is_refused(self, source: Path, private: Path, tmp_path: Path) -> None:
        """Originals without a word, and another space than the release's."""
        with pytest.raises(DataError):
            evaluate_release(Matched(["", "!"], ["", "!"], 2), None, Question())
        other = make_space(tmp_path / "space", seed=5)
        with pytest.raises(SettingError):
            evaluate_release(
                match([str(source)], [str(private)]), manifest_of(private), Question.from_arguments(space=other)
            )


class TestTheReport:
    def call(self, source: Path, private: Path, space: Space, output: Path) -> list[str]:
        asked = ("--space", str(space.url), "--label", "topic", "--attribute", "trait", "--seeds", "2")
        return call(source, private, output, *asked)

    def test_is_written_in_private(self, source: Path, private: Path, space: Space, tmp_path: Path) -> None:
        succeeds(*self.call(source, private, space, tmp_path / "r"))
        page = (tmp_path / "r" / "report.html").read_text()
        assert "DO NOT PUBLISH" in page
        assert texts(1)[0]["text"].split()[0] in page
        assert "NOT PRIVATE: made with the published test key." in page
        assert not re.search(r"(?:src|href)=|https?://(?!www\.w3\.org)|<script", page)
        for name in ("report.html", "report.json", "report.csv"):
            assert stat.S_IMODE((tmp_path / "r" / name).stat().st_mode) == 0o600
        told = json.loads((tmp_path / "r" / "report.json").read_text())
        lines = list(csv.DictReader(io.StringIO((tmp_path / "r" / "report.csv").read_text())))
        assert [line["name"] for line in lines] == [measure["name"] for measure in told["measures"]]
        assert not any(word in json.dumps(told["measures"]) for word in WORDS)

    def test_a_configuration_file_asks_for_it(self, source: Path, private: Path, space: Space, tmp_path: Path) -> None:
        """Paths are relative to the file."""
        file = tmp_path / "run.toml"
        evaluate = f'[evaluate]\noriginal = "{source}"\nprivate = "{private}"\npath = "r"\nlabel = "topic"\nseeds = 2\n'
        file.write_text(f'[space]\npath = "{space.url}"\n{evaluate}')
        succeeds("run", file)
        names = {figure["name"] for figure in json.loads((tmp_path / "r" / "report.json").read_text())["measures"]}
        assert {"retention of a word (N_w)", "accuracy, private to private"} <= names

    def test_to_be_published_has_no_text_and_nothing_counted(
        self, source: Path, private: Path, space: Space, tmp_path: Path
    ) -> None:
        """No number of the input either, in notes and on standard output: how many documents there are, or words."""
        words = self.call(source, private, space, tmp_path / "r")
        assert "words unchanged" not in succeeds(*words, "--publishable", "--documents", "100").out
        told = {name: (tmp_path / "r" / name).read_text() for name in ("report.html", "report.json", "report.csv")}
        for name, text in told.items():
            assert not [word for word in WORDS if re.search(rf"\b{word}\b", text)], name
            assert str(DOCUMENTS) not in text, name
        assert "Private:" not in told["report.html"]
        report = json.loads(told["report.json"])
        names = {measure["name"] for measure in report["measures"]}  # no perplexity: its model is of the input
        assert names == {"retention of a word (N_w)", "distinct outputs of 100 (S_w)"}
        assert not [name for name in ("documents", "looked_at", "seconds", "counted", "examples") if report.get(name)]
        assert not re.search("[0-9]{3}|words,", " ".join(report["notes"]))

    def test_escapes_what_it_shows(self) -> None:
        from corpusveil_evaluate.report.findings import Example

        example = Example("<script>a</script> b c d", (("released", "<b>x</b>"),))
        page = render(Findings("t", 1, 1, (), (), (Figure("privacy", "<i>", 0.5),), (example,)))
        assert "<script>" not in page
        assert "<b>x</b>" not in page
        assert "&lt;i&gt;" in page


class TestPassages:
    """Releases by passages are read by text: a public piece has as many words as an original by chance only."""

    ORIGINALS: ClassVar = [f"{' '.join(WORDS[at : at + 4][::-1]).capitalize()}." for at in range(60)]

    @pytest.mark.parametrize(("per", "most"), [("document", None), ("sentence", None), ("sentence", 2)])
    def test_the_original_is_picked_by_the_exact_law(self, per: str, most: int | None) -> None:
        """Beside a reader who multiplies the law's probabilities; of other numbers of pieces none is possible."""
        ends = range(3, 13)
        texts = [" ".join(self.ORIGINALS[end - 1 - end % 3 : end]) for end in ends]
        release = passage_release(per, 4.0, most_pieces=most)
        privates = cv.privatize(texts, release, ids=list(ends))
        found, law = texts_picked(release, texts, privates), release.mechanism

        def pieces(text: str) -> list[str]:
            split = pieces_of(law.store.tokenizer, *string_buffers(pa.array([text], pa.large_string())), per, most)
            return [split.text(piece) for piece in range(len(split))]

        laws = [[law.distribution(law.store.encoder.encode(pa.array([piece], pa.large_string()))[0], 4.0) for piece in
                 pieces(text)] for text in texts]  # fmt: skip
        ids = {text: number for number, text in enumerate(law.store.texts.to_pylist())}
        won = 0.0
        for row, text in enumerate(privates):
            drawn = [ids[text]] if per == "document" else [ids[f"{piece}."] for piece in text[:-1].split(". ")]
            same = [len(each) == len(drawn) for each in laws]
            likely = [even * math.prod(each[at][piece] for at, piece in enumerate(drawn)) if even else 0.0
                      for even, each in zip(same, laws, strict=True)]  # fmt: skip
            best = [np.isclose(each, max(likely), rtol=1e-9) for each in likely]
            won += best[row] / sum(best)
        assert found.share == pytest.approx(won / len(texts))
        assert (found.candidates, found.unread) == (len(texts), 0)
        assert found.share > found.floor

    def test_no_words_are_paired_and_no_law_of_words_is_asked(self) -> None:
        """Figures by text instead; of texts in memory, and without the store fewer."""
        release = passage_release(epsilon=8.0)
        privates = cv.privatize(self.ORIGINALS, release, ids=range(60))
        assert any(len(a.split()) == len(b.split()) for a, b in zip(self.ORIGINALS, privates, strict=True))
        found = evaluate_texts(self.ORIGINALS, privates, release)
        figures = {figure.name: figure for figure in found.measures}
        assert not {"words unchanged", "words changed (PP)", "retention of a word (N_w)"} & set(figures)
        assert figures["texts picked from a list"].value > 0.1 > (figures["texts picked from a list"].floor or 1)
        assert figures["content words that come back"].value > 2 * (figures["content words that come back"].floor or 1)
        assert NO_AUTHOR in found.notes
        own = small_store().texts.to_pylist()[:9]  # a run accepted that the store has them
        accepting = dataclasses.replace(release, accept_overlap=True)
        assert evaluate_texts(own, cv.privatize(own, accepting, ids=range(9)), accepting).measures
        assert found.publishable().measures == ()

    def test_what_is_not_of_this_release_is_refused(self, source: Path, private: Path) -> None:
        store = small_store()
        release = passage_release(epsilon=8.0)
        privates = cv.privatize(self.ORIGINALS, release, ids=range(60))
        other = Store.from_texts(store.texts.slice(0, 9), store.space)
        with refused("wrong-setting", "store"):
            evaluate_texts(self.ORIGINALS, privates, release, store=other)
        with refused("wrong-setting", "originals"):
            evaluate_texts(self.ORIGINALS, self.ORIGINALS[::-1], release)
        with refused("wrong-setting", "store"):
            evaluate_release(
                match([str(source)], [str(private)]), manifest_of(private), Question.from_arguments(store=store)
            )

    def test_what_comes_back_is_counted_wherever_it_stands(self) -> None:
        originals, privates = ["the red car", "no car here", "Red red tape"], ["a car, red as the RED", "here", "red"]
        assert words_back(originals, privates, {"red", "car", "tape"}) == (4 / 6, 6)
        assert flipped(originals, privates) == 1 / 3
        assert flipped(["I can't go", "nothing"], ["never", "notes on nobody’s not"]) == 0
