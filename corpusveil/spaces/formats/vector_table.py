"""The result of every reader of vectors."""

from __future__ import annotations

import contextlib
import gzip
import tokenize
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, cast

import numpy.typing as npt

from corpusveil.arrays import Int64
from corpusveil.choices import Hyphens
from corpusveil.errors import BadFileError, BadRowError
from corpusveil.storage import files

BROKEN_ARRAY = (
    ValueError, EOFError, OSError, MemoryError, SyntaxError, tokenize.TokenError, TypeError, LookupError,
    ArithmeticError, RuntimeError, AttributeError,
)  # fmt: skip
"""NumPy's exceptions for a damaged ``.npy``."""


@dataclass(frozen=True, slots=True)
class VectorTable:
    """Words and their vectors as a file holds them, unchecked.

    Attributes: words: V words. vectors: [V, d], of any real dtype. first_row: the number of the first word's row in
        this file, from 1 (2 below a header). counts: int64 [V], if the file has them. hyphens: whether hyphens joined
        words in the training text, None if unknown.
    """

    words: list[str]
    vectors: npt.NDArray[Any]
    first_row: int = 1
    counts: Int64 | None = None
    hyphens: Hyphens | None = None


@contextlib.contextmanager
def open_plain(url: str) -> Iterator[IO[bytes]]:
    """Open a file for reading, unpacked when its name ends in ``.gz``; a broken archive is a ``UserError``."""
    with files.open_read(url) as packed:
        if not url.endswith(".gz"):
            yield packed
            return
        try:
            with gzip.GzipFile(fileobj=packed, mode="rb") as plain:
                yield cast("IO[bytes]", plain)
        except EOFError:
            raise BadFileError(f"{url}: the gzip file ends too early; fetch the whole file again.") from None
        except (gzip.BadGzipFile, zlib.error):
            raise BadFileError(f"{url}: this is not a valid gzip file; fetch it again.") from None


def decode(word: bytes, url: str, row: int) -> str:
    """Return a word's text; bytes that are not UTF-8 are a ``UserError`` that names the row."""
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        raise BadRowError(f"{url}, row {row}: the word is not valid UTF-8; convert the file to UTF-8.") from None
