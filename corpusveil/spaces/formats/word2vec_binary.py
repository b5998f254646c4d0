"""word2vec binary: a line ``V d``, then each word, a blank, d little-endian float32 and often a newline."""

from __future__ import annotations

import numpy as np

from corpusveil.errors import BadFileError, FormatError
from corpusveil.spaces.formats.vector_table import VectorTable, decode, open_plain


def read(url: str) -> VectorTable:
    """Read this format. Raises UserError, which names the file, for a faulty file."""
    with open_plain(url) as file:
        fields = file.readline(100).split()
        if len(fields) != 2 or not all(field.isdigit() and len(field) <= 18 for field in fields):
            raise FormatError(
                f"{url}: this does not start with two integers (words and dimensions), as word2vec's binary format "
                "does; check the format of the file."
            )
        body = file.read()
    size, width = int(fields[0]), int(fields[1])
    # A word takes two bytes at least (itself and the blank): no header can ask for more memory than the file's size.
    if not size or not width or size * (4 * width + 2) > len(body):
        raise BadFileError(
            f"{url}: the header says {size} words of {width} dimensions, and the file is shorter; fetch it again "
            "if it is incomplete."
        )
    words: list[str] = []
    vectors = np.empty((size, width), np.float32)
    at = 0
    for row in range(size):
        blank = body.find(b" ", at)
        end = blank + 1 + 4 * width
        if blank < 0 or end > len(body):
            raise BadFileError(
                f"{url}, word {row + 1}: the file ends within this word, and the header says {size} words; fetch the "
                "file again."
            )
        words.append(decode(body[at:blank].lstrip(b"\n"), url, row + 1))
        vectors[row] = np.frombuffer(body, "<f4", width, blank + 1)
        at = end
    if body[at:].strip():
        raise BadFileError(f"{url}: the file continues after the {size} words of its header; check or fetch it again.")
    return VectorTable(words, vectors)
