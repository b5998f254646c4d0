"""Readers of word vectors, one a format: a file's address -> what ``Vectors`` takes, by name.

A reader checks what only it can see (a ragged row, a broken archive), and raises UserError
that names the file and the row; ``Vectors`` checks what holds for all (finite, no duplicates, no blanks). To add a
format: a reader here, and its suffix in ``READERS`` of ``spaces/vectors.py``.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from itertools import chain, islice
from typing import Any

import numpy as np

from corpusveil.arrays import Float32
from corpusveil.choices import HYPHENS
from corpusveil.errors import ArtifactError, DataError
from corpusveil.spaces.vocabulary import read_vocabulary
from corpusveil.storage import files
from corpusveil.storage.artifacts import described
from corpusveil.storage.compression import CHUNK_BYTES, Unpacked, codec_of
from corpusveil.storage.failures import BROKEN_ARRAY
from corpusveil.storage.forms import is_utf8, lines_of
from corpusveil.text.languages import rule

BROKEN_ZIP = (NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)


def decode(word: bytes, url: str, row: int) -> str:
    """Return a word's text; bytes that are not UTF-8 are a ``UserError`` that names the row."""
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{url}, row {row}: the word is not valid UTF-8; convert the file to UTF-8.") from None


def read_npz(url: str) -> dict[str, Any]:
    """Read a NumPy archive: ``vocab`` (strings [V]) and ``vectors`` ([V, d]); never unpickled."""
    unusable = (
        f"{url}: this is no .npz archive with the arrays 'vocab', one-dimensional, of strings, and 'vectors', of "
        "numbers; write it with numpy.savez."
    )
    with files.open_read(url) as file:
        try:
            archive = np.load(file, allow_pickle=False)
            words, vectors = archive["vocab"], archive["vectors"]
            is_usable = words.ndim == 1 and words.dtype.kind in "US" and isinstance(vectors, np.ndarray)
        except (*BROKEN_ARRAY, *BROKEN_ZIP):
            raise DataError(unusable) from None
    if not is_usable:
        raise DataError(unusable)
    every = words.tolist()
    if words.dtype.kind == "S":
        every = [decode(word, url, row) for row, word in enumerate(every, 1)]
    return {"words": every, "vectors": vectors}


def read_text(url: str) -> dict[str, Any]:
    """Read text: a word and its numbers a line, separated by blanks (word2vec with a header ``V d``, GloVe without).

    The first line is a header when it holds exactly two integers; so a file of one-dimensional vectors whose first word
    is a whole number needs a header.
    """
    words: list[str] = []
    vectors: list[Float32] = []
    lines = lines_of(url)
    first = list(islice(lines, 1))
    header = _header(b"".join(first))
    width = None if header is None else header[1]
    first_row = 1 if header is None else 2
    for row, line in enumerate(lines if header else chain(first, lines), first_row):
        word, _, numbers = line.replace(b"\t", b" ").rstrip(b" \r").partition(b" ")
        vectors.append(_numbers(numbers, width, url, row))
        width = vectors[0].size
        words.append(decode(word, url, row))
    if not words:
        raise DataError(f"{url}: this file has no vectors; write a word and its numbers on each line.")
    if header is not None and header[0] != len(words):
        raise DataError(
            f"{url}, row 1: the header says {header[0]} words, and the file has {len(words)}; fetch the file "
            "again if it is incomplete."
        )
    return {"words": words, "vectors": np.stack(vectors), "first_row": first_row}


def _header(line: bytes) -> tuple[int, int] | None:
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() and len(field) <= 18 for field in fields):
        return int(fields[0]), int(fields[1])
    return None


def _numbers(text: bytes, width: int | None, url: str, row: int) -> Float32:
    """Return the numbers of a row, float32 [d]. Raises UserError unless there are ``width``, and one at least."""
    try:
        numbers = np.fromstring(text, np.float32, sep=" ")
    except ValueError:
        numbers = np.empty(0, np.float32)
    if numbers.size and numbers.size == (width or numbers.size):
        return numbers
    many = len(text.split())
    if many and many == (width or many):
        raise DataError(f"{url}, row {row}: a value is not a number; correct or delete this row.")
    hint = "; a word cannot contain a blank" if width and many > width else ""
    wanted = f"where {width} are expected" if width else "after the word"
    raise DataError(f"{url}, row {row}: there are {many} numbers {wanted}{hint}; correct or delete this row.")


def read_binary(url: str) -> dict[str, Any]:
    """Read word2vec's binary format: a line ``V d``, then a word, a blank, d little-endian float32, often a newline."""
    with files.open_read(url) as packed:
        file = io.BufferedReader(Unpacked(packed, url, codec_of(url)), CHUNK_BYTES)
        header = _header(file.readline(100))
        if header is None:
            raise DataError(
                f"{url}: this does not start with two integers (words and dimensions), as word2vec's binary format "
                "does; check the format of the file."
            )
        body = file.read()
    if b"\0" not in body and is_utf8(body):
        raise DataError(f"{url}: the vectors in this file are text, not binary; end its name in .txt.")
    size, width = header
    wrong = f"{url}: the file has not the {size} words of {width} dimensions that its header says; fetch it again."
    # A word takes two bytes at least (itself and the blank): no header can ask for more memory than the file's size.
    if not size or not width or size * (4 * width + 2) > len(body):
        raise DataError(wrong)
    words: list[str] = []
    vectors = np.empty((size, width), np.float32)
    at = 0
    for row in range(size):
        blank = body.find(b" ", at)
        end = blank + 1 + 4 * width
        if blank < 0 or end > len(body):
            raise DataError(wrong)
        words.append(decode(body[at:blank].lstrip(b"\n"), url, row + 1))
        vectors[row] = np.frombuffer(body, "<f4", width, blank + 1)
        at = end
    if body[at:].strip():
        raise DataError(wrong)
    return {"words": words, "vectors": vectors}


def read_artifact(url: str) -> dict[str, Any]:
    """Read a vectors artifact: a folder with ``vectors.npy`` [V, d] and ``vocabulary.parquet``."""
    matrix = files.join(url, "vectors.npy")
    with files.open_read(matrix) as file:
        try:
            vectors = np.load(file, allow_pickle=False)
        except BROKEN_ARRAY:
            raise ArtifactError(
                f"{matrix}: this is not a valid NumPy array of numbers; write the artifact again."
            ) from None
    vocabulary = read_vocabulary(files.join(url, "vocabulary.parquet"))
    description = described(url)
    fields = {} if description is None else description.as_dict()
    read: dict[str, Any] = {name: fields.get(name) for name in ("hyphens", "language")}
    if read["hyphens"] not in (None, *HYPHENS) or not (read["language"] is None or rule(read["language"], "name")):
        raise ArtifactError(f"{url}: its description has another reading of text; train again.")
    return {"words": list(vocabulary.words), "vectors": vectors, "counts": vocabulary.counts, **read}
