"""Spark DataFrames, classic and of Spark Connect: one column changes, and both give what an Arrow table gives.

One Java virtual machine serves both: a classic session whose plug-in is the Connect server, on loopback.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.spaces.vectors import Vectors
from corpusveil.transforms.spark import privatize_column, privatize_frame
from tests.calls import refused
from tests.engines.corpora import TEST_KEY, WORDS, Ground, make_release, text_of
from tests.engines.processes import shared_session

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SCHEMA = """
    id BIGINT NOT NULL, review STRING, at TIMESTAMP, local TIMESTAMP_NTZ, day DATE, price DECIMAL(12, 3),
    tags MAP<STRING, INT>, nested STRUCT<a: INT, b: ARRAY<STRUCT<c: STRING, d: DOUBLE>>> NOT NULL, raw BINARY,
    text STRING NOT NULL, small TINYINT, yes BOOLEAN
"""
CANARY = "zzcanaryzz"


@pytest.fixture(scope="module")
def classic() -> Iterator[Any]:
    session = shared_session()
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield session
    session.conf.set("spark.sql.session.timeZone", before)


@pytest.fixture(scope="module")
def connect(classic: Any) -> Iterator[Any]:
    from pyspark.sql.connect.session import SparkSession

    port = classic.conf.get("spark.connect.grpc.binding.port")
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    yield session
    session.stop()


@pytest.fixture(params=["classic", pytest.param("connect", marks=pytest.mark.nightly)])
def spark(request: pytest.FixtureRequest) -> Any:
    session = request.getfixturevalue(request.param)
    assert type(session).__module__.startswith("pyspark.sql.connect.") is (request.param == "connect")
    return session


@pytest.fixture(scope="module")
def release(ground: Ground) -> cv.Release:
    return make_release(ground.space)


@pytest.fixture(scope="module")
def rows() -> list[tuple[Any, ...]]:
    rng = random.Random(11)
    return [
        (
            number,
            None if number % 50 == 7 else text_of(rng, 12),
            dt.datetime(2026, 3, 29, 1, 30, number % 60, number),  # noqa: DTZ001 - Spark's own zone
            dt.datetime(2026, 3, 29, 2, 30, 0, number),  # noqa: DTZ001 - a local time, of no zone
            dt.date(1582 + number, 10, 4),
            decimal.Decimal(number) / 8 if number % 3 else None,
            {"a": number, "b": None},
            {"a": None, "b": [{"c": None, "d": number / 4}, {"c": "ü", "d": None}]},
            bytes([number % 256, 0, 255]),
            f"another column {number}",
            number % 100,
            None if number % 4 else True,
        )
        for number in range(300)
    ]


@pytest.fixture(scope="module")
def expected(release: cv.Release, rows: list[tuple[Any, ...]]) -> dict[int, str | None]:
    """What the same documents are in an Arrow table."""
    table = pa.table({"id": [row[0] for row in rows], "review": pa.array([row[1] for row in rows], pa.string())})
    out = cv.privatize(table, release, "id", "review", keep="id")
    return dict(zip(out["id"].to_pylist(), out["review"].to_pylist(), strict=True))


class TestOneColumnChanges:
    def test_to_what_a_table_gives_and_all_else_stays(
        self, spark: Any, release: cv.Release, rows: list[tuple[Any, ...]], expected: dict[int, str | None]
    ) -> None:
        """Types, nullability, column order and values of numbers, strings and times are kept; others are refused."""
        every = spark.createDataFrame(rows, SCHEMA)
        for name in ("price", "tags", "nested", "raw"):
            with refused("unsuitable-data", f"{name}: a kept column has"):
                privatize_frame(every, release, text="review", id="id", keep=name)
        frame = every.drop("price", "tags", "nested", "raw")
        keep = [name for name in frame.columns if name != "review"]
        out = privatize_frame(frame, release, text="review", id="id", keep=keep)
        assert type(out) is type(frame)
        assert out.schema == frame.schema
        assert [field.nullable for field in out.schema].count(False) == 2
        before = sorted(frame.collect(), key=lambda row: row["id"])
        after = sorted(out.collect(), key=lambda row: row["id"])
        assert [row["review"] for row in after] == [expected[row["id"]] for row in before]
        assert sum(row["review"] != expected[row["id"]] for row in before) > 250
        assert [(row[0], *row[2:]) for row in after] == [(row[0], *row[2:]) for row in before]

    def test_others_come_back_only_if_they_are_kept(self, spark: Any, release: cv.Release) -> None:
        rows = [(1, "Bbbe Cccj", "bbbe says hello", 5), (2, None, "bbbe says hello", 4)]
        frame = spark.createDataFrame(rows, "id INT, name STRING, text STRING, stars INT")
        with pytest.warns(UserWarning, match="not copied: id, name"):
            out = privatize_frame(frame, release, id="id", keep="stars")
        expected = cv.privatize(frame.toPandas(), release, "id", keep="stars")
        assert out.columns == ["text", "stars"]
        assert sorted(map(tuple, out.collect())) == sorted(expected.itertuples(index=False, name=None))
        with refused("unsuitable-data", "nosuch"):
            privatize_frame(frame, release, id="id", keep="nosuch")

    @pytest.mark.parametrize("spark", ["classic", "connect"], indirect=True)
    def test_a_dotted_or_odd_name_and_a_column_s_metadata(self, spark: Any, release: cv.Release) -> None:
        columns = "`i.d` STRING, `the.text ü` STRING COMMENT 'said', `a``b` INT, c1 INT"
        frame = spark.createDataFrame([("a", WORDS[0], 1, 2)], columns)
        out = privatize_frame(frame, release, text="the.text ü", id="i.d", keep=["i.d", "a`b", "c1"])
        assert (out.schema.names, [field.metadata for field in out.schema]) == (frame.schema.names, [{}] * 4)
        (row,) = out.collect()
        if not type(frame).__module__.startswith("pyspark.sql.connect."):
            (same,) = frame.select(privatize_column(release, "the.text ü", "i.d")).collect()
            assert same[0] == row[1]
        assert row[1] in WORDS
        assert (row[0], *row[2:]) == ("a", 1, 2)


class TestSql:
    def test_gives_what_the_frame_gives(self, spark: Any, release: cv.Release, rows: list[tuple[Any, ...]]) -> None:
        """As a function and as an expression, nulls and a second evaluation included."""
        frame = spark.createDataFrame(rows, SCHEMA)
        wanted = privatize_frame(frame, release, text="review", id="id", keep="id").select("id", "review").collect()
        cv.register_sql(spark, release)
        frame.createOrReplaceTempView("reviews")
        made = spark.sql("SELECT id, privatize('review', id, review) AS review FROM reviews")
        assert made.collect() == wanted
        twice = (
            "SELECT privatize('review', id, review) AS r FROM reviews WHERE privatize('review', id, review) <> review"
        )
        assert 0 < spark.sql(twice).count() <= 294
        if type(frame).__module__.startswith("pyspark.sql.connect."):
            return
        column = privatize_column(release, text="review", id="id")
        assert frame.select(column).columns == ["review"]
        assert frame.withColumn("review", column).select("id", "review").collect() == wanted

    def test_and_a_frame_are_refused(self, spark: Any, release: cv.Release) -> None:
        """A row without an id, or names that differ: a sentence on a line of its own, with which no text comes."""
        from pyspark.errors import PythonException

        cv.register_sql(spark, release, "hide")
        frame = spark.createDataFrame([(None, CANARY), ("a", CANARY)], "id STRING, text STRING")
        frame.createOrReplaceTempView("documents")
        for query, sentence in (
            (
                privatize_frame(frame, release, id="id"),
                "id: the id column has empty values; give every document an id.",
            ),
            (spark.sql("SELECT hide('text', id, text) FROM documents"), "id: the id column has empty values"),
            (spark.sql("SELECT hide(id, text, text) FROM documents"), "hide: the first argument is the column's name"),
        ):
            with pytest.raises(PythonException) as caught:
                query.collect()
            lines = [line.strip() for line in str(caught.value).splitlines()]
            assert [line for line in lines if line.startswith(f"corpusveil.errors.DataError: {sentence}")], lines
            assert CANARY not in str(caught.value)


def test_a_stream_under_a_cap_is_refused_or_accounts_for_each_batch(
    spark: Any, release: cv.Release, tmp_path: Path
) -> None:
    """A stream cannot ask a ledger; a batch that would take a unit above its cap ends the query, undrawn.

    ``readStream`` to ``writeStream`` with a checkpoint; that a restart goes on, docs/streaming.md shows.
    """
    columns, rows = "id STRING, unit INT, review STRING", []
    (tmp_path / "in").mkdir()
    for number in range(2):
        text = " ".join(WORDS[number : number + 12])
        rows += (batch := [{"id": f"{number}/{unit}", "unit": unit, "review": text} for unit in (0, 1)])
        (tmp_path / "next").write_text("".join(f"{json.dumps(row)}\n" for row in batch))
        (tmp_path / "next").rename(tmp_path / "in" / f"{number}.json")  # a stream lists whole files
    ledger = cv.Ledger(str(tmp_path / "ledger"), cap=400)
    source = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    with refused("wrong-setting", "foreachBatch"):
        privatize_frame(source, release, text="review", id="id", keep=["id", "unit"], ledger=ledger, unit="unit")

    def write(batch: Any, number: int) -> None:
        out = privatize_frame(batch, release, text="review", id="id", keep=["id", "unit"], ledger=ledger, unit="unit")
        out.write.mode("overwrite").json(str(tmp_path / "out" / str(number)))

    writer = source.writeStream.foreachBatch(write).trigger(availableNow=True)
    with pytest.raises(Exception, match=r"CapError: cap 400: one value of unit would have spent") as caught:
        writer.option("checkpointLocation", str(tmp_path / "check")).start().awaitTermination()
    assert WORDS[3] not in str(caught.value)
    expected = cv.privatize(pa.Table.from_pylist(rows), release, "id", "review", keep=["id", "unit"]).to_pylist()
    drawn = [row.asDict() for row in spark.read.schema(columns).json(str(tmp_path / "out" / "0")).collect()]
    assert len(drawn) == 2
    assert all(row in expected for row in drawn)
    assert not (tmp_path / "out" / "1").exists()
    assert ledger.spent_on(0).releases[0]["tokens"] == 12
    state = b"".join(path.read_bytes() for path in tmp_path.glob("check/**/*") if path.is_file())
    assert state
    assert not any(secret in state for secret in (TEST_KEY, TEST_KEY.hex().encode(), WORDS[3].encode()))


def test_a_space_goes_along_unless_it_is_saved(spark: Any, tmp_path: Path) -> None:
    """A space of this process only is sent whole; a saved one by its address, at which workers open it."""
    from pyspark.errors import PythonException

    rng = np.random.default_rng(3)
    space = cv.build_space(Vectors(list(WORDS), rng.standard_normal((len(WORDS), 8)).astype(np.float32)))
    texts = [" ".join(WORDS[:30]), f"{CANARY} {WORDS[0]}"]
    frame = spark.createDataFrame(list(enumerate(texts)), "id INT, text STRING")
    wanted = cv.privatize(pa.table({"id": [0, 1], "text": texts}), make_release(space), "id")
    out = privatize_frame(frame, make_release(space), id="id", keep="id").orderBy("id").collect()
    assert [row["text"] for row in out] == wanted["text"].to_pylist()
    saved = space.save(str(tmp_path / "space"))
    private = privatize_frame(frame, make_release(saved), id="id", keep="id")
    (tmp_path / "space").rename(tmp_path / "elsewhere")
    with pytest.raises(PythonException, match=r"MissingError: .*/space: ") as caught:
        private.collect()
    assert CANARY not in str(caught.value)
    (tmp_path / "elsewhere").rename(tmp_path / "space")
    assert private.count() == 2
