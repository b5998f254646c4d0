"""The ledger's entries, and what caps decide, are the same whatever engine passes over the corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpusveil.errors import CapError
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark, spark_session
from corpusveil.storage.ledger import Ledger
from corpusveil.transforms import ledger_passes
from corpusveil.transforms.corpus import privatize_corpus
from corpusveil.transforms.spending import Caps, Spending, worst
from tests.engines.corpora import TEST_KEY, make_release, make_space, release_files, rows, write_corpus


@pytest.mark.spark
def test_every_engine_enters_and_decides_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One ledger after all of them: each finds the entries of the one before, and adds none; outputs are equal.

    Caps are decided bucket by bucket on each: one that is exactly reached fits, another release is refused by the same
    sentence, and nothing that was spread is left.
    """
    monkeypatch.setattr(ledger_passes, "BUCKET_ROWS", 450)
    release, other = (make_release(make_space(tmp_path / "space"), key=key) for key in (TEST_KEY, TEST_KEY[::-1]))
    source = write_corpus(tmp_path / "in", [rows(300, 0), rows(200, 1), []])
    session = spark_session("local[2]")
    found, refused, caps = [], set(), Caps()
    for name, engine in (("local", Local(2)), ("spark", Spark()), ("beam", Beam())):
        spending = Spending(str(tmp_path / "ledger"), caps)
        privatize_corpus(release, [str(source)], str(tmp_path / name), engine, corpus="news", spending=spending)
        found.append(
            (sorted(path.name for path in (tmp_path / "ledger" / "entries").iterdir()), release_files(tmp_path / name))
        )
        caps = Caps(total=max(one.value for one in worst(Ledger.existing(spending.ledger).entries(), ["total"])))
        spending = Spending(str(tmp_path / "ledger"), caps)
        with pytest.raises(CapError) as caught:
            privatize_corpus(other, [str(source)], str(tmp_path / "other"), engine, corpus="news", spending=spending)
        refused.add(str(caught.value))
        assert not list(tmp_path.glob("*.records/spending"))
    session.stop()
    assert len(found[0][0]) == 4  # three shards, and that they were kept
    assert found[0] == found[1] == found[2]
    assert len(refused) == 1
