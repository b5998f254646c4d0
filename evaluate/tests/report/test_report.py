"""``evaluate release``: what is refused at once, options and what the page shows."""

from __future__ import annotations

import dataclasses
import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.spaces import Space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil_evaluate.matching import match
from corpusveil_evaluate.readers.ngrams.denoise import NO_FACTS
from corpusveil_evaluate.report.evaluate_release import evaluate_release
from corpusveil_evaluate.report.findings import Findings
from corpusveil_evaluate.report.question import Question
from corpusveil_evaluate.report.release_page import examples_of, render
from corpusveil_evaluate.statistics.encoders import made_of
from evaluate.tests.releases import call, privatize
from tests.calls import command, fails, refused, succeeds
from tests.engines.corpora import WORDS, write_shard
from tests.engines.corpora import manifest as manifest_of

WRONG = {
    "--model nowhere": "wrong-setting",
    "--model vectors": "wrong-setting",
    "--seeds 1": "wrong-setting",
    "--counts nowhere": "missing-file",
    "--label topic --attribute topic": "wrong-setting",
    "--encoder x --similarity-vectors y": "wrong-setting",
    "--output FILE": "unusable-address",
    "--output FILE/below": "unusable-address",
    "--output RELEASE/report": "unusable-address",
}
"""Calls that are refused before a document is read, and their errors."""
FOUND_WRONG = {
    "--text nowhere": "unsuitable-data",
    "--label text": "unsuitable-data",
    "--label url": "unsuitable-data",
}
"""Calls that are refused on reading."""


def test_what_cannot_be_done_is_one_sentence_and_writes_nothing(
    source: Path, private: Path, space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "FILE").write_text("x")
    named = {"FILE": tmp_path / "FILE", "SPACE": Path(str(space.url)), "RELEASE": private}
    before = sorted(private.rglob("*"))

    def refused(asked: str, code: str) -> None:
        words = [re.sub("^[A-Z]+", lambda name: str(named[name[0]]), word) for word in asked.split()]
        ended = command(*call(source, private, tmp_path / "r", *words))
        assert (ended.status, ended.err.count("\n")) == (2, 1), asked
        assert ended.err.startswith("corpusveil: "), asked
        assert ended.err.endswith(f"[{code}]\n"), asked

    for asked, code in FOUND_WRONG.items():
        refused(asked, code)

    def read(*_: Any, **__: Any) -> None:
        raise AssertionError("documents were read before the call was looked at")

    monkeypatch.setattr("corpusveil_evaluate.report.beside_original.match", read)
    for asked, code in WRONG.items():
        refused(asked, code)
    assert sorted(private.rglob("*")) == before
    assert not (tmp_path / "r").exists()


def test_a_damaged_manifest_is_refused(source: Path, private: Path, space: Space, tmp_path: Path) -> None:
    shutil.copytree(private, tmp_path / "p")
    address = tmp_path / "p" / "manifest.json"
    fields = json.loads(address.read_text())
    fields["configuration"]["mechanism"]["name"] = 1
    for damage in ("[]", "{}", "x", '{"configuration": {}}', json.dumps(fields)):
        address.write_text(damage)
        fails(call(source, tmp_path / "p", tmp_path / "r", "--space", str(space.url)), "damaged-artifact")


def test_a_report_is_not_written_where_a_glob_of_the_input_finds_it(private: Path, tmp_path: Path) -> None:
    """The next call would read report.csv as a part of the corpus."""
    (tmp_path / "x.csv").write_text("text\na b\n")
    fails(call(Path(f"{tmp_path}/*.csv"), private, tmp_path), "unusable-address")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.csv"]


def test_a_space_of_several_embeddings_knows_them_all() -> None:
    """Of the second one it has the list only, so its name counts: meaning is measured by what no mechanism moved in."""
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
        match([str(tmp_path / "in")], [str(made)]), manifest_of(made), Question.from_arguments(seeds=2, space=space)
    )
    known, lacking = found.at("known words unchanged"), found.at("unknown words")
    expected = float(promised.group(1)) / 100
    error = (expected * (1 - expected) / 8000) ** 0.5
    assert abs(known.value - expected) < 4 * error + 0.0005
    assert f"{expected:.1%} are expected" in known.note
    assert lacking.value == pytest.approx(3 / 11)
    assert found.at("words unchanged").value == pytest.approx(known.value * 8 / 11, abs=0.002)


def test_denoised_texts_stand_behind_the_release() -> None:
    texts = ["the cat sat down", "short", "another text of words"]
    (first, _) = examples_of(texts, [text.upper() for text in texts], lambda some: [f"read {t}" for t in some])
    assert first.versions == (("released", "THE CAT SAT DOWN"), ("denoised", "read THE CAT SAT DOWN"))
    plain = examples_of(texts, texts)
    pages = [render(Findings("", 3, 3, (), (), (), shown)) for shown in ((first,), plain)]
    assert [NO_FACTS in page for page in pages] == [True, False]


@pytest.fixture(scope="module")
def spanned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Texts in whose release masks, of which each has three tokens of a text, and dropped marks shift all words."""
    folder, rng = tmp_path_factory.mktemp("spanned"), random.Random(5)
    names = ["Sarah Lee", "Rajesh King", "Robert Downey"]
    rows = [
        {"text": f"Hi, this is {rng.choice(names)}. {' '.join(['good bread'] * rng.randint(1, 4))} 😀 and 'fine' wine."}
        for _ in range(400)
    ]
    write_shard(folder / "in" / "x.jsonl", rows)
    given = [folder / "in", "--space", "en", "--epsilon", "0.32", "--test-key", "--spans", "names"]
    succeeds("privatize", *given, "--output", folder / "out")
    return folder / "in", folder / "out"


def test_words_are_paired_by_the_tokens_and_spans_of_the_release(spanned: tuple[Path, Path]) -> None:
    """All of them: what is unchanged is what the law says, of the words beside masks, and none of those masked."""
    source, made = spanned
    space, manifest = cv.load_space("en"), manifest_of(made)
    found = evaluate_release(match([str(source)], [str(made)]), manifest, Question.from_arguments(seeds=2, space=space))
    expected = cv.RingGeometric(space).retention(0.32)
    known, every = found.at("known words unchanged"), found.at("words unchanged")
    assert not [note for note in found.counted if "other tokens" in note]
    assert known.value < every.value + 0.01 < expected + 0.03
    assert abs(every.value - expected * (1 - 2 / 10)) < 0.04


def test_a_release_that_keeps_more_or_less_than_its_law_says_is_refused(spanned: tuple[Path, Path]) -> None:
    """As private texts are that another release made, or that were not privatized at all."""
    source, made = spanned
    manifest, question = manifest_of(made), Question.from_arguments(seeds=2, space=cv.load_space("en"))
    matched = match([str(source)], [str(made)])
    budget = {**manifest["configuration"]["budget"], "epsilon": 0.2}
    other = {**manifest, "configuration": {**manifest["configuration"], "budget": budget}}
    masked = [re.sub("(Sarah Lee|Rajesh King|Robert Downey)", "[name]", text) for text in matched.originals]
    plain = [text.replace("😀 ", "") for text in masked]
    for texts, said in ((matched, other), (dataclasses.replace(matched, privates=plain), manifest)):
        with refused("wrong-setting", "% of"):
            evaluate_release(texts, said, question)


def test_documents_that_cannot_be_paired_are_counted(spanned: tuple[Path, Path]) -> None:
    source, made = spanned
    matched = match([str(source)], [str(made)])
    matched.privates[:7] = [f"{text} more" for text in matched.privates[:7]]
    found = evaluate_release(matched, manifest_of(made), Question.from_arguments(seeds=2, space=cv.load_space("en")))
    assert any(note.startswith("7 of 400 documents have other tokens") for note in found.counted)
