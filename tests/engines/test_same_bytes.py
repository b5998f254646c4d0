"""What a document becomes does not depend on where it lies; what changes it is its identity, key, policy and list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.jobs.local import Local
from corpusveil.storage.rows import Columns
from corpusveil.transforms.release.corpus import privatize_corpus
from tests.engines.corpora import BLOCK, Ground, data_files, make_release, read_shard, rows, write_corpus


def texts_by_id(output: Path) -> dict[str, str]:
    """Return the texts of a release by their kept ``id``."""
    return {row["id"]: row["text"] for path in data_files(output) for row in read_shard(path)}


@pytest.fixture(scope="module")
def release(ground: Ground) -> cv.Release:
    return make_release(ground.space)


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
        out = cv.privatize(table, release, "id", keep=["id"])
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
