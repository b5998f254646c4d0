"""The invariant of every input: valid data, or one sentence that names the file and quotes nothing from it."""

from __future__ import annotations

import gzip
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from corpusveil.errors import UserError, WorkError

CANARY = "qzvxkwj"
"""Replaces private text in every seed; no message may contain it."""
LONGEST_MESSAGE = 600
SAID: deque[str] = deque(maxlen=20)
"""The last messages that were judged."""

R = TypeVar("R")


class Finding(Exception):
    """A promise that an input broke."""


@dataclass(frozen=True)
class Reader:
    """One family of files: valid inputs as seeds, and a check of any bytes in a separate folder.

    The reader defines the meaning of the bytes: the first often says how the others are wrapped.
    """

    name: str
    seeds: Callable[[], Iterator[bytes]]
    check: Callable[[bytes, Path], None]


def need(holds: object, promise: str) -> None:
    """Raise Finding unless a condition holds."""
    if not holds:
        raise Finding(promise)


def need_sentence(text: str, named: str, *, quotes: bool = False) -> None:
    """Raise Finding unless a message is one line that names the file and, but for ``quotes``, shows nothing of it."""
    SAID.append(text)
    need(len(text.splitlines()) == 1, f"a message of {len(text.splitlines())} lines")
    need(named in text, "a message that does not name the file")
    need(len(text) <= LONGEST_MESSAGE, f"a message of {len(text)} characters")
    need(text.isprintable(), "a message with characters that can't be printed")
    said, _, listed = text.partition("; the columns are ")
    names = re.split(r", | and ", listed)  # a single word can be the name of a column, which is shown
    need(quotes or not any(CANARY in some for some in (said, *names) if " " in some), "a message that quotes the file")


def refused(call: Callable[[], R], named: Path | str, *, quotes: bool = False) -> R | None:
    """Return what a call returns; None when it refused in one sentence. Any other exception goes on."""
    try:
        return call()
    except (UserError, WorkError) as error:
        need_sentence(str(error), str(named), quotes=quotes)
        return None


RAW = 0x80
"""This bit of an input's first byte says that its bytes are the container itself."""


def packed(data: bytes, codec: str, *, raw: bool) -> bytes:
    """Return bytes compressed in two parts, or unchanged if they are ``raw`` or the format has no compression."""
    if raw or not codec:
        return data
    half = len(data) // 2
    parts = (data[:half], data[half:])
    if codec == ".gz":
        return b"".join(gzip.compress(part, 1, mtime=0) for part in parts)
    return b"".join(pa.Codec("zstd").compress(part, asbytes=True) for part in parts)


def changed(whole: bytes, edits: bytes) -> bytes:
    """Return a file with changed bytes: of every three of ``edits``, two are the place, and one is the new byte."""
    data = bytearray(whole)
    for at in range(0, len(edits) - 2, 3):
        if data:
            data[int.from_bytes(edits[at : at + 2], "little") % len(data)] ^= edits[at + 2]
    return bytes(data)
