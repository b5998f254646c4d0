"""``.txt[.gz|.zst]``: plain text, a document a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.storage.forms import NOT_UTF8, ByteForm, is_utf8, split
from corpusveil.storage.rows import BadRow, Batch, Columns


class PlainText(ByteForm):
    """A document a line, empty lines too; the column has whatever name the text is to have."""

    __slots__ = ()
    has_columns: ClassVar[bool] = False

    def documents(self, pieces: Iterator[bytes], name: str, columns: Columns) -> Iterator[Sequence[bytes]]:
        return split(pieces, name)

    def parsed(self, documents: Sequence[bytes], first: int, columns: Columns) -> Batch:
        batch = Batch(first + len(documents))
        whole = b"\n".join(documents)
        if b"\r" not in whole and is_utf8(whole):
            batch.numbers.extend(range(first, first + len(documents)))
            batch.texts = pa.array(documents, type=pa.large_binary()).view(pa.large_string())
            return batch
        texts: list[str] = []
        for number, line in enumerate(documents, first):
            try:
                texts.append(line.removesuffix(b"\r").decode())
            except UnicodeDecodeError:
                batch.bad.append(BadRow(number, NOT_UTF8, line))
                continue
            batch.numbers.append(number)
        batch.texts = pa.array(texts, type=pa.large_string())
        return batch

    def render(self, texts: pa.Array, kept: Sequence[pa.Array], columns: Columns) -> Any:
        """Return a line a document; line breaks inside a document become blanks, and nulls empty lines."""
        flat = pc.replace_substring_regex(texts.fill_null(""), r"\r\n|\n|\r", " ")
        return "\n".join([*flat.to_pylist(), ""]).encode()
