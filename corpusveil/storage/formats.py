"""The forms that documents come in, one module each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any, Protocol

import pyarrow as pa

from corpusveil.errors import UserError
from corpusveil.storage import jsonlines

Columns = jsonlines.Columns
BLOCK_ROWS = jsonlines.BLOCK_ROWS
"""Output is written in blocks of this many rows, each complete in itself, so that splitting never changes bytes."""


class Writer(Protocol):
    """Writes the rows of one shard, block by block."""

    def write(self, texts: pa.Array, kept: Sequence[pa.Array]) -> None: ...

    def end_block(self) -> None: ...


class Form(Protocol):
    """One form of documents. A batch has ``text``, then ``id`` when one is named, then the kept columns."""

    @property
    def suffixes(self) -> tuple[str, ...]: ...

    def batches(
        self, file: IO[bytes], name: str, columns: Columns, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]: ...

    def rows(self, file: IO[bytes], name: str) -> int: ...

    def writer(self, file: IO[bytes], columns: Columns, digest: Any) -> Writer: ...

    def uncompressed(self, file: IO[bytes], name: str) -> Iterator[bytes]: ...


_FORMS: tuple[Form, ...] = (jsonlines.JSON_LINES_GZIP, jsonlines.JSON_LINES)


def form_of(name: str) -> str:
    """Return the suffix by which a file's form is known. Raises UserError for an unknown one."""
    for form in _FORMS:
        for suffix in form.suffixes:
            if name.endswith(suffix):
                return str(suffix)
    known = ", ".join(suffix for form in _FORMS for suffix in form.suffixes)
    raise UserError(f"{name}: the form of this file is not known by its name; known are {known}.")


def find(suffix: str) -> Form:
    """Return the form that a suffix stands for."""
    return next(form for form in _FORMS if suffix in form.suffixes)
