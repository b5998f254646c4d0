"""``evaluate release``: what can't be done is told before anything is measured, and nothing done is lost at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpusveil.errors import UserError
from corpusveil.evaluation.language.kneser_ney import KneserNey
from corpusveil.evaluation.matching import match
from corpusveil.evaluation.report import evaluate_release as evaluation
from corpusveil.evaluation.report.classifier_figures import Version
from corpusveil.evaluation.report.epsilon_sweep import sweep_epsilons
from corpusveil.evaluation.report.evaluate_release import evaluate_release
from corpusveil.evaluation.report.evaluation_options import EvaluationOptions
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil.storage.inputs import lies_in_input
from tests.engines.corpora import WORDS, write_shard
from tests.evaluation.releases import evaluate, manifest_of, privatize


@pytest.mark.parametrize(
    ("output", "more", "said"),
    [
        ("FILE", (), "a file has this name"),
        ("FILE/below", (), "a file has this name"),
        ("r", ("--counts", "nowhere"), "nowhere: there are no counts here"),
        ("r", ("--words", "nowhere"), "nowhere: there is no such list"),
    ],
)
def test_what_cannot_be_done_is_told_before_a_document_is_read(
    source: Path, private: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    output: str, more: tuple[str, ...], said: str,
) -> None:  # fmt: skip
    def read(*_: Any, **__: Any) -> None:
        raise AssertionError("documents were read before the call was looked at")

    monkeypatch.setattr("corpusveil.evaluation.matching.match", read)
    (tmp_path / "file").write_text("x")
    assert evaluate(source, private, Path(str(tmp_path / output).replace("FILE", "file")), *more) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert said in sentence
    assert not (tmp_path / "r").exists()


def test_a_report_is_not_written_where_a_glob_of_the_input_finds_it(
    private: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next call would read report.csv as a part of the corpus."""
    (tmp_path / "x.csv").write_text("text\na b\n")
    assert evaluate(Path(f"{tmp_path}/*.csv"), private, tmp_path) == 2
    assert "which the report is not part of" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.csv"]
    assert not lies_in_input("/a/b", "/a/*.csv", ("report.csv",))
    assert not lies_in_input("/a", "/a/*.parquet", ("report.csv",))
    assert lies_in_input("/a/b", "/a/**/*.csv", ("report.csv",))
    assert lies_in_input("/a/b", "/a/", ())


def test_collocations_that_further_epsilons_take_are_told_before_anything_is_measured(
    source: Path, private: Path, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(*_: Any) -> None:
        raise AssertionError("something was measured before the call was looked at")

    monkeypatch.setattr(evaluation, "count_words", measured)
    manifest = manifest_of(private)
    manifest["configuration"]["text"]["tokenizer"] = "gst"
    with pytest.raises(UserError, match="collocations"):
        evaluate_release(
            match([str(source)], [str(private)]), manifest, EvaluationOptions(epsilons=(1.0,), space=space)
        )


def test_the_releases_own_mechanism_is_left_out_where_it_is_not_defined(private: Path, space: Space) -> None:
    """It ended the command, after minutes in which all else was measured."""
    manifest = manifest_of(private)
    manifest["configuration"]["mechanism"] = {"name": "truncated-gumbel"}
    texts = [" ".join(WORDS[:20]), " ".join(WORDS[5:25])]
    asked = EvaluationOptions(epsilons=(1e-3,), seeds=2, space=space)
    trials = sweep_epsilons(Version(texts), manifest, asked, {}, KneserNey.of_texts(texts))
    (said,) = trials.left_out
    assert said.startswith("truncated-gumbel is left out at epsilon 0.001: ")
    assert trials.measures == []


def test_documents_of_one_word_have_no_other_words_that_are_known(space: Space, tmp_path: Path) -> None:
    """Guessing one word of them ended the command: there was no document to try it on."""
    write_shard(tmp_path / "in" / "x.jsonl", [{"text": word} for word in WORDS[:40]])
    made = privatize(tmp_path / "in", space, tmp_path / "out", 0.05)
    matched = match([str(tmp_path / "in")], [str(made)])
    found = evaluate_release(
        matched, manifest_of(made), EvaluationOptions(seeds=2, space=space, keys=(Key.for_tests(),))
    )
    names = {one.name: one.value for one in found.measures}
    assert names["documents confirmed, whole guesses"] == 1
    assert "one unknown word recovered" not in names
    json.loads(found.as_json())
