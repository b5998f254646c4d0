"""``cv.privatize`` and ``cv.privatize_corpus``: the kind that goes in comes out, and the wrong call draws nothing."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.errors import CapError, WorkError
from tests.calls import Halting, refused
from tests.engines.corpora import data_files

KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "arrow batch": pa.RecordBatch.from_pydict,
}


class Stream:
    """A frame of a library that nobody here knows: all it has is an Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


class TestKinds:
    def test_a_spark_frame_stays_in_spark(self, release: cv.Release, columns: dict[str, Any]) -> None:
        """It has an Arrow stream, too, which would bring a corpus into this process unasked."""
        frame = type("DataFrame", (Stream,), {"__module__": "pyspark.sql.classic.dataframe"})(pa.table(columns))
        with refused("wrong-setting", "corpusveil.transforms.spark.privatize_frame"):
            cv.privatize(frame, release, ids="id")


class TestLedger:
    """A notebook spends, too: releases in memory are counted together with releases from files."""

    @pytest.fixture
    def ledger(self, tmp_path: Path) -> cv.Ledger:
        return cv.Ledger(str(tmp_path / "ledger"), cap=200)

    def test_what_a_cap_refuses_is_not_drawn(
        self, release: cv.Release, columns: dict[str, Any], ledger: cv.Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another key would be a further release; the ledger stays as it was, and the kernel draws nothing."""
        cv.privatize(columns["text"], release, columns["id"], ledger=ledger, unit="content")
        before = ledger.spent()
        further = cv.Release(release.mechanism, release.budget, key=cv.Key.generate())
        drawn: list[Any] = []
        monkeypatch.setattr("corpusveil.kernel.kernel.Kernel.apply", lambda *given: drawn.append(given))
        with pytest.raises(CapError, match="before this run"):
            cv.privatize(columns["text"], further, columns["id"], ledger=ledger, unit="content")
        assert ledger.spent() == before
        assert drawn == []

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_kind_is_counted_alike(
        self, kind: str, release: cv.Release, columns: dict[str, Any], ledger: cv.Ledger
    ) -> None:
        """By the column that has the units, under another name, as numbers and as their digits."""
        cv.privatize(KINDS[kind](columns), release, ids="id", ledger=ledger, unit={"document": "id"})
        digits = {**columns, "document": [str(number) for number in columns["id"]]}
        cv.privatize(KINDS[kind](digits), release, ids="id", ledger=ledger, unit="document")
        spent = ledger.spent()
        assert spent.units == ("document",)
        assert [line["documents"] for line in spent.releases] == [7]
        with_text = [number for number, text in zip(columns["id"], columns["text"], strict=True) if text is not None]
        assert spent.most == max(ledger.spent_on(number).most for number in with_text)

    def test_chunks_are_entered_together_or_not_at_all(
        self, release: cv.Release, columns: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A document in the last chunk that is refused keeps those before it out of the ledger as well."""
        monkeypatch.setattr("corpusveil.transforms.frames.COMBINED_BYTES", 0)
        parts = [pa.array(columns["text"][:2]), pa.array([" ".join(["aaaa"] * 9)])]
        ledger = cv.Ledger(str(tmp_path / "ledger"), cap=200)
        with pytest.raises(CapError, match="cap 200"):
            cv.privatize(pa.chunked_array(parts), release, ids=[1, 2, 3], ledger=ledger, unit="content")
        assert ledger.spent().releases == ()
        parts[1] = pa.array(columns["text"][4:6])
        cv.privatize(pa.chunked_array(parts), release, ids=[1, 2, 3, 4], ledger=ledger, unit="content")
        assert ledger.spent().releases[0]["documents"] == 4


class TestWrongCalls:
    """Closed by construction: each says what to write instead, and nothing is drawn or written."""

    def test_ids_that_repeat_are_said_with_their_counts(
        self, release: cv.Release, columns: dict[str, Any], recwarn: pytest.WarningsRecorder
    ) -> None:
        """Equal texts under one id get equal noise. Ids that differ, and row numbers, are no reason to warn."""
        frame, texts = pd.DataFrame(columns)[["id", "text"]], columns["text"]
        for ids in ("id", cv.RowNumbers("reviews")):
            cv.privatize(frame, release, ids=ids, keep="id")
        assert not recwarn.list
        for ids, count in ((["same"] * len(texts), "1 different id"), (["0", *range(len(texts) - 1)], "different ids")):
            with pytest.warns(UserWarning, match=f"{len(texts)} texts have .*{count}") as caught:
                cv.privatize(texts, release, ids=ids)
            assert caught[0].filename == __file__, "where the call is"


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


def test_a_ledger_is_asked_about_a_text_by_a_text(corpus: Path, release: cv.Release, tmp_path: Path) -> None:
    ledger = cv.Ledger(str(tmp_path / "ledger"))
    cv.privatize_corpus(corpus, tmp_path / "out", release, ledger=ledger, unit="content")
    with refused("wrong-setting", "value"):
        ledger.spent_on(7.5)  # type: ignore[arg-type]
