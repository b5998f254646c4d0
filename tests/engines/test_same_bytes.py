"""One release gives the same bytes on every engine, with any number of workers, however the input is split.

One module, so that one process holds its one Spark session.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that

import corpusveil as cv
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark
from corpusveil.storage.rows import Columns
from corpusveil.transforms.beam import PrivatizeDocuments
from corpusveil.transforms.release.corpus import Outcome, privatize_corpus
from corpusveil.transforms.spark import privatize_frame
from tests.calls import refused
from tests.engines.corpora import (
    BLOCK,
    COLUMN_CANARY,
    HANG_SECONDS,
    TEST_KEY,
    UNKNOWN,
    Ground,
    data_files,
    make_release,
    make_space,
    manifest,
    read_shard,
    release_files,
    rows,
    texts_by_id,
    write_corpus,
)
from tests.engines.processes import cluster, end_session

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

KEPT = Columns(id="id", keep=("id",))


@pytest.fixture(scope="module")
def release(ground: Ground) -> cv.Release:
    return make_release(ground.space)


@pytest.fixture(scope="module")
def reference(ground: Ground, release: cv.Release) -> tuple[Outcome, dict[str, str]]:
    """The outcome of one local process, and the SHA-256 of every file it made."""
    output = ground.folder / "reference"
    outcome = privatize_corpus(release, [str(ground.corpus)], str(output), Local())
    return outcome, release_files(output)


@pytest.fixture
def same(
    ground: Ground, release: cv.Release, reference: tuple[Outcome, dict[str, str]], tmp_path: Path
) -> Callable[..., None]:
    """Run an engine and compare all that it made with the reference."""

    def check(engine: Any, **options: Any) -> None:
        output = tmp_path / "output"
        outcome = privatize_corpus(release, [str(ground.corpus)], str(output), engine, **options)
        assert outcome.content_sha256 == reference[0].content_sha256
        assert outcome.counts.private() == reference[0].counts.private()
        assert release_files(output) == reference[1]

    return check


def test_the_reference_holds_every_document_and_none_of_its_text(
    ground: Ground, reference: tuple[Outcome, dict[str, str]]
) -> None:
    output = ground.folder / "reference"
    before = [row["text"] for path in sorted(ground.corpus.iterdir()) for row in read_shard(path)]
    after = [row["text"] for path in data_files(output) for row in read_shard(path)]
    assert len(before) == len(after) == manifest(output)["documents"] > 3 * BLOCK
    assert len(read_shard(data_files(output)[0])) > 2 * BLOCK
    assert not any(one == other for one, other in zip(before, after, strict=True) if len(one) > 200)
    assert UNKNOWN not in "".join(after)
    assert COLUMN_CANARY not in "".join(after)


def test_one_worker_a_second_time(same: Callable[..., None]) -> None:
    same(Local())


def test_two_local_processes(same: Callable[..., None]) -> None:
    same(Local(2))


@pytest.mark.parametrize("rows_per_task", [BLOCK, 2 * BLOCK, 100 * BLOCK])
def test_row_ranges_instead_of_whole_shards(same: Callable[..., None], rows_per_task: int) -> None:
    same(Local(), rows_per_task=rows_per_task)


def test_spark_on_two_threads(same: Callable[..., None], spark: Any) -> None:
    assert spark.sparkContext.master == "local[2]"
    same(Spark())


def test_spark_in_row_ranges(same: Callable[..., None], spark: Any) -> None:
    same(Spark(), rows_per_task=BLOCK)


def test_beam_in_one_process(same: Callable[..., None]) -> None:
    same(Beam())


def test_beam_in_one_process_in_row_ranges(same: Callable[..., None]) -> None:
    same(Beam(), rows_per_task=BLOCK)


@pytest.mark.slow
def test_beam_in_two_processes(same: Callable[..., None]) -> None:
    same(Beam(workers=2))


@pytest.mark.slow
@pytest.mark.nightly
def test_a_cluster_of_two_workers_by_spark_submit(
    ground: Ground, reference: tuple[Outcome, dict[str, str]], tmp_path: Path
) -> None:
    with cluster(tmp_path) as machines:
        job = machines.submit(
            ground.arguments(ground.corpus, tmp_path / "output", "--engine", "spark", "--rows-per-task", BLOCK),
            tmp_path / "submit.log",
        )
        try:
            status = job.wait(HANG_SECONDS)
        finally:
            end_session(job)
        said = (tmp_path / "submit.log").read_text()
        assert status == 0, said
        assert reference[0].content_sha256 in said
        executors = {path.parent.parent.parent.name for path in tmp_path.glob("work*/app-*/*/stderr")}
        logs = machines.logs()
    assert executors == {"work0", "work1"}
    assert release_files(tmp_path / "output") == reference[1]
    assert UNKNOWN.encode() not in logs
    assert COLUMN_CANARY.encode() not in logs


def privatized(release: cv.Release, shards: list[list[dict[str, Any]]], folder: Path) -> dict[str, str]:
    """Return the texts of documents by their id, which tells them apart."""
    source = write_corpus(folder / "in", shards)
    privatize_corpus(release, [str(source)], str(folder / "out"), Local(), columns=KEPT)
    return texts_by_id(folder / "out")


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return rows(BLOCK + 900, 7)


@pytest.fixture(scope="module")
def texts(
    release: cv.Release, documents: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    return privatized(release, [documents], tmp_path_factory.mktemp("whole"))


class TestWithAnIdColumn:
    def test_a_document_is_the_same_in_any_shard_at_any_row(
        self, release: cv.Release, documents: list[dict[str, Any]], texts: dict[str, str], tmp_path: Path
    ) -> None:
        backwards = documents[::-1]
        shards = [backwards[:13], backwards[13:14], [], backwards[14:4000], backwards[4000:]]
        assert privatized(release, shards, tmp_path) == texts

    def test_without_it_a_document_elsewhere_is_another(
        self, release: cv.Release, documents: list[dict[str, Any]], tmp_path: Path
    ) -> None:
        some = [row for row in documents if len(row["text"]) > 40][:500]
        told = []
        for number, order in enumerate((some, some[::-1])):
            folder = tmp_path / str(number)
            source = write_corpus(folder / "in", [order])
            columns = Columns(keep=("id",))
            privatize_corpus(release, [str(source)], str(folder / "out"), Local(), columns=columns)
            told.append(texts_by_id(folder / "out"))
        assert sum(told[0][name] == told[1][name] for name in told[0]) < 50

    def test_a_table_gives_the_same_texts(
        self, release: cv.Release, documents: list[dict[str, Any]], texts: dict[str, str]
    ) -> None:
        table = pa.table({"text": [row["text"] for row in documents], "id": [row["id"] for row in documents]})
        out = cv.privatize_table(table, release, id="id")
        assert dict(zip(out["id"].to_pylist(), out["text"].to_pylist(), strict=True)) == texts

    @pytest.mark.parametrize("partitions", [1, 9])
    def test_a_spark_frame_gives_the_same_texts_in_any_partitioning(
        self, release: cv.Release, documents: list[dict[str, Any]], texts: dict[str, str], spark: Any, partitions: int
    ) -> None:
        frame = spark.createDataFrame(
            [(row["id"], n, row["text"]) for n, row in enumerate(documents)], "id: string, n: int, text: string"
        )
        out = privatize_frame(frame.repartition(partitions), release, id="id")
        assert out.schema == frame.schema
        told = out.collect()
        assert {row["id"]: row["text"] for row in told} == texts
        assert {row["id"]: row["n"] for row in told} == {row["id"]: n for n, row in enumerate(documents)}

    @pytest.mark.parametrize("kind", [dict, beam.Row], ids=["mapping", "row"])
    def test_a_beam_collection_gives_the_same_texts(
        self, release: cv.Release, documents: list[dict[str, Any]], texts: dict[str, str], kind: Any
    ) -> None:
        given = [kind(id=row["id"], n=n, text=row["text"]) for n, row in enumerate(documents)]
        expected = [kind(id=row["id"], n=n, text=texts[row["id"]]) for n, row in enumerate(documents)]

        def check(found: list[Any]) -> None:
            fields = [one if isinstance(one, dict) else one._asdict() for one in found]
            wanted = [one if isinstance(one, dict) else one.as_dict() for one in expected]
            assert sorted(fields, key=lambda one: one["n"]) == wanted
            assert {isinstance(one, dict) for one in found} == {kind is dict}

        with beam.Pipeline("FnApiRunner") as pipeline:
            out = pipeline | beam.Create(given, reshuffle=False) | PrivatizeDocuments(release, id="id")
            assert_that(out, check)


def made(
    release: cv.Release, source: Path, output: Path, corpus: str | None = "corpus"
) -> tuple[str | None, dict[str, Any]]:
    """Privatize a corpus of this name; return its digest and the manifest."""
    outcome = privatize_corpus(release, [str(source)], str(output), Local(), corpus=corpus)
    return outcome.content_sha256, manifest(output)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("source"), [rows(300, 5)])


@pytest.fixture(scope="module")
def first(release: cv.Release, source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    return made(release, source, tmp_path_factory.mktemp("first") / "out")


class TestWhatChangesTheBytes:
    def test_another_key(self, ground: Ground, source: Path, first: Any, tmp_path: Path) -> None:
        other = made(make_release(ground.space, key=TEST_KEY[::-1]), source, tmp_path / "out")
        assert other[0] != first[0]
        assert other[1]["release"] == first[1]["release"]
        assert other[1]["key_fingerprint"] != first[1]["key_fingerprint"]

    def test_another_epsilon(self, ground: Ground, source: Path, first: Any, tmp_path: Path) -> None:
        other = made(make_release(ground.space, epsilon=1.0000001), source, tmp_path / "out")
        assert (other[0] != first[0], other[1]["release"] != first[1]["release"]) == (True, True)

    @pytest.mark.parametrize(
        "policy", [{"layout": "keep"}, {"case": "restore"}, {"numbers": "mask"}, {"stop_words": "keep"}]
    )
    def test_another_policy(
        self, ground: Ground, source: Path, first: Any, tmp_path: Path, policy: dict[str, str]
    ) -> None:
        other = made(make_release(ground.space, **policy), source, tmp_path / "out")
        assert (other[0] != first[0], other[1]["release"] != first[1]["release"]) == (True, True)

    def test_a_budget_per_document(self, release: cv.Release, source: Path, first: Any, tmp_path: Path) -> None:
        budget = cv.Budget(1.0, per="document")
        other = made(dataclasses.replace(release, budget=budget), source, tmp_path / "out")
        assert (other[0] != first[0], other[1]["release"] != first[1]["release"]) == (True, True)

    def test_another_list(self, source: Path, first: Any, tmp_path: Path) -> None:
        other = made(make_release(make_space(tmp_path / "space", seed=1)), source, tmp_path / "out")
        assert other[0] != first[0]
        assert other[1]["configuration"]["space"] != first[1]["configuration"]["space"]

    def test_another_name_of_the_shard(self, release: cv.Release, first: Any, tmp_path: Path) -> None:
        source = write_corpus(tmp_path / "in", [rows(300, 5)])
        next(source.iterdir()).rename(source / "renamed.json.gz")
        assert made(release, source, tmp_path / "out")[0] != first[0]

    def test_and_the_folder_it_lies_in_does_not(self, release: cv.Release, first: Any, tmp_path: Path) -> None:
        """Where the corpus has a name. Without one it is called by its folder, which is in each document's identity."""
        source = write_corpus(tmp_path / "deeper" / "in", [rows(300, 5)])
        assert made(release, source, tmp_path / "out") == first
        unnamed = made(release, source, tmp_path / "unnamed", None)
        assert unnamed[0] != first[0]
        assert made(release, source, tmp_path / "named", str(source)) == unnamed


class TestAFrameIsRefused:
    @pytest.mark.parametrize(
        ("arguments", "refusal"),
        [
            ({}, ("missing-setting", "id=")),
            ({"id": "key"}, ("wrong-column", "key")),
            ({"id": "id", "text": "body"}, ("wrong-column", "body")),
            ({"id": "id", "text": "n"}, ("wrong-column", "n", "int")),
        ],
    )
    def test_with_a_sentence(self, release: cv.Release, spark: Any, arguments: dict[str, str], refusal: Any) -> None:
        frame = spark.createDataFrame([("a", 1, "text")], "id: string, n: int, text: string")
        with refused(*refusal):
            privatize_frame(frame, release, **arguments)

    def test_a_null_text_stays_null(self, release: cv.Release, spark: Any) -> None:
        frame = spark.createDataFrame([("a", None), ("b", "")], "id: string, text: string")
        assert [tuple(row) for row in privatize_frame(frame, release, id="id").collect()] == [("a", None), ("b", "")]


class TestACollectionIsRefused:
    def test_without_an_id(self, release: cv.Release) -> None:
        with refused("missing-setting", "id="):
            PrivatizeDocuments(release)

    @pytest.mark.parametrize(
        ("document", "refusal"),
        [
            ({"text": UNKNOWN}, ("bad-row", "id")),
            ({"id": 1}, ("bad-row", "text")),
            ({"id": 1, "text": 5}, ("bad-row",)),
        ],
    )
    def test_for_a_document_that_is_not_as_named(
        self, release: cv.Release, document: dict[str, Any], refusal: Any
    ) -> None:
        def run() -> None:
            with beam.Pipeline("FnApiRunner") as pipeline:
                _ = pipeline | beam.Create([document]) | PrivatizeDocuments(release, id="id")

        with refused(*refusal) as caught:
            run()
        assert UNKNOWN not in str(caught.value)
