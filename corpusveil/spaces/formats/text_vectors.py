"""Text: a word and its numbers a line, separated by blanks (word2vec with a header ``V d``, GloVe without).

The first line is a header when it holds exactly two integers; so a file of one-dimensional vectors whose first word is
a whole number needs a header.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from corpusveil.arrays import Float32
from corpusveil.errors import BadFileError, BadRowError
from corpusveil.spaces.formats.vector_table import VectorTable, decode, open_plain

LINES = 512  # parsed at once


def read(url: str) -> VectorTable:
    """Read this format. Raises UserError, which names the file, for a faulty file."""
    with open_plain(url) as file:
        lines = iter(file)
        first = next(lines, b"")
        header = _header(first)
        first_row = 1 if header is None else 2
        words: list[str] = []
        blocks: list[Float32] = []
        width = None if header is None else header[1]
        for block in _blocks(lines if header else _again(first, lines)):
            numbers = []
            for line in block:
                row = first_row + len(words)
                word, _, rest = line.replace(b"\t", b" ").rstrip(b" \r\n").partition(b" ")
                if width is None:
                    width = len(rest.split())
                numbers.append(_checked(rest, width, url, row))
                words.append(decode(word, url, row))
            blocks.append(_parse(numbers, width or 0, url, first_row + len(words) - len(numbers)))
    if not words:
        raise BadFileError(f"{url}: this file has no vectors; write a word and its numbers on each line.")
    if header is not None and header[0] != len(words):
        raise BadFileError(
            f"{url}, row 1: the header says {header[0]} words, and the file has {len(words)}; fetch the file "
            "again if it is incomplete."
        )
    return VectorTable(words, np.concatenate(blocks), first_row)


def _header(line: bytes) -> tuple[int, int] | None:
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() and len(field) <= 18 for field in fields):
        return int(fields[0]), int(fields[1])
    return None


def _again(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


def _blocks(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    lines = iter(lines)
    while block := list(islice(lines, LINES)):
        yield block


def _checked(numbers: bytes, width: int, url: str, row: int) -> bytes:
    """Return a row's numbers with one blank between them; quick where the file has it so."""
    if numbers.count(b" ") != width - 1 or not numbers:
        fields = numbers.split()
        if len(fields) != width or not fields:
            hint = "; a word cannot contain a blank" if len(fields) > width else ""
            wanted = f"where {width} are expected" if width else "after the word"
            raise BadRowError(
                f"{url}, row {row}: there are {len(fields)} numbers {wanted}{hint}; correct or delete this row."
            )
        return b" ".join(fields)
    return numbers


def _parse(rows: list[bytes], width: int, url: str, first_row: int) -> Float32:
    """Parse a block in one call; when that fails, find the row at fault."""
    try:
        flat = np.fromstring(b" ".join(rows), np.float32, sep=" ")
    except ValueError:
        flat = np.empty(0, np.float32)
    if flat.size == len(rows) * width:
        return flat.reshape(len(rows), width)
    for row, numbers in enumerate(rows, first_row):
        for field in numbers.split():
            try:
                float(field)
            except ValueError:
                raise BadRowError(f"{url}, row {row}: a value is not a number; correct or delete this row.") from None
    raise BadRowError(
        f"{url}, rows {first_row} to {first_row + len(rows) - 1}: some values cannot be read as numbers; correct "
        "these rows."
    )
