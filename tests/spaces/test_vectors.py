"""Vectors are read exactly from every format, and what cannot be used is refused with its file and row."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from gensim.models import KeyedVectors

from corpusveil.errors import DataError, UserError
from corpusveil.spaces.vectors import Vectors, read_vectors
from tests.calls import refused

WORDS = ["the", "Straße", "я", ".", "new_york", "a\u200bb", "\u00ad", '"', "nan", "#"]
MATRIX = np.random.default_rng(5).normal(size=(len(WORDS), 4)).astype(np.float32)


def lines(words: list[str] = WORDS, matrix: np.ndarray = MATRIX) -> str:
    return "".join(f"{w} {' '.join(repr(float(x)) for x in row)}\n" for w, row in zip(words, matrix, strict=True))


def same(vectors: Vectors) -> None:
    assert vectors.words == WORDS
    assert vectors.vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors.vectors, MATRIX)


@pytest.mark.parametrize(("header", "suffix"), [("", ".gz"), (f"{len(WORDS)} 4\n", "")])
def test_text_is_read_exactly_with_and_without_header_and_gzip(tmp_path: Path, header: str, suffix: str) -> None:
    path = tmp_path / f"glove.txt{suffix}"
    data = (header + lines()).encode()
    path.write_bytes(gzip.compress(data) if suffix else data)
    vectors = read_vectors(str(path))
    same(vectors)
    assert vectors.source == path.name


@pytest.mark.parametrize("many", [0, 700])
@pytest.mark.parametrize(
    ("bad", "row_says"),
    [
        ("x 1 2", "2 numbers where 3"),
        ("x 1 2 3 4", "cannot contain a blank"),
        ("x 1 two 3", "not a number"),
        ("x 1 nan 3", "not finite"),
        ("x 1 1e39 3", "not finite"),
        ("first 1 2 3", "this word is also in row"),
        ("", "0 numbers"),
        (" 1 2 3", "is empty"),
    ],
)
def test_a_bad_row_is_named_by_its_number(tmp_path: Path, bad: str, row_says: str, many: int) -> None:
    """Also far down the file, where it is not in the first block; a header counts as a row."""
    good = [f"w{i} 1 2 3" for i in range(many)]
    body = ["first 1 2 3", *good, bad, "last 4 5 6"]
    path = tmp_path / "v.txt"
    for header in ([], [f"{len(body)} 3"]):
        path.write_text("\n".join(header + body) + "\n", encoding="utf-8")
        with pytest.raises(DataError) as error:
            read_vectors(str(path))
        assert f"{path}, row {len(header) + many + 2}:" in str(error.value)
        assert row_says in str(error.value)


@pytest.mark.parametrize(
    ("data", "refusal"),
    [
        (b"", ("unsuitable-data",)),
        (b"5 3\n", ("unsuitable-data",)),
        (b"one 1 2 3\n", ("unsuitable-data",)),
        (b"3 2\na 1 2\nb 3 4\n", ("unsuitable-data",)),
        (b"1 2\na 1 2\nb 3 4\n", ("unsuitable-data",)),
        (b"2 3\na 1 2\nb 3 4\n", ("unsuitable-data", "row 2")),
    ],
)
def test_files_that_are_not_whole_are_refused(tmp_path: Path, data: bytes, refusal: Any) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(data)
    with refused(*refusal) as error:
        read_vectors(str(path))
    assert str(path) in str(error.value)


def test_a_byte_order_mark_is_no_part_of_the_first_word_in_any_packing(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + lines().encode()
    for suffix, pack in (("", bytes), (".gz", gzip.compress), (".zst", zstandard.ZstdCompressor().compress)):
        path = tmp_path / f"v.txt{suffix}"
        path.write_bytes(pack(data))
        assert read_vectors(str(path)).words == list(WORDS)


def test_no_word_has_white_space_of_any_kind(tmp_path: Path) -> None:
    for blank in ("\u2028", "\u2029", "\x85", "\xa0", "\u3000", "\x1c"):
        for word in (blank, f"a{blank}b", f"{blank}a", f"a{blank}"):
            path = tmp_path / "v.txt"
            path.write_text(f"{WORDS[0]} 1 2\n{word} 1 2\n", encoding="utf-8", newline="")
            with refused("unsuitable-data", "v.txt, row 2"):
                read_vectors(str(path))
            with refused("unsuitable-data", "row 2"):
                Vectors([WORDS[0], word], np.ones((2, 2), np.float32))


def test_a_file_that_is_damaged_or_cut_is_refused(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "v.npz", vocab=np.array(WORDS), vectors=MATRIX)
    for name, whole in (("v.txt.gz", gzip.compress(lines().encode())), ("v.npz", (tmp_path / "v.npz").read_bytes())):
        for data in (whole[:-40], whole[:40], b"PK nothing", whole[:90] + b"\0\0\0\0" + whole[94:]):
            (tmp_path / name).write_bytes(data)
            with refused("unsuitable-data", name):
                read_vectors(str(tmp_path / name))


def test_npz_is_read(tmp_path: Path) -> None:
    """Of any width of floats; words may be UTF-8 in bytes."""
    for words in (WORDS, [word.encode() for word in WORDS]):
        np.savez(tmp_path / "v.npz", vocab=np.array(words), vectors=MATRIX.astype(np.float64))
        same(read_vectors(str(tmp_path / "v.npz")))


@pytest.mark.parametrize(
    ("arrays", "refusal"),
    [
        ({"vocab": np.array(WORDS, object), "vectors": MATRIX}, ("unsuitable-data", "'vocab'")),
        ({"vocab": np.array(WORDS), "vectors": MATRIX.astype(object)}, ("unsuitable-data", "'vectors'")),
        ({"words": np.array(WORDS), "vectors": MATRIX}, ("unsuitable-data", "'vocab'")),
        ({"vocab": np.array(WORDS[:3]), "vectors": MATRIX}, ("wrong-setting", "10")),
        ({"vocab": np.array(WORDS), "vectors": MATRIX[:, 0]}, ("wrong-setting",)),
        ({"vocab": np.arange(10), "vectors": MATRIX}, ("unsuitable-data",)),
        ({"vocab": np.array(["a", "a"]), "vectors": MATRIX[:2]}, ("unsuitable-data", "row 2")),
        ({"vocab": np.array(["a", "\ud800"]), "vectors": MATRIX[:2]}, ("unsuitable-data", "row 2")),
        ({"vocab": np.array([b"a", b"\xff"]), "vectors": MATRIX[:2]}, ("unsuitable-data", "row 2", "UTF-8")),
    ],
)
def test_npz_that_cannot_be_used_is_refused(tmp_path: Path, arrays: dict[str, np.ndarray], refusal: Any) -> None:
    """Object arrays would be unpickled, which may run code: never."""
    np.savez(tmp_path / "v.npz", **arrays)  # type: ignore[arg-type]
    with refused(*refusal):
        read_vectors(str(tmp_path / "v.npz"))


def test_word2vec_binary_is_read_as_gensim_writes_it(tmp_path: Path) -> None:
    path = str(tmp_path / "v.bin")
    keyed = KeyedVectors(4)
    keyed.add_vectors(WORDS, MATRIX)
    keyed.save_word2vec_format(path, binary=True)
    same(read_vectors(path))
    data = Path(path).read_bytes()
    for bad in (data[:-3], data + b"more", b"hello\n" + data, b"99 4\n" + data[5:], b"10 9999999999\n" + data[5:]):
        Path(path).write_bytes(bad)
        with pytest.raises(UserError, match=r"v\.bin"):
            read_vectors(path)


PICKLE = b"cos\nabort\n(tR."


@pytest.mark.parametrize(
    ("name", "data", "instead"),
    [("v.kv", PICKLE, "save_word2vec_format"), ("v.model", PICKLE, "save_word2vec_format"),
     ("v.parquet", b"PAR1", "numpy.savez")],
)  # fmt: skip
def test_a_file_that_is_not_read_is_refused_unopened(tmp_path: Path, name: str, data: bytes, instead: str) -> None:
    (tmp_path / name).write_bytes(data)
    with refused("unsuitable-data", name, instead):
        read_vectors(str(tmp_path / name))
