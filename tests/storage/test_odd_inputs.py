"""Odd files: each is read correctly, or refused in one correct sentence."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import os
import re
import resource
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusveil.cli.main import run
from corpusveil.errors import UserError
from corpusveil.spaces.vectors import read_vectors
from corpusveil.storage import files, formats, forms
from corpusveil.storage.forms import split
from corpusveil.storage.rows import Columns
from tests.calls import refused
from tests.engines.corpora import Ground

BOM = b"\xef\xbb\xbf"
ROWS = {
    ".jsonl": b'{"text": "ba de"}\n{"text": "lo"}\n',
    ".csv": b"text\nba de\nlo\n",
    ".txt": b"ba de\nlo\n",
}


def sentence(ground: Ground, source: object, output: object, *more: str) -> str:
    """Privatize what has to be refused; return the one sentence, as a stream of ASCII shows it."""
    errors = io.TextIOWrapper(io.BytesIO(), "ascii", errors="backslashreplace", write_through=True)
    with contextlib.redirect_stderr(errors):
        assert run(ground.arguments(str(source), str(output), *more)) == 2
    (sentence,) = errors.buffer.getvalue().decode().splitlines()
    assert sentence.startswith("corpusveil: ")
    return sentence


def test_names_that_are_not_utf8(ground: Ground, tmp_path: Path) -> None:
    """Of a file, of a folder above it, and of what is asked for."""
    for name in (b"\xff/a.jsonl", b"\xffa.jsonl"):
        path = os.fsencode(tmp_path / "in") + b"/" + name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_text('{"text": "ba"}\n')
        said = sentence(ground, tmp_path / "in", tmp_path / "out")
        assert re.search(r"in/\\xff(/a|a)\.jsonl: this name is not valid UTF-8; rename", said)
        os.unlink(path)
    said = sentence(ground, ground.corpus, os.fsdecode(os.fsencode(tmp_path) + b"/o\xff"))
    assert "/o\\xff: this name is not valid UTF-8" in said


class TestAByteOrderMark:
    @pytest.mark.parametrize("suffix", ROWS)
    def test_is_no_part_of_the_text(self, suffix: str) -> None:
        """The same rows with it as without."""
        for codec in ("", ".gz"):
            data, form = BOM + ROWS[suffix], formats.find(suffix + codec)
            file = gzip.compress(data) if codec else data
            batches = form.batches(io.BytesIO(file), f"a{suffix}", Columns())
            assert [text for batch in batches for text in batch.texts.to_pylist()] == ["ba de", "lo"]
            assert form.rows(io.BytesIO(file), f"a{suffix}") == 2

    def test_alone_is_no_row(self) -> None:
        assert list(split(iter([BOM]), "a.txt")) == []
        assert list(split(iter([BOM[:2], BOM[2:] + b"a"]), "a.txt")) == [[b"a"]]
        assert list(split(iter([b"a\n" + BOM + b"b"]), "a.txt")) == [[b"a"], [BOM + b"b"]]


class TestALineThatFillsTheMemory:
    """A few hundred kilobytes of gzip can hold a line of any length."""

    @pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".txt"])
    def test_is_refused_by_file_and_line(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, suffix: str) -> None:
        """Nothing behind the stated size is read. In CSV a quote that is not closed makes one row of all lines."""
        monkeypatch.setattr(forms, "MOST_LINE_BYTES", 4 << 20)
        head = {".jsonl": b'{"text": "a"}\n{"text": "', ".csv": b'text\na\n"', ".txt": b"a\n"}[suffix]
        more = b"a" * ((1 << 20) - 1) + (b"\n" if suffix == ".csv" else b"a")
        reads = itertools.chain([head], itertools.repeat(more, 7))  # an eighth of these is too many
        source: Any = SimpleNamespace(read=lambda _=-1: next(reads))
        with refused("bad-row", f"x{suffix}, line {3 if suffix == '.csv' else 2}"):
            list(formats.find(suffix).batches(source, f"x{suffix}", Columns()))

    def test_of_compressed_bytes_takes_that_of_a_few_chunks(self, tmp_path: Path) -> None:
        """Text in gzip, and a page of one value, many million times: both are gigabytes inside."""
        text, table = tmp_path / "x.txt.gz", tmp_path / "x.parquet"
        text.write_bytes(gzip.compress((b"bababa dede " * 80 + b"\n") * 1000, 9) * 200)
        words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3_500_000, np.int32)), pa.array(["x" * 100]))
        nulls = pa.nulls(len(words), pa.list_(pa.float32()))
        pq.write_table(pa.table({"word": words.cast(pa.string()), "vector": nulls}), table)
        assert table.stat().st_size < 1 << 18
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with files.open_read(str(text)) as file:
            batches = formats.find(".txt.gz").batches(file, str(text), Columns())
            assert sum(len(batch.numbers) for batch in batches) == 200_000
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10
        with pytest.raises(UserError):
            read_vectors(str(table))
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 700 << 10


class TestALossOfPower:
    """What a file needs to be there afterwards is flushed before it counts as written, its folder's names too."""

    @pytest.fixture
    def flushed(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """What was flushed and made, in this order."""
        told: list[str] = []
        fsync, replace, mkdir = os.fsync, os.replace, os.mkdir

        def noting(descriptor: int) -> None:
            told.append("flush " + Path(os.readlink(f"/proc/self/fd/{descriptor}")).name.split(".")[0])
            fsync(descriptor)

        def named(source: Any, target: Any) -> None:
            replace(source, target)
            told.append(f"name {Path(target).name}")

        def made(path: Any, *more: Any) -> None:
            mkdir(path, *more)
            told.append(f"make {Path(path).name}")

        monkeypatch.setattr(os, "fsync", noting)
        monkeypatch.setattr(os, "replace", named)
        monkeypatch.setattr(os, "mkdir", made)
        return told

    def test_folders_are_flushed_where_files_are(self, tmp_path: Path, flushed: list[str]) -> None:
        files.write_bytes(str(tmp_path / "x" / "y" / "file"), b"a")
        assert flushed == ["make x", f"flush {tmp_path.name}", "make y", "flush x", "flush ", "name file", "flush y"]

    def test_also_of_files_that_only_one_may_make(self, tmp_path: Path, flushed: list[str]) -> None:
        assert files.create_bytes(str(tmp_path / "file"), b"a")
        assert flushed == ["flush ", f"flush {tmp_path.name}"]
