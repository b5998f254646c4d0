"""Inputs of public bug reports of other programs, in our words: the right result, or a sentence that names the fault.

Each case begins with the report that led to it.
"""

from __future__ import annotations

import datetime as dt
import functools
import multiprocessing
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusveil as cv
from corpusveil.collocations.collocation_table import load_collocations
from corpusveil.errors import CorpusveilError
from corpusveil.jobs import beam
from corpusveil.pipelines.settings import toml
from corpusveil.recognizers.terms import ListedTerms
from corpusveil.spaces import Space, Vocabulary
from corpusveil.spaces.public_counts import read_counts
from corpusveil.spaces.vectors import read_vectors
from corpusveil.spaces.vocabulary import read_words
from corpusveil.storage import files
from tests.calls import fails
from tests.engines.corpora import WORDS, Ground
from tests.ledger.books import release_of

SECRET = "zzcanary"


def said_by(call: Callable[[], object]) -> str:
    """Return the one sentence with which a call is refused."""
    with pytest.raises(CorpusveilError) as caught:
        call()
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def spend(url: Path, space: Space, number: int = 0) -> float:
    """Spend on two customers, and return the most that one has spent."""
    table = pa.table({"text": [f"{WORDS[1]} {WORDS[2]}", WORDS[3]], "customer": [1, 2]})
    ledger = cv.Ledger(str(url), cap=10_000)
    cv.privatize(table, release_of(space, 1.0, number), ids=[1, 2], ledger=ledger, unit="customer")
    return ledger.spent().most


class TestLedgers:
    @pytest.mark.parametrize("folder", ["nats=0", "noise=0", "unit=3", "it's [a] *"])
    def test_count_the_same_wherever_temporary_files_are(
        self, space: Space, tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """duckdb/duckdb#10431, #4699 and ducklake#1027: folders are no columns, and their names no patterns."""
        expected = spend(tmp_path / "a", space)
        (tmp_path / folder).mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / folder))
        assert spend(tmp_path / "b", space) == expected > 0
        assert cv.Ledger(str(tmp_path / "b")).spent_on("1").most == expected

    @pytest.mark.parametrize(
        ("report", "damage", "name"),
        [
            ("duckdb/ducklake#680", lambda entry: os.truncate(entry, 99), "{0}"),
            ("delta-io/delta-rs#3645", Path.unlink, ".kept"),
            ("apache/arrow#48169", lambda entry: pq.write_table(pq.read_table(entry), entry), "{0}"),
            ("huggingface/lerobot#2568", lambda entry: entry.with_name(f"._{entry.name}").touch(), "._{0}"),
            ("delta-io/delta-rs#1254", lambda entry: shutil.copy(entry, f"{entry}.2.parquet"), "{0}.2.parquet"),
        ],
    )
    def test_are_refused_with_the_file_that_is_not_as_written(
        self, space: Space, tmp_path: Path, report: str, damage: Any, name: str
    ) -> None:
        spend(tmp_path, space)
        (entry,) = (tmp_path / "entries").glob("*.parquet")
        damage(entry)
        assert name.format(entry.name) in said_by(lambda: spend(tmp_path, space, 1)), report

    def test_have_the_entries_of_parallel_runs_and_of_no_other_programs(self, space: Space, tmp_path: Path) -> None:
        """delta-io/delta#1830; apache/arrow#2027 and duckdb/duckdb#15916: what other programs leave is no entry."""
        each = spend(tmp_path, space)
        for name in (".DS_Store", ".x.parquet.crc"):
            (tmp_path / "entries" / name).write_bytes(b"x")
        threads = [threading.Thread(target=spend, args=(tmp_path, space, number)) for number in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cv.Ledger(str(tmp_path)).spent().most == pytest.approx(5 * each)


@pytest.mark.parametrize(
    ("report", "options", "name"),
    [
        ("apache/beam#28402", "--extra-package=x", "--extra-package"), ("apache/beam#25943", "-f=x", "-f"),
        ("apache/beam#34934", "--proj=x", "--proj"), ("apache/beam#34101", "--help", "--help"),
        ("apache/beam#32478", "--project=x --region=y", "temp_location"),
        ("googlegenomics/gcp-variant-transforms#205", "--num_workers=many", "--num_workers"),
        ("apache/beam#34101", "--runner=DirectRunner", "--runner"),
    ],
)  # fmt: skip
def test_an_option_of_dataflow_is_known_or_refused(report: str, options: str, name: str) -> None:
    assert name in said_by(beam.Beam("DataflowRunner", (options,)).check), report


def of_terms(file: str) -> object:
    return ListedTerms.of_bytes(Path(file).read_bytes(), file)


def of_counts(file: str) -> object:
    return read_counts(file, Vocabulary.from_words(["the", "new_york", "NA", "nan"])).tolist()


@pytest.mark.parametrize(
    ("report", "read", "name", "data", "expected"),
    [
        ("mammothb/symspellpy#117", of_counts, "c.tsv", "\ufeffthe\t3\n", [3, 0, 0, 0]),
        ("Esukhia/sympound-python#8", of_counts, "c.tsv", "the\t3\n".encode("utf-16"), "UTF-16"),
        ("mammothb/symspellpy#143", of_counts, "c.tsv", "the\t0.03\n", "row 1"),
        ("danpovey/pocolm#100", of_counts, "c.tsv", f"3\t{SECRET}\n", "row 1"),
        ("snakemake-workflows/dna-seq-varlociraptor#360", of_counts, "c.tsv", "NA\t3\nnan\t4\n", [0, 0, 3, 4]),
        ("wolfgarbe/SymSpell#78", of_counts, "c.csv", '"word","count"\n"new york",3\n"the",4\n', [4, 3, 0, 0]),
        ("the same, damaged", of_counts, "c.csv", f"the,3\n{SECRET}\rx,4\n", "row 2"),
        ("duckdb/duckdb#5294", of_counts, "c.parquet", {"ngram": ["the"], "count": [3.0]}, [3, 0, 0, 0]),
        ("duckdb/duckdb#21180", of_counts, "c.parquet", {"ngram": [SECRET], "count": [1e30]}, "'count'"),
        ("piskvorky/gensim#3042", lambda file: load_collocations(file).scores.tolist(), "t.parquet",
         {"ngram": ["new york"], "score": [1.2]}, [1.2]),
        ("stanfordnlp/GloVe#150", read_vectors, "v.txt", "a 1 2\n. . 1 2\n", "row 2"),
        ("facebookresearch/fastText#318", read_vectors, "v.txt", "a 1 2\nb\xa0 1 2\n", "row 2"),
        ("facebookresearch/fastText#505", read_vectors, "v.txt", "2 2\na 1 2\n\t 1 2\n", "row 3"),
        ("Embedding/Chinese-Word-Vectors#168", read_vectors, "v.txt", "2 9\na 3:0.2 9:1\n", "row 2"),
        ("piskvorky/gensim#2881", read_vectors, "v.bin", "2 2\na 0.1 0.2\nb 0.3 0.4\n", "this file are text"),
        ("facebookresearch/fastText#167", lambda file: read_vectors(file).words, "v.txt",
         "2 2 \na 1 2 \na\u200b 3 4 \n", ["a", "a\u200b"]),
        *(("toml-lang/toml-test#172", read, "x.txt", f"{SECRET} 1 2\n".encode(encoding), "UTF-16")
          for read in (of_terms, read_words, read_vectors, toml.read) for encoding in ("utf-16", "utf-16-le")),
        ("jdx/mise#12330", toml.read, "x.toml", '[corpus]\ninput = ["C:\\Users"]', "for each backslash"),
        ("MakazhanAlpamys/Soup#627", toml.read, "x.toml", "[budget]\nepsilonn = 5.0", "did you mean epsilon?"),
        ("pydantic/pydantic#13149", toml.read, "x.toml", '[text]\nunknown-words = "mask"', "unknown_words?"),
        ("emancu/toml-rb#63", toml.read, "x.toml", "[budget]\nepsilon = 5.0\n[budget]\nrisk = 0.5", "twice"),
        ("hukkin/tomli#304", toml.parsed, "x.toml", "\ufeff[budget]\r\nepsilon = 5\r\n", {"budget": {"epsilon": 5}}),
    ],
)  # fmt: skip
def test_files_of_others_are_read_or_refused_by_name(
    tmp_path: Path, report: str, read: Callable[[str], object], name: str, data: Any, expected: object
) -> None:
    file = tmp_path / name
    if isinstance(data, dict):
        pq.write_table(pa.table(data), file)
    else:
        file.write_bytes(data.encode() if isinstance(data, str) else data)
    if isinstance(expected, str):
        sentence = said_by(lambda: read(str(file)))
        assert expected in sentence, report
        assert name in sentence, report
    else:
        assert read(str(file)) == expected, report


VIEWS, WIDE = pa.array(["c-7", "c-9"], pa.string_view()), pl.Series([1, 2], dtype=pl.Int128)
CODED, OBJECTS = pa.DictionaryArray.from_arrays([0, 1], VIEWS), functools.partial(pd.Series, dtype=object)


@pytest.mark.parametrize(
    ("report", "column", "use", "said"),
    [
        ("pandas-dev/pandas#57349", pd.Series(np.array(["12000-01-01", "-005-01-01"], "M8[s]")), "keep", ""),
        ("apache/arrow#41896", OBJECTS([dt.date(2020, 1, 1), pd.Timestamp(2020, 1, 1, 5)]), "keep", "several types"),
        ("apache/arrow#4440", OBJECTS([2**70, 1]), "keep", "c: a kept column"),
        *(("pola-rs/polars#21661", WIDE, use, "Int128") for use in ("keep", "ids", "text", "unit")),
        *(("narwhals-dev/narwhals#3450", column, "unit", "") for column in (VIEWS, CODED)),
        ("adriangb/pgpq#103", OBJECTS(["\ud800" + SECRET, "a"]), "unit", "the unit c has half a surrogate pair"),
        ("apache/arrow#34239", pa.array([b"\xff", b"a"]).view(pa.string()), "ids", "not valid UTF-8"),
    ],
)  # fmt: skip
def test_a_column_is_used_or_named(space: Space, tmp_path: Path, report: str, column: Any, use: str, said: str) -> None:
    kinds: dict[Any, Callable[[Any], Any]] = {pd.Series: pd.DataFrame, pl.Series: pl.DataFrame}
    frame = kinds.get(type(column), pa.table)({"text": [WORDS[1], WORDS[2]], "id": [1, 2], "c": column})
    ledger = cv.Ledger(str(tmp_path)) if use == "unit" else None
    options: dict[str, Any] = {"ids": "id", "ledger": ledger, use: "c"}
    if said:
        assert said in said_by(lambda: cv.privatize(frame, release_of(space), **options)), report
    else:
        made = cv.privatize(frame, release_of(space), **options)
        assert made["c"].equals(column) if ledger is None else ledger.spent_on("c-7").most > 0, report


@pytest.mark.parametrize(("value", "why"), [("null", "is missing"), ('""', "is missing"), ("1.5", "is of type float")])
def test_a_unit_that_json_lacks_is_named_as_what_it_is(ground: Ground, tmp_path: Path, value: str, why: str) -> None:
    """elizaOS/eliza#3886: null is no text of four letters."""
    (tmp_path / "x.jsonl").write_text(f'{{"text": "{WORDS[1]}", "c": {value}}}\n')
    words = ground.arguments(tmp_path / "x.jsonl", tmp_path / "out", "--ledger", tmp_path / "ledger", "--unit", "c")
    fails(words, "unsuitable-data", f"row 1: the unit c {why};")


def test_a_long_name_is_written_or_refused_before_anything_is_drawn(ground: Ground, tmp_path: Path) -> None:
    """npm/write-file-atomic#63 and bmad-code-org/bmad-loop#595: of an unfinished file and of the page, too."""
    fails(ground.arguments(ground.corpus, tmp_path / ("y" * 246)), "unusable-address", "this name is too long")
    files.write_bytes(str(tmp_path / ("\u540d" * 85)), b"x")


def test_where_work_cannot_begin_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """celery/celery#4525: a daemon starts no processes; pypa/pip#4255: a folder that was removed has no paths."""
    monkeypatch.setattr(multiprocessing.current_process(), "daemon", True)
    assert "set workers to 1" in said_by(lambda: cv.Local(workers=2).run(print, []))
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert "a.csv: the current folder was removed" in said_by(lambda: files.exists("a.csv"))


class Web(SimpleHTTPRequestHandler):
    def send_head(self) -> Any:
        return self.send_error(503) if "busy" in self.path else super().send_head()


def test_a_web_server_without_ranges_is_read_and_a_busy_one_lacks_no_file() -> None:
    """fsspec/filesystem_spec#1748 and #1319: with Python's own server, no file changes; and 503 is not 404."""
    me = Path(__file__)
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Web, directory=str(me.parent))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        with files.open_read(f"{url}/{me.name}") as file:
            assert file.read() == me.read_bytes()
            file.raw.refuse_changed()  # type: ignore[attr-defined]
        assert "run the same command again" in said_by(lambda: files.exists(f"{url}/busy"))
        server.shutdown()
