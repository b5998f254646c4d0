"""``cv.privatize``: the kind that goes in comes out, and the wrong call is refused before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.errors import (
    BadRowError,
    BadTypeError,
    BadValueError,
    CapError,
    MismatchError,
    NoGuaranteeError,
    UnsetError,
)

KINDS: dict[str, tuple[Callable[[dict[str, Any]], Any], Callable[[Any], list[Any]]]] = {
    "pandas": (pd.DataFrame, lambda frame: [None if pd.isna(text) else text for text in frame["text"]]),
    "polars": (pl.DataFrame, lambda frame: frame["text"].to_list()),
    "arrow": (pa.table, lambda table: table["text"].to_pylist()),
    "arrow batch": (pa.RecordBatch.from_pydict, lambda batch: batch.column("text").to_pylist()),
    "datasets": (datasets.Dataset.from_dict, lambda data: list(data["text"])),
}
COLUMNS: dict[str, tuple[Callable[[list[Any]], Any], Callable[[Any], list[Any]]]] = {
    "list": (list, list),
    "tuple": (tuple, list),
    "numpy": (lambda texts: np.array(texts, dtype=object), list),
    "series": (pd.Series, lambda column: [None if pd.isna(text) else text for text in column]),
    "polars": (pl.Series, lambda column: column.to_list()),
    "arrow": (lambda texts: pa.array(texts, pa.string()), lambda column: column.to_pylist()),
    "chunked": (lambda texts: pa.chunked_array([texts]), lambda column: column.to_pylist()),
}


class Stream:
    """A frame of a library that nobody here knows: all it has is an Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


class TestKinds:
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_frame_comes_back_as_its_kind(self, kind: str, release: cv.Release, columns: dict[str, Any]) -> None:
        make, texts = KINDS[kind]
        frame = make(columns)
        private = cv.privatize(frame, release, ids="id")
        assert type(private) is type(frame)
        assert texts(private) == cv.privatize(columns["text"], release, ids=columns["id"])
        assert texts(private) != texts(frame) == columns["text"]

    @pytest.mark.parametrize("kind", COLUMNS)
    def test_a_column_comes_back_as_its_kind(self, kind: str, release: cv.Release, columns: dict[str, Any]) -> None:
        make, texts = COLUMNS[kind]
        column = make(columns["text"])
        private = cv.privatize(column, release, ids=columns["id"])
        assert type(private) is type(column)
        assert texts(private) == cv.privatize(columns["text"], release, ids=columns["id"])

    def test_any_other_arrow_stream_comes_back_as_a_table(self, release: cv.Release, columns: dict[str, Any]) -> None:
        table = pa.table(columns)
        private = cv.privatize(Stream(table), release, ids="id")
        assert private.equals(cv.privatize(table, release, ids="id"))

    def test_other_columns_stay(self, release: cv.Release, columns: dict[str, Any]) -> None:
        private = cv.privatize(pd.DataFrame(columns), release, ids="id")
        assert private["stars"].tolist() == columns["stars"]

    def test_a_spark_frame_stays_in_spark(self, release: cv.Release, columns: dict[str, Any]) -> None:
        """It has an Arrow stream, too, which would bring a corpus into this process unasked."""
        frame = type("DataFrame", (Stream,), {"__module__": "pyspark.sql.classic.dataframe"})(pa.table(columns))
        with pytest.raises(BadTypeError, match=r"use corpusveil\.transforms\.spark\.privatize_frame"):
            cv.privatize(frame, release, ids="id")


class TestLedger:
    """A notebook spends, too: releases in memory are counted together with releases from files."""

    def test_a_cell_that_runs_again_spends_once(
        self, release: cv.Release, columns: dict[str, Any], tmp_path: Path
    ) -> None:
        ledger = cv.Ledger(str(tmp_path / "ledger"), cap=6)
        frame = pd.DataFrame(columns)
        private = cv.privatize(frame, release, ids="id", ledger=ledger, corpus="reviews")
        assert private.equals(cv.privatize(frame, release, ids="id"))
        spent = ledger.spent()
        assert spent.worst["total", spent.releases[0]["metric"]] == 6.0
        assert [(line["corpus"], line["documents"], line["tokens"]) for line in spent.releases] == [("reviews", 7, 42)]
        cv.privatize(frame[::-1], release, ids="id", ledger=ledger, corpus="reviews")
        assert ledger.spent().worst == spent.worst

    def test_what_a_cap_refuses_is_not_drawn(
        self, release: cv.Release, columns: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another key would be a further release; the ledger stays as it was, and the kernel draws nothing."""
        ledger = cv.Ledger(tmp_path / "ledger", cap=6)  # type: ignore[arg-type] # a path, too
        cv.privatize(columns["text"], release, columns["id"], ledger=ledger, corpus="reviews")
        before = ledger.spent()
        further = cv.Release(release.mechanism, release.budget, key=cv.Key.generate())
        drawn: list[Any] = []
        monkeypatch.setattr("corpusveil.transforms.kernel.Kernel.privatize", lambda *given: drawn.append(given))
        with pytest.raises(CapError, match="a document would have spent 12 "):
            cv.privatize(columns["text"], further, columns["id"], ledger=ledger, corpus="reviews")
        assert ledger.spent() == before
        assert drawn == []

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_kind_is_counted_alike(
        self, kind: str, release: cv.Release, columns: dict[str, Any], tmp_path: Path
    ) -> None:
        ledger = cv.Ledger(str(tmp_path / "ledger"))
        cv.privatize(KINDS[kind][0](columns), release, ids="id", ledger=ledger, corpus="reviews")
        cv.privatize(columns["text"], release, ids=columns["id"], ledger=ledger, corpus="reviews")
        assert [line["documents"] for line in ledger.spent().releases] == [7]

    def test_chunks_are_entered_together_or_not_at_all(
        self, release: cv.Release, columns: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A document in the last chunk that is refused keeps those before it out of the ledger as well."""
        monkeypatch.setattr("corpusveil.transforms.table.COMBINED_BYTES", 0)
        parts = [pa.array(columns["text"][:2]), pa.array([" ".join(["aaaa"] * 9)])]
        ledger = cv.Ledger(str(tmp_path / "ledger"), cap=8)
        with pytest.raises(CapError, match="would have spent 9 "):
            cv.privatize(pa.chunked_array(parts), release, ids=[1, 2, 3], ledger=ledger, corpus="reviews")
        assert ledger.spent().releases == ()
        parts[1] = pa.array(columns["text"][4:6])
        cv.privatize(pa.chunked_array(parts), release, ids=[1, 2, 3, 4], ledger=ledger, corpus="reviews")
        assert ledger.spent().releases[0]["documents"] == 4

    def test_row_numbers_name_the_corpus(self, release: cv.Release, columns: dict[str, Any], tmp_path: Path) -> None:
        ledger = cv.Ledger(str(tmp_path / "ledger"))
        cv.privatize(columns["text"], release, cv.RowNumbers("reviews"), ledger=ledger)
        assert ledger.spent().releases[0]["corpus"] == "reviews"


class TestWrongCalls:
    """Closed by construction: each says what to write instead, and nothing is drawn or written."""

    def test_a_release_needs_a_key(self, space: cv.Space) -> None:
        with pytest.raises(MismatchError, match="key: this is missing"):
            cv.Release(cv.RingGeometric(space), cv.Budget(1.0))  # type: ignore[call-overload]

    def test_an_id_of_thousands_of_digits_is_refused_in_a_sentence(self, release: cv.Release) -> None:
        """Python writes no such number; ids of 4,000 digits are ids."""
        assert cv.privatize(["a"], release, ids=[10**4000])
        with pytest.raises(BadRowError, match="ids: an id is a number of thousands of digits"):
            cv.privatize(["a"], release, ids=[-(10**5000)])

    def test_texts_need_ids(self, release: cv.Release) -> None:
        with pytest.raises(UnsetError):
            cv.privatize(["aaaa"], release)  # type: ignore[call-overload]

    def test_no_guarantee_is_opted_into(self, space: cv.Space, key: cv.Key) -> None:
        with pytest.raises(NoGuaranteeError, match="accept_no_guarantee"):
            cv.Release(cv.CusTextPerWord(space), cv.Budget(1.0), key=key)
        assert (
            not cv.Release(cv.CusTextPerWord(space), cv.Budget(1.0), key=key, accept_no_guarantee=True)
            .guarantee()
            .holds
        )

    def test_a_ledger_needs_a_corpus(self, release: cv.Release, tmp_path: Path) -> None:
        ledger = cv.Ledger(str(tmp_path / "ledger"))
        with pytest.raises(UnsetError, match="name the data set, as in corpus='reviews'"):
            cv.privatize(["aaaa"], release, ids=["x"], ledger=ledger)  # type: ignore[call-overload]
        assert not (tmp_path / "ledger").exists()

    def test_a_corpus_alone_counts_nothing(self, release: cv.Release) -> None:
        with pytest.raises(UnsetError, match="no ledger is given; add ledger="):
            cv.privatize(["aaaa"], release, ids=["x"], corpus="reviews")  # type: ignore[call-overload]

    def test_an_address_is_no_ledger(self, release: cv.Release, tmp_path: Path) -> None:
        with pytest.raises(BadTypeError, match=r"ledger: give cv\.Ledger\(URL, cap=\.\.\.\), not a value of type str"):
            cv.privatize(["aaaa"], release, ids=["x"], ledger=str(tmp_path), corpus="r")  # type: ignore[call-overload]

    @pytest.mark.parametrize("cap", ["cap", "cap_token", "cap_ldp"])
    def test_a_cap_is_above_0(self, cap: str) -> None:
        with pytest.raises(BadValueError, match="give a number above 0"):
            cv.Ledger("ledger", **{cap: 0.0})
