"""Vectors in every format, spaces, and their lists and counts."""

from __future__ import annotations

import functools
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.spaces.build import build_space
from corpusveil.spaces.public_counts import read_counts
from corpusveil.spaces.space import LISTS, VECTORS, VOCABULARY, Space, content_digest, load_space
from corpusveil.spaces.vectors import Vectors, read_vectors
from corpusveil.spaces.vocabulary import Vocabulary, read_vocabulary, read_words, write_vocabulary
from fuzz.containers import RAW, changed, one, packed, pieces, zipped
from fuzz.invariant import CANARY, Reader, need, refused

WORDS = [f"{CANARY}a", "b_c", "é", "der", "17", f"{CANARY}"]
MATRIX = ((np.arange(12).reshape(6, 2) - 3.5) / 7).astype(np.float32)


def need_vectors(found: Vectors) -> None:
    """Raise Finding unless vectors keep their invariants."""
    need(found.vectors.dtype == np.float32 and found.vectors.shape[0] == len(found.words) >= 2, "a wrong matrix")
    need(np.isfinite(found.vectors).all(), "a number that is not finite")
    need(len(set(found.words)) == len(found.words), "a word that is there twice")
    need(all(word.split() == [word] for word in found.words), "a word that is empty or contains a blank")
    need(found.counts is None or found.counts.shape == (len(found.words),), "counts of another number")


def as_text(words: list[str], matrix: np.ndarray) -> bytes:
    lines = [f"{len(words)} {matrix.shape[1]}"]
    lines += [f"{word} {' '.join(str(x) for x in row)}" for word, row in zip(words, matrix, strict=True)]
    return ("\n".join(lines) + "\n").encode()


def as_binary(words: list[str], matrix: np.ndarray) -> bytes:
    rows = (word.encode() + b" " + row.astype("<f4").tobytes() for word, row in zip(words, matrix, strict=True))
    return f"{len(words)} {matrix.shape[1]}\n".encode() + b"\n".join(rows)


def npy(array: np.ndarray) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array)
    return sink.getvalue()


def as_npz(words: list[str], matrix: np.ndarray) -> bytes:
    return zipped([("vocab.npy", npy(np.array(words))), ("vectors.npy", npy(matrix))])


def check_vectors(data: bytes, folder: Path, suffix: str) -> None:
    """Read vectors, and read them again in the forms that they can be written in."""
    path = folder / f"x{suffix}"
    choice, content = data[:1] or b"\0", data[1:]
    path.write_bytes(_file(content, suffix, raw=bool(choice[0] & RAW)))
    found = refused(lambda: read_vectors(str(path)), path)
    if found is None:
        return
    need_vectors(found)
    for ending, write in ((".txt", as_text), (".bin", as_binary), (".npz", as_npz)):
        again = folder / f"y{ending}"
        again.write_bytes(write(found.words, found.vectors))
        read = read_vectors(str(again))
        need(read.words == found.words, f"other words when they are read again from {ending}")
        need(np.array_equal(read.vectors, found.vectors), f"other numbers when they are read again from {ending}")


def _file(content: bytes, suffix: str, *, raw: bool) -> bytes:
    if raw:
        return content
    if suffix == ".npz":
        vocabulary, vectors = pieces(content, 2)
        return zipped([("vocab.npy", vocabulary), ("vectors.npy", vectors)])
    return packed(content, ".gz" if suffix.endswith(".gz") else "", raw=False)


def text_seeds() -> Iterator[bytes]:
    yield b"\0" + as_text(WORDS, MATRIX)
    yield b"\0" + as_text(WORDS, MATRIX).partition(b"\n")[2]
    yield b"\0" + as_text(WORDS, MATRIX).replace(b" ", b"\t")
    yield b"\0" + as_text(WORDS, MATRIX).replace(b"\n", b" \r\n")


def binary_seeds() -> Iterator[bytes]:
    yield b"\0" + as_binary(WORDS, MATRIX)
    header, _, rows = as_binary(WORDS, MATRIX).partition(b"\n")
    yield b"\0" + header + b"\n" + rows.replace(b"\n", b"")


def npz_seeds() -> Iterator[bytes]:
    for vocabulary in (np.array(WORDS), np.array([word.encode() for word in WORDS])):
        for dtype in ("f4", ">f8", "f2", "i4"):
            yield b"\0" + one(npy(vocabulary), npy(MATRIX.astype(dtype)))
    yield b"\0" + one(npy(np.array(WORDS)), npy(np.asfortranarray(MATRIX)))
    yield bytes([RAW]) + as_npz(WORDS, MATRIX)


def _vocabulary(counts: np.ndarray | None = None) -> Vocabulary:
    return Vocabulary.from_words(WORDS, counts)


def check_space(data: bytes, folder: Path) -> None:
    """Open a space with one changed file; if it opens, it is valid and, after saving, opens as the same space."""
    parts = _parts()
    names = list(parts)
    choice, content = data[0] if data else 0, data[1:]
    name = names[(choice & 0x1F) % len(names)]
    parts[name] = content if choice & RAW else changed(parts[name], content)
    where = folder / "space"
    where.mkdir(exist_ok=True)
    for one_name, part in parts.items():
        (where / one_name).write_bytes(part)
    if choice & 0x40:
        _sign(where)
    space = refused(lambda: load_space(str(where), verify=not choice & 0x20), where)
    if space is None:
        return
    need(
        space.vectors.dtype == np.float32 and len(space.vectors) == len(space) == len(set(space.vocabulary.words)),
        "a wrong space",
    )
    need(choice & 0x20 or np.isfinite(space.vectors).all(), "a vector that is not finite")
    need(
        all(word and not set(" \t\n\r\v\f\0") & set(word) for word in space.vocabulary.words),
        "a word that is empty or contains a blank",
    )
    need((np.sort(space.lists, axis=1) == np.arange(len(space))).all(), "a list with gaps")
    space.positions  # noqa: B018 - computed
    if not choice & 0x20:
        need(choice & 0x40 or space.digest == _space().digest, "another space under the same digest")
        again = folder / f"again-{os.getpid()}"
        space.save(str(again))
        need(load_space(str(again)) == space, "another space when it is opened again")
        for path in again.iterdir():
            path.unlink()


@functools.cache
def _space() -> Space:
    return build_space(Vectors(list(WORDS), MATRIX), lists=2, counts=np.arange(6))


def _parts() -> dict[str, bytes]:
    space = _space()
    return {
        "_artifact.json": json.dumps(space.info).encode(),
        VECTORS: npy(space.vectors),
        LISTS: npy(space.lists),
        VOCABULARY: _vocabulary_file(),
    }


@functools.cache
def _vocabulary_file() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        write_vocabulary(_space().vocabulary, f"{folder}/v.parquet")
        return Path(folder, "v.parquet").read_bytes()


def _sign(where: Path) -> None:
    """Give a changed space the matching digest and sizes, as an attacker would."""
    try:
        told = json.loads((where / "_artifact.json").read_bytes())
        vocabulary = read_vocabulary(str(where / VOCABULARY))
        vectors, lists = np.load(where / VECTORS), np.load(where / LISTS)
        told |= {"words": len(vocabulary), "dimensions": vectors.shape[1], "lists": len(lists)}
        told["digest"] = content_digest(vocabulary, vectors, lists)
        (where / "_artifact.json").write_text(json.dumps(told))
    except Exception:  # noqa: BLE001 - what can't be signed stays as it is
        pass


def space_seeds() -> Iterator[bytes]:
    for number, part in enumerate(_parts().values()):
        for bits in (0, 0x20, 0x40):
            yield bytes([RAW | bits | number]) + part
            yield bytes([bits | number]) + bytes(6)


def _list_reader(name: str, suffix: str, read: Callable[[str], object], seeds: list[bytes]) -> Reader:
    def check(data: bytes, folder: Path) -> None:
        path = folder / f"x{suffix}"
        path.write_bytes(_file(data[1:], suffix, raw=False) if suffix.endswith(".gz") else data[1:])
        found = refused(lambda: read(str(path)), path)
        if isinstance(found, list):
            again = folder / "y.txt"
            again.write_text("\n".join(found), encoding="utf-8", newline="\n")
            need(read_words(str(again)) == found, "other words when they are read again")

    return Reader(name, lambda: iter(seeds), check)


def _counts(url: str) -> object:
    found = read_counts(url, _vocabulary())
    need(found.dtype == np.int64 and found.shape == (len(WORDS),) and found.min() >= 0, "counts that are none")
    return found


def _vocabulary_of(url: str) -> object:
    found = read_vocabulary(url)
    need(all(isinstance(word, str) for word in found.words), "a word that is no text")
    need(len(set(found.words)) == len(found), "a word that is there twice")
    return found


def _ngrams() -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"ngram": ["der", "b c", "17"], "n": [1, 2, 1], "count": [5, 3, 2]}), sink, compression="none"
    )
    return sink.getvalue()


def readers() -> Iterator[Reader]:
    for name, suffix, seeds in (
        ("vectors-text", ".txt", text_seeds), ("vectors-text.gz", ".txt.gz", text_seeds),
        ("vectors-binary", ".bin", binary_seeds), ("vectors-npz", ".npz", npz_seeds),
    ):  # fmt: skip
        yield Reader(name, seeds, functools.partial(check_vectors, suffix=suffix))
    yield Reader("space", space_seeds, check_space)
    words = "\n".join(WORDS).encode()
    table = "\n".join(f"{word}\t{k}" for k, word in enumerate(WORDS, 3)).encode()
    yield _list_reader("words", ".txt", read_words, [b"\0" + words, b"\0\xef\xbb\xbf" + words.replace(b"\n", b"\r\n")])
    yield _list_reader("counts-tsv", ".tsv", _counts, [b"\0" + table, b"\0word\tcount\n" + table])
    yield _list_reader("counts-csv.gz", ".csv.gz", _counts, [b"\0" + table.replace(b"\t", b",")])
    yield _list_reader("counts-parquet", ".parquet", _counts, [b"\0" + _ngrams()])
    yield _list_reader("vocabulary", ".parquet", _vocabulary_of, [b"\0" + _vocabulary_file()])
