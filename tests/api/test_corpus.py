"""``cv.privatize_corpus`` and ``cv.plan``: files in, a release out, on any engine; the ledger from Python."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil.errors import WorkError
from tests.calls import Halting, refused
from tests.engines.corpora import data_files


def test_a_corpus_is_privatized_on_the_engine_that_is_named(corpus: Path, release: cv.Release, tmp_path: Path) -> None:
    """By that one, with the texts that ``cv.privatize`` returns for these ids, as on no engine."""
    called = functools.partial(cv.privatize_corpus, corpus, release=release, id="url", corpus="reviews")
    with pytest.raises(WorkError, match="halted"):
        called(tmp_path / "out", engine=Halting(0))
    outcome, here = called(tmp_path / "out", engine=cv.Local(workers=2)), called(tmp_path / "here")
    assert outcome.content_sha256 == here.content_sha256
    rows = [json.loads(row) for shard in sorted(corpus.glob("*")) for row in shard.read_text().splitlines()]
    private = [json.loads(row)["text"] for shard in data_files(tmp_path / "out") for row in shard.open()]
    assert private == cv.privatize([row["text"] for row in rows], release, ids=[row["url"] for row in rows])


def test_what_is_no_engine_or_release_is_a_sentence(corpus: Path, release: cv.Release, tmp_path: Path) -> None:
    for engine in ("spark", cv.Spark):
        with refused("wrong-type", "engine", "cv.Local"):
            cv.privatize_corpus(corpus, tmp_path / "out", release, engine)  # type: ignore[arg-type]
    with refused("wrong-type", "release", "cv.Release"):
        cv.privatize_corpus(release, corpus, tmp_path / "out")  # type: ignore[arg-type]
    assert not (tmp_path / "out.records").exists()


def test_a_ledger_is_asked_about_a_text_by_a_text(corpus: Path, release: cv.Release, tmp_path: Path) -> None:
    ledger = cv.Ledger(str(tmp_path / "ledger"))
    cv.privatize_corpus(corpus, tmp_path / "out", release, ledger=ledger, unit="content")
    with refused("wrong-type", "content"):
        ledger.spent_on(7)
