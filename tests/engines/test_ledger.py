"""The ledger's entries are the same whatever engine passes over the corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark, spark_session
from corpusveil.transforms.corpus import privatize_corpus
from corpusveil.transforms.spending import Spending
from tests.engines.corpora import make_release, make_space, release_files, rows, write_corpus


@pytest.mark.spark
def test_every_engine_enters_the_same(tmp_path: Path) -> None:
    """One ledger after all of them: each finds the entries of the one before, and adds none; outputs are equal."""
    release = make_release(make_space(tmp_path / "space"))
    source = write_corpus(tmp_path / "in", [rows(300, 0), rows(200, 1), []])
    session = spark_session("local[2]")
    found = []
    for name, engine in (("local", Local(2)), ("spark", Spark()), ("beam", Beam())):
        spending = Spending(str(tmp_path / "ledger"))
        privatize_corpus(release, [str(source)], str(tmp_path / name), engine, corpus="news", spending=spending)
        found.append(
            (sorted(path.name for path in (tmp_path / "ledger" / "entries").iterdir()), release_files(tmp_path / name))
        )
    session.stop()
    assert len(found[0][0]) == 4  # three shards, and that they were kept
    assert found[0] == found[1] == found[2]
