"""``cv.privatize_corpus`` and ``cv.plan``: files in, a release out, on any engine; the ledger from Python."""

from __future__ import annotations

import json
from pathlib import Path

import corpusveil as cv
from tests.calls import refused


def texts(output: Path) -> list[str]:
    """Return the released texts, in their order."""
    shards = sorted((output / "data").glob("*.jsonl"))
    return [json.loads(row)["text"] for shard in shards for row in shard.read_text().splitlines()]


def test_a_corpus_is_privatized_on_an_engine(corpus: Path, release: cv.Release, tmp_path: Path) -> None:
    """The same bytes as in this process, and the same texts as ``cv.privatize`` returns for these ids."""
    engine = cv.Local(workers=2)
    outcome = cv.privatize_corpus(corpus, tmp_path / "out", release, engine=engine, id="url", corpus="reviews")
    here = cv.privatize_corpus(f"{corpus}/*.jsonl", tmp_path / "here", release, id="url", corpus="reviews")
    assert outcome.content_sha256 == here.content_sha256
    rows = [json.loads(row) for shard in sorted(corpus.glob("*")) for row in shard.read_text().splitlines()]
    assert texts(tmp_path / "out") == cv.privatize(
        [row["text"] for row in rows], release, ids=[row["url"] for row in rows]
    )


def test_what_is_no_engine_or_release_is_a_sentence(corpus: Path, release: cv.Release, tmp_path: Path) -> None:
    for engine in ("spark", cv.Spark):
        with refused("wrong-type", "engine", "cv.Local"):
            cv.privatize_corpus(corpus, tmp_path / "out", release, engine)  # type: ignore[arg-type]
    with refused("wrong-type", "release", "cv.Release"):
        cv.privatize_corpus(release, corpus, tmp_path / "out")  # type: ignore[arg-type]
    assert not (tmp_path / "out.records").exists()


class TestLedger:
    def test_is_asked_about_a_text_by_a_text(self, corpus: Path, release: cv.Release, tmp_path: Path) -> None:
        ledger = cv.Ledger(str(tmp_path / "ledger"))
        cv.privatize_corpus(corpus, tmp_path / "out", release, ledger=ledger, unit="content")
        with refused("wrong-type", "content"):
            ledger.spent_on(7)
