"""``cv.privatize_corpus`` and ``cv.plan``: files in, a release out, on any engine; the ledger from Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil.errors import NotMadeError
from tests.calls import refused

pytestmark = pytest.mark.xdist_group("spark-rooms")


def texts(output: Path) -> list[str]:
    """Return the released texts, in their order."""
    shards = sorted((output / "data").glob("*.jsonl"))
    return [json.loads(row)["text"] for shard in shards for row in shard.read_text().splitlines()]


@pytest.mark.parametrize(
    "engine",
    [
        None,
        pytest.param("Local", id="local"),
        pytest.param("Spark", id="spark", marks=[pytest.mark.spark, pytest.mark.slow]),
        pytest.param("Beam", id="beam", marks=pytest.mark.slow),
    ],
)
def test_a_corpus_is_privatized_on_any_engine(
    engine: str | None, corpus: Path, release: cv.Release, tmp_path: Path
) -> None:
    """The same bytes as in this process, and the same texts as ``cv.privatize`` returns for these ids."""
    made = None if engine is None else cv.Local(workers=2) if engine == "Local" else getattr(cv, engine)()
    outcome = cv.privatize_corpus(corpus, tmp_path / "out", release, engine=made, id="url", corpus="reviews")
    here = cv.privatize_corpus(f"{corpus}/*.jsonl", tmp_path / "here", release, id="url", corpus="reviews")
    assert outcome.content_sha256 == here.content_sha256
    rows = [json.loads(row) for shard in sorted(corpus.glob("*")) for row in shard.read_text().splitlines()]
    assert texts(tmp_path / "out") == cv.privatize(
        [row["text"] for row in rows], release, ids=[row["url"] for row in rows]
    )


def test_a_plan_comes_first(corpus: Path, release: cv.Release, tmp_path: Path) -> None:
    """It reads a sample, reserves nothing, and says what a cap would refuse."""
    ledger = cv.Ledger(str(tmp_path / "ledger"), cap=5)
    plan = cv.plan(corpus, release, id="url", ledger=ledger, unit="url", duplicates=True)
    assert (plan.shards, plan.documents) == (2, 10)
    assert plan.copies is not None
    assert plan.copies.copies == 0
    assert plan.refused is not None
    assert plan.refused in " ".join(repr(plan).split())
    assert not (tmp_path / "ledger").exists()
    with refused("cap-exceeded"):
        cv.privatize_corpus(corpus, tmp_path / "out", release, id="url", ledger=ledger, unit="url")


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

    def test_that_is_not_there_is_a_sentence(self, tmp_path: Path) -> None:
        for call in (cv.Ledger(str(tmp_path)).spent, cv.Ledger(str(tmp_path)).verify):
            with pytest.raises(NotMadeError):
                call()
