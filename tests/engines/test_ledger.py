"""One history, one table of what was spent: command, pandas, Spark (classic) and Beam enter and decide the same."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pandas as pd
import pytest
from apache_beam.transforms.window import FixedWindows, TimestampedValue

import corpusveil as cv
from corpusveil.errors import CapError
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark
from corpusveil.transforms.beam import PrivatizeDocuments
from corpusveil.transforms.spark import privatize_frame
from tests.calls import refused
from tests.engines.corpora import TEST_KEY, WORDS, make_release, make_space, release_files, write_corpus

pytestmark = pytest.mark.xdist_group("spark")

ROWS = [
    {"id": f"d{n}", "customer": n % 7, "visit": f"v{n % 3}", "text": " ".join(WORDS[n * k % 100] for k in range(1, 6))}
    for n in range(50)
]
UNIT = ["customer", "visit"]
Call = Callable[[cv.Release, cv.Ledger], Any]


def entries(folder: Path) -> dict[str, str]:
    """Return the digests of entries' bytes by those in their names."""
    paths = (folder / "entries").glob("*.parquet")
    return {path.name[:32]: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def ledger_at(folder: Path, **caps: float) -> cv.Ledger:
    """Return a ledger with a known secret."""
    folder.mkdir(exist_ok=True)
    (folder / "secret.key").write_bytes(bytes(32))
    return cv.Ledger(folder, **caps)


def beam_texts(release: cv.Release, ledger: cv.Ledger, out: Path) -> list[str]:
    """Return what a pipeline makes of the rows in windows."""
    with beam.Pipeline("FnApiRunner") as pipeline:
        timed = pipeline | beam.Create([TimestampedValue(row, int(row["id"][1:])) for row in ROWS])
        windows = timed | beam.WindowInto(FixedWindows(5))
        private = windows | PrivatizeDocuments(release, id="id", keep="id", ledger=ledger, unit=UNIT)
        _ = private | beam.Map(lambda row: f"{row['id']} {row['text']}") | beam.io.WriteToText(str(out), num_shards=1)
    (written,) = out.parent.glob(f"{out.name}*")
    return sorted(written.read_text().splitlines())


@pytest.mark.spark
def test_every_way_enters_the_same_bytes_and_decides_by_them(tmp_path: Path, spark: Any) -> None:
    """Each in a ledger of its own, with an equal secret; then each is refused by what another one entered."""
    space = make_space(tmp_path / "space", words=WORDS[:120])
    release, other = (make_release(space, key=key) for key in (TEST_KEY, TEST_KEY[::-1]))
    source = write_corpus(tmp_path / "in", [ROWS[0::3], ROWS[1::3], ROWS[2::3]])
    frame = pd.DataFrame(ROWS)
    rows = spark.createDataFrame(frame).repartition(3)

    def texts(private: pd.DataFrame) -> list[str]:
        return sorted(f"{row.id} {row.text}" for row in private.itertuples())

    def command(engine: Any) -> Call:
        def go(release: cv.Release, ledger: cv.Ledger) -> None:
            out = tmp_path / f"out-{type(engine).__name__}-{Path(ledger.url).name}-{release.name}"
            cv.privatize_corpus(source, out, release, engine, id="id", ledger=ledger, unit=UNIT)
            outputs.append(release_files(out))

        return go

    outputs: list[Any] = []
    ways: dict[str, Call] = {
        "pandas": lambda release, ledger: texts(
            cv.privatize(frame, release, "id", keep="id", ledger=ledger, unit=UNIT)
        ),
        "spark": lambda release, ledger: texts(
            privatize_frame(rows, release, id="id", keep="id", ledger=ledger, unit=UNIT).toPandas()
        ),
        "beam": lambda release, ledger: beam_texts(release, ledger, tmp_path / f"beam-{release.name}.txt"),
        "command": command(Local(2)),
        "command on spark": command(Spark()),
        "command on beam": command(Beam()),
    }
    private = [way(release, ledger_at(tmp_path / name, cap=1e6)) for name, way in ways.items()]
    assert private[0] == private[1] == private[2]
    assert outputs[0] == outputs[1] == outputs[2]
    found = [entries(tmp_path / name) for name in ways]
    assert len(found[0]) == 2
    assert all(entered == found[0] for entered in found)
    spent = {repr(cv.Ledger(tmp_path / name).spent()).replace(name, "") for name in ways}
    assert len(spent) == 1
    full = cv.Ledger(tmp_path / "pandas").spent().most
    sentences = set()
    for name, way in ways.items():
        with pytest.raises(CapError) as caught:
            way(other, ledger_at(tmp_path / name, cap=1.5 * full))
        sentences.add(
            str(caught.value).partition(". The units above")[0].partition(" [while running")[0].removesuffix(".")
        )
        assert entries(tmp_path / name) == found[0]
        way(release, ledger_at(tmp_path / name, cap=full))  # equal noise is spent once
        assert entries(tmp_path / name) == found[0]
    assert len(sentences) == 1


@pytest.mark.spark
def test_a_frame_is_drawn_as_it_was_counted(tmp_path: Path, spark: Any) -> None:
    """A random plan gives other documents each time it runs; under a ledger its rows are those that were counted."""
    from pyspark.sql import functions

    release = make_release(make_space(tmp_path / "space", words=WORDS[:120]))
    frame = spark.createDataFrame(pd.DataFrame(ROWS))
    word = functions.udf(lambda: secrets.choice(WORDS[:100]))
    random = frame.withColumn("text", functions.concat_ws(" ", word(), word(), word(), word()))
    assert random.toPandas().text.tolist() != random.toPandas().text.tolist()
    private = privatize_frame(random, release, id="id", ledger=ledger_at(tmp_path / "ledger"), unit="customer")
    assert private.toPandas().text.tolist() == private.toPandas().text.tolist()
    missing = frame.withColumn("customer", functions.when(functions.col("id") != "d3", functions.col("customer")))
    with refused("unsuitable-data"):
        privatize_frame(missing, release, id="id", ledger=ledger_at(tmp_path / "ledger"), unit="customer")
