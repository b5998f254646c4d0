"""What the fuzzer found (``make fuzz``), once each: the smallest input, and what is said or done now."""

from __future__ import annotations

import contextlib
import csv
import functools
import gzip
import hashlib
import io
import json
import re
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusveil.collocations.artifact import read_artifact
from corpusveil.collocations.collocation_table import load_collocations
from corpusveil.collocations.word2vec import Checkpoint
from corpusveil.errors import UserError
from corpusveil.ledger.entries import ABOUT, ROWS, VERSION, About, about_of, header_of
from corpusveil.pipelines.schedule_state import Finished, Planned, metrics_of
from corpusveil.pipelines.settings import toml
from corpusveil.spaces import Vocabulary, load_space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.public_counts import read_counts
from corpusveil.spaces.space import VECTORS, content_digest
from corpusveil.spaces.vectors import Vectors, read_vectors
from corpusveil.spaces.vocabulary import read_vocabulary
from corpusveil.storage import files, formats, lease
from corpusveil.storage.records import Claim, Failed, Record, Records, Shard, Totals
from corpusveil.storage.rows import Columns
from corpusveil.storage.shard_notes import Seen
from corpusveil.transforms.release.manifest import read_manifest
from fuzz.invariant import need_sentence
from tests.engines.corpora import UNKNOWN

SECRET = UNKNOWN.encode()


def sentence(call: Callable[[], Any], path: Path | str) -> str:
    """Return the one sentence that a call is refused with; it names the file and quotes nothing of it."""
    with pytest.raises(UserError) as caught:
        call()
    need_sentence(str(caught.value), str(path))
    assert UNKNOWN not in str(caught.value)
    return str(caught.value)


def batches(path: Path, columns: Columns) -> list[Any]:
    with files.open_read(str(path)) as file:
        return list(formats.find(formats.form_of(path.name)).batches(file, str(path), columns))


class TestDocuments:
    @pytest.mark.parametrize("text", ["a\rb", "\r\n", 'a"\r'])
    def test_csv_with_carriage_returns_is_read_again(self, tmp_path: Path, text: str) -> None:
        """Python before 3.13 writes them without quotes, and then does not read them."""
        sink = io.BytesIO()
        form = formats.find(".csv")
        writer = form.writer(sink, Columns(keep=("a",)), hashlib.sha256(), [pa.large_string()])
        writer.write(pa.array([text, "x"], pa.large_string()), [pa.array([text, ""], pa.large_string())])
        writer.close()
        path = tmp_path / "x.csv"
        path.write_bytes(sink.getvalue())
        (batch,) = batches(path, Columns(keep=("a",)))
        assert batch.texts.to_pylist() == [text, "x"]
        assert batch.kept[0].to_pylist() == [text, ""]
        assert [row[0] for row in csv.reader(io.StringIO(sink.getvalue().decode(), newline=""))][1:] == [text, "x"]

    @pytest.mark.parametrize(("inside", "depth"), [(b"1", 300), (b"1234567890123456789012", 1000)])
    def test_json_nested_deep_is_a_bad_row(self, tmp_path: Path, inside: bytes, depth: int) -> None:
        """It raised RecursionError or TypeError, depending on how deep the caller itself stood."""
        path = tmp_path / "x.jsonl"
        nest = b"[" * depth + inside + b"]" * depth
        path.write_bytes(b'{"text": "' + SECRET + b'", "a": ' + nest + b'}\n{"text": "b", "a": 1}\n')
        (batch,) = batches(path, Columns(keep=("a",)))
        (bad,) = batch.bad
        assert (bad.number, bad.why.partition(";")[0]) == (0, "nested too deeply")
        assert list(batch.numbers) == [1]

    def test_parquet_with_fewer_rows_than_it_says_is_refused(self, tmp_path: Path) -> None:
        """A row group with a negative number of rows ended the file without a word."""
        sink = io.BytesIO()
        pq.write_table(pa.table({"text": [UNKNOWN] * 9}), sink, row_group_size=1, compression="none")
        whole = sink.getvalue()
        path, hit = tmp_path / "x.parquet", 0
        footer = int.from_bytes(whole[-8:-4], "little")
        for at in range(len(whole) - 8 - footer, len(whole) - 8):
            changed = bytearray(whole)
            changed[at] ^= 0x29  # a 1 becomes a -20, as Thrift writes them
            path.write_bytes(changed)
            try:
                sizes = [pq.read_metadata(path).row_group(k).num_rows for k in range(9)]
            except Exception:  # noqa: BLE001 - other places in the footer
                continue
            if min(sizes) < 0:
                hit += 1
                assert "not a valid Parquet file" in sentence(lambda: batches(path, Columns()), path)
        assert hit


class TestVectors:
    def test_parquet_of_other_types(self, tmp_path: Path) -> None:
        """Also with a column twice, which Arrow said in three lines, with every column's name."""
        path, matrix = tmp_path / "x.parquet", [[1.0], [2.0]]
        for words, vectors, counts in (
            (["a", "b"], matrix, [UNKNOWN, "1"]),
            (["a", "b"], matrix, [None, 1]),
            (["a", "b"], matrix, [{"a": 1}, {"a": 2}]),
            (["a", "b"], [[UNKNOWN], [UNKNOWN]], [1, 2]),
            (pa.array(["a", UNKNOWN]).dictionary_encode(), matrix, [1, 2]),
            ([{UNKNOWN: 1}, {UNKNOWN: 2}], matrix, [1, 2]),
        ):
            pq.write_table(pa.table({"word": words, "vector": vectors, "count": counts}), path)
            sentence(lambda: read_vectors(str(path)), path)
        columns: dict[str, list[Any]] = {"word": ["a", "b"], "vector": matrix, "count": [1, 2]}
        for twice, column in columns.items():
            pq.write_table(pa.table([*columns.values(), column], names=[*columns, twice]), path)
            sentence(lambda: read_vectors(str(path)), path)

    def test_small_parquet_that_is_large_inside(self, tmp_path: Path) -> None:
        """A page of one value, many million times: a kilobyte of file, gigabytes of memory."""
        path = tmp_path / "x.parquet"
        words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3_500_000, np.int32)), pa.array(["x" * 100]))
        pq.write_table(
            pa.table({"word": words.cast(pa.string()), "vector": pa.nulls(len(words), pa.list_(pa.float32()))}), path
        )
        assert path.stat().st_size < 1 << 18
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        sentence(lambda: read_vectors(str(path)), path)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 700 << 10

    def test_npz_members_that_are_no_arrays(self, tmp_path: Path) -> None:
        path = tmp_path / "x.npz"
        np.savez(path, vectors=np.eye(2))
        import zipfile

        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("vocab.npy", SECRET)
        assert "not a NumPy array" in sentence(lambda: read_vectors(str(path)), path)

    def test_headers_of_thousands_of_digits_and_gzip_that_is_none(self, tmp_path: Path) -> None:
        for name, data in (
            ("x.txt", b"9" * 5000 + b" 3\na 1 2 3\n"),
            ("x.bin", b"9" * 5000 + b" 3\n"),
            ("x.txt.gz", SECRET),
        ):
            path = tmp_path / name
            path.write_bytes(data)
            sentence(lambda path=path: read_vectors(str(path)), path)  # type: ignore[misc]


class TestCounts:
    def test_of_a_vocabulary_that_are_negative(self, tmp_path: Path) -> None:
        """They were refused without a word about where."""
        path = tmp_path / "vocabulary.parquet"
        pq.write_table(pa.table({"id": [0, 1], "token": ["a", UNKNOWN], "count": [1, -1]}), path)
        assert "negative" in sentence(lambda: read_vocabulary(str(path)), path)

    WORDS = Vocabulary.from_words(["a", "b"])

    def test_that_add_up_beyond_64_bits(self, tmp_path: Path) -> None:
        """They came round again as another number."""
        path = tmp_path / "x.tsv"
        path.write_text("a\t999999999999999999\n" * 20)
        assert "64 bits" in sentence(lambda: read_counts(str(path), self.WORDS), path)
        table = tmp_path / "x.parquet"
        pq.write_table(pa.table({"ngram": ["a", "a"], "count": [2**63 - 1, 2**63 - 1]}), table)
        assert "64 bits" in sentence(lambda: read_counts(str(table), self.WORDS), table)

    def test_with_a_separator_that_is_no_blank_to_all(self, tmp_path: Path) -> None:
        path = tmp_path / "x.tsv"
        path.write_text("a\t3\x1d\n")
        assert read_counts(str(path), self.WORDS).tolist() == [3, 0]

    def test_that_are_text_are_not_quoted(self, tmp_path: Path) -> None:
        path = tmp_path / "x.parquet"
        pq.write_table(pa.table({"ngram": ["a"], "count": [UNKNOWN]}), path)
        sentence(lambda: read_counts(str(path), self.WORDS), path)


CONFIGURATIONS = (
    "[budget]\nepsilon = 1" + "0" * 400,
    "[budget]\nepsilon = 1" + "0" * 5000,
    "a = " + "[" * 5000,
    '["a\\nb"]\n',
    '[budget]\n"a\\nb" = 1\n',
    f'[budget]\nepsilon = "{"x" * 1000}"\n',
    "[budget]\nepsilon = 1979-05-27\n",
    "[budget]\nepsilon = 1.0\nweights = [true]\n",
    "[space]\npath = 'x'\nlists = 99999999999999999999\n",
)


class TestConfiguration:
    def test_is_refused_in_one_sentence(self, tmp_path: Path) -> None:
        path = tmp_path / "x.toml"
        for configuration in CONFIGURATIONS:
            path.write_text(configuration)
            sentence(lambda: toml.read(str(path)), path)

    def test_that_is_written_out_is_read_again(self, tmp_path: Path) -> None:
        """JSON leaves the character of Delete as it is, TOML does not take it so."""
        path = tmp_path / "x.toml"
        path.write_text('[collocations]\ninput = ["a\\u007f\\n\\u0001é"]\ncounts = "c"\ntable = "t"\ntokens = "k"\n')
        found = toml.read(str(path))
        path.write_text(toml.written(found))
        assert toml.read(str(path)).settings == found.settings


JSONS = [b"[]", b"1", b"null", b"{}", b'{"_": 1', b"\xff", b"[" * 5000, b'{"release": 1}', b'{"shards": {"x": 1}}']


class TestStates:
    def test_files_of_json_that_are_none(self, tmp_path: Path) -> None:
        """Records, manifests, descriptions, checkpoints and metrics."""
        kinds: dict[str, type[Record]] = {
            "run.json": Claim, "totals.json": Totals, "shards/x.json": Shard, "failed/x.json": Failed,
            "seen/x.json": Seen, "runs/1.plan.json": Planned, "runs/1.done.json": Finished,
        }  # fmt: skip
        records, url = Records(str(tmp_path)), str(tmp_path)
        readers: list[tuple[str, Callable[[], Any]]] = [
            *((name, functools.partial(records.read, name, kind)) for name, kind in kinds.items()),
            ("manifest.json", lambda: read_manifest(url)),
            ("_artifact.json", lambda: read_artifact(url, "counts")),
            ("_artifact.json", lambda: load_space(url)),
            ("state.json", Checkpoint(url, "m").remove),
            ("metrics.jsonl", lambda: metrics_of(records)),
        ]
        for name, read in readers:
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            for data in JSONS:
                path.write_bytes(data + b"\n")
                assert "damaged" in sentence(read, path if name in kinds else tmp_path) or name not in kinds

    @pytest.mark.parametrize(("holder", "beat"), [(JSONS[3], b"{}"), (JSONS[5], b"\xff"), (b"[]", b'{"time": "x"}')])
    def test_a_damaged_lease_is_taken_over_when_it_stands_still(
        self, tmp_path: Path, holder: bytes, beat: bytes
    ) -> None:
        (tmp_path / "lease-00000001.json").write_bytes(holder)
        (tmp_path / "lease-00000001.beat").write_bytes(beat)
        assert isinstance(lease.take(str(tmp_path), 0.05), lease.Lease)

    def test_ledger_entries_that_are_none(self, tmp_path: Path) -> None:
        """Damage that Arrow reports as an OSError, nulls, and negative numbers."""
        names = dict.fromkeys(("unit", "namespace", "column", "release", "metric", "mechanism", "space"), UNKNOWN)
        about = About(**names, version=VERSION, ranged=False, budget={}, documents=1, tokens=1)
        tags = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"c" * 16], pa.binary(16)))
        path = tmp_path / "x.parquet"

        def write(number: int | None, header: Any = None) -> None:
            numbers = [pa.array([number], pa.int64())] * (len(ROWS) - 2)
            schema = ROWS.with_metadata({ABOUT: header_of(about) if header is None else json.dumps(header)})
            pq.write_table(pa.table([tags, tags, *numbers], schema=schema), path)

        for spent in (None, -1):
            write(spent)
            sentence(lambda: about_of(str(path)), path)
        for version in (UNKNOWN, None, 1.5, [], True):
            write(1, {**about.model_dump(mode="json"), "version": version})
            sentence(lambda: about_of(str(path)), path)
        write(1)
        assert about_of(str(path)) == (about, 1)
        whole = path.read_bytes()
        for at in range(0, len(whole), 13):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
            with contextlib.suppress(UserError):
                about_of(str(path))

    def test_collocation_tables_that_are_none(self, tmp_path: Path) -> None:
        path = tmp_path / "x.parquet"
        rows: dict[str, list[Any]]
        for rows in (
            {"ngram": ["a b", None], "n": [2, 2], "score": [1.0, 1.0]},
            {"ngram": ["a b"], "n": [None], "score": [1.0]},
            {"ngram": ["a b"], "n": [2], "score": [float("nan")]},
            {"ngram": [UNKNOWN], "n": [2], "score": [1.0]},
            {"ngram": ["a b"], "n": ["2x"], "score": [1.0]},
            {"ngram": [], "n": [], "score": []},
        ):
            pq.write_table(pa.table(rows), path)
            load_collocations.cache_clear()
            sentence(lambda: load_collocations(str(path)), path)

    @pytest.mark.parametrize("bad", ["nan", "blank", "empty"])
    def test_spaces_that_nobody_can_build(self, tmp_path: Path, bad: str) -> None:
        """Whoever changes a space also gives it the digest of its new content."""
        words = {"nan": ["a", "b", "c"], "blank": ["a", "b\nc", "c"], "empty": ["a", "", "c"]}[bad]
        space = build_space(Vectors(["a", "b", "c"], np.eye(3, dtype=np.float32)))
        matrix = np.array(space.vectors)
        if bad == "nan":
            matrix[1, 1] = np.nan
        object.__setattr__(space, "vocabulary", Vocabulary.from_words(words))
        object.__setattr__(space, "vectors", matrix)
        digest = content_digest(space.vocabulary, matrix, space.lists)
        space.info["digest"] = digest
        object.__setattr__(space, "digest", digest)
        space.save(str(tmp_path / "s"))
        assert (tmp_path / "s" / VECTORS).exists()
        assert re.search("blank|finite", sentence(lambda: load_space(str(tmp_path / "s")), tmp_path / "s"))


def test_a_gzip_bomb_is_read_in_chunks(tmp_path: Path) -> None:
    """A file of many times its size takes the memory of a few chunks."""
    path = tmp_path / "x.txt.gz"
    path.write_bytes(gzip.compress((b"bababa dede " * 80 + b"\n") * 1000, 9) * 200)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with files.open_read(str(path)) as file:
        rows = sum(len(batch.numbers) for batch in formats.find(".txt.gz").batches(file, str(path), Columns()))
    assert rows == 200_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10
