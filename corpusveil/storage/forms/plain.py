"""Plain text, one document per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.errors import DataError
from corpusveil.storage.forms import ByteForm, split
from corpusveil.storage.rows import Columns

SUFFIXES = (".txt",)


class PlainText(ByteForm):
    """A document a line, empty lines too; the column has whatever name the text is to have."""

    __slots__ = ()
    has_columns: ClassVar[bool] = False

    def documents(self, pieces: Iterator[bytes], name: str, columns: Columns) -> Iterator[Sequence[bytes]]:
        for number, lines in enumerate(split(pieces, name)):
            if not number and sum(line.count(b"\r") - line.endswith(b"\r") for line in lines) >= len(lines):
                raise DataError(
                    f"{name}: lines end in a carriage return alone, which may also be within a line; convert the "
                    "file: tr '\\r' '\\n' < OLD > NEW."
                )
            yield lines

    def texts(self, documents: Sequence[bytes]) -> Sequence[bytes]:
        return [line.removesuffix(b"\r") for line in documents]

    def render(self, texts: pa.Array, kept: Sequence[pa.Array], columns: Columns) -> Any:
        """Return a line a document; line breaks inside a document become blanks, and nulls empty lines.

        Byte order marks that a document begins with go: at the beginning of a file they are none of its text.
        """
        plain = pc.replace_substring_regex(texts.fill_null(""), r"\A\x{FEFF}+", "")
        flat = pc.replace_substring_regex(plain, r"\r\n|\n|\r", " ")
        return "\n".join([*flat.to_pylist(), ""]).encode()
