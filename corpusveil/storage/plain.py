"""Plain text: a document a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.choices import Codec, Separator
from corpusveil.errors import ColumnError
from corpusveil.storage import lines
from corpusveil.storage.compression import Blocks, blocks, chunks
from corpusveil.storage.rows import BadRow, Batch, Columns, cut


def _parse(rows: Sequence[bytes], first: int) -> Batch:
    batch = Batch(first + len(rows))
    if _is_sound(b"\n".join(rows)):
        batch.numbers.extend(range(first, first + len(rows)))
        batch.texts = pa.array(rows, type=pa.large_binary()).view(pa.large_string())
        return batch
    texts: list[str] = []
    for number, line in enumerate(rows, first):
        try:
            texts.append(line.removesuffix(b"\r").decode())
        except UnicodeDecodeError:
            batch.bad.append(BadRow(number, lines.NOT_UTF8, line))
            continue
        batch.numbers.append(number)
    batch.texts = pa.array(texts, type=pa.large_string())
    return batch


def _is_sound(data: bytes) -> bool:
    """Say whether lines are UTF-8, all of them, and none ends with a carriage return."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\r" not in data


class PlainWriter:
    """Writes a document a line; line breaks inside a document become blanks, and nulls empty lines."""

    def __init__(self, file: Blocks, digest: Any) -> None:
        self._blocks = file
        self._digest = digest

    def write(self, texts: pa.Array, kept: Sequence[pa.Array]) -> None:
        if not len(texts):
            return
        flat = pc.replace_substring_regex(texts.fill_null(""), r"\r\n|\n|\r", " ")
        data = "\n".join([*flat.to_pylist(), ""]).encode()
        self._digest.update(data)
        self._blocks.write(data)

    def end_block(self) -> None:
        self._blocks.end()

    def close(self) -> None:
        """Nothing stands behind the last line."""


@dataclass(frozen=True, slots=True)
class PlainText(lines.OfBytes):
    """A document a line, empty lines too; the column has whatever name the text is to have."""

    suffixes: tuple[str, ...]
    codec: Codec = ""

    def check(self, columns: Columns) -> None:
        """Raise UserError for any other column."""
        if columns.id is not None or columns.keep:
            option, column = ("id", columns.id) if columns.id is not None else ("keep", columns.keep[0])
            raise ColumnError(
                f"{option} {column}: plain text has no other columns; leave this out, or use a format that has columns."
            )

    def names(self, file: IO[bytes], name: str, separator: Separator) -> list[str]:
        """Return nothing: lines have no names."""
        return []

    def kept_types(self, file: IO[bytes], name: str, columns: Columns) -> list[pa.DataType]:
        """Return nothing: there are no other columns."""
        return []

    def rows(self, file: IO[bytes], name: str, separator: Separator = "comma") -> int:
        """Return the number of lines."""
        return sum(len(group) for group in lines.split(chunks(file, name, self.codec), name))

    def batches(
        self,
        file: IO[bytes],
        name: str,
        columns: Columns,
        start: int = 0,
        stop: int | None = None,
    ) -> Iterator[Batch]:
        """Yield the lines start to stop."""
        for first, rows in cut(lines.split(chunks(file, name, self.codec), name), len, start, stop):
            yield _parse(rows, first)

    def writer(
        self,
        file: Any,
        columns: Columns,
        digest: Any,
        kept_types: Sequence[pa.DataType],
        *,
        first: bool = True,
    ) -> PlainWriter:
        """Return a writer to ``file``; ``digest`` (hashlib's interface) is fed the uncompressed bytes."""
        return PlainWriter(blocks(file, self.codec), digest)
