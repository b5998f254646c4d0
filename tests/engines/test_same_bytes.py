"""One release gives the same bytes on every engine, with any number of workers, however the input is split.

One module, so that one process holds its one Spark session.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark
from corpusveil.storage.rows import Columns
from corpusveil.transforms.release.corpus import Outcome, privatize_corpus
from tests.engines.corpora import (
    BLOCK,
    COLUMN_CANARY,
    HANG_SECONDS,
    TEST_KEY,
    UNKNOWN,
    Ground,
    make_release,
    make_space,
    manifest,
    release_files,
    rows,
    texts_by_id,
    write_corpus,
)
from tests.engines.processes import cluster, end_session

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def release(ground: Ground) -> cv.Release:
    return make_release(ground.space)


@pytest.fixture(scope="module")
def reference(ground: Ground, release: cv.Release) -> tuple[Outcome, dict[str, str]]:
    """The outcome of one local process, and the SHA-256 of every file it made."""
    output = ground.folder / "reference"
    outcome = privatize_corpus(release, [str(ground.corpus)], str(output), Local())
    return outcome, release_files(output)


@pytest.mark.parametrize(
    ("engine", "rows_per_task"),
    [
        pytest.param(Local(2), 2 * BLOCK, id="two local processes"),
        pytest.param(Spark(), BLOCK, id="spark"),
        pytest.param(Beam(workers=2), None, id="beam in two processes", marks=pytest.mark.slow),
    ],
)
def test_an_engine_writes_the_bytes_of_one_local_process(
    engine: Any,
    rows_per_task: int | None,
    ground: Ground,
    release: cv.Release,
    reference: tuple[Outcome, dict[str, str]],
    spark: Any,
    tmp_path: Path,
) -> None:
    assert spark.sparkContext.master == "local[2]"
    output = tmp_path / "output"
    outcome = privatize_corpus(release, [str(ground.corpus)], str(output), engine, rows_per_task=rows_per_task)
    assert outcome.content_sha256 == reference[0].content_sha256
    assert outcome.counts.private() == reference[0].counts.private()
    assert release_files(output) == reference[1]


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


class TestWithAnIdColumn:
    """A document is the same wherever it lies, and whatever it comes in."""

    @pytest.fixture(scope="class")
    @classmethod
    def documents(cls) -> list[dict[str, Any]]:
        return rows(BLOCK + 900, 7)

    @pytest.fixture(scope="class")
    @classmethod
    def texts(cls, release: cv.Release, documents: list[dict[str, Any]]) -> dict[str, str]:
        """The texts by their id, as they are in a table."""
        table = pa.table({"text": [row["text"] for row in documents], "id": [row["id"] for row in documents]})
        out = cv.privatize_table(table, release, id="id")
        return dict(zip(out["id"].to_pylist(), out["text"].to_pylist(), strict=True))

    def test_in_any_shard_at_any_row(
        self, release: cv.Release, documents: list[dict[str, Any]], texts: dict[str, str], tmp_path: Path
    ) -> None:
        """Without the column, the place is what a document is."""
        backwards = documents[::-1]
        shards = [backwards[:13], backwards[13:14], [], backwards[14:4000], backwards[4000:]]
        source = write_corpus(tmp_path / "in", shards)
        for name, columns in (("with", Columns(id="id", keep=("id",))), ("without", Columns(keep=("id",)))):
            privatize_corpus(release, [str(source)], str(tmp_path / name), Local(), columns=columns)
        assert texts_by_id(tmp_path / "with") == texts
        without = texts_by_id(tmp_path / "without")
        long = [row["id"] for row in documents if len(row["text"]) > 40]
        assert sum(without[name] == texts[name] for name in long) < len(long) / 10


def test_what_changes_the_bytes_and_what_does_not(ground: Ground, release: cv.Release, tmp_path: Path) -> None:
    """The key, the policy, the list, and corpus or shard of another name do; the folder of a named one does not."""
    source = write_corpus(tmp_path / "in", [rows(300, 5)])

    def made(
        release: cv.Release, source: Path = source, corpus: str | None = "corpus"
    ) -> tuple[str | None, dict[str, Any]]:
        output = tmp_path / f"out{len(list(tmp_path.glob('out*')))}"
        outcome = privatize_corpus(release, [str(source)], str(output), Local(), corpus=corpus)
        return outcome.content_sha256, manifest(output)

    first = made(release)
    elsewhere = write_corpus(tmp_path / "deeper" / "in", [rows(300, 5)])
    assert made(release, elsewhere) == first
    unnamed = made(release, elsewhere, None)
    assert unnamed == made(release, source, str(elsewhere))
    other_key = made(make_release(ground.space, key=TEST_KEY[::-1]))
    assert other_key[1]["release"] == first[1]["release"]
    assert other_key[1]["key_fingerprint"] != first[1]["key_fingerprint"]
    other_policy = made(make_release(ground.space, numbers="mask"))
    other_list = made(make_release(make_space(tmp_path / "space", seed=1)))
    assert other_policy[1]["release"] != first[1]["release"] != other_list[1]["release"]
    next(elsewhere.iterdir()).rename(elsewhere / "renamed.json.gz")
    digests = {each[0] for each in (first, unnamed, other_key, other_policy, other_list, made(release, elsewhere))}
    assert len(digests) == 6
