"""JSON lines, plain or gzipped: C4's own form."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, cast

import orjson
import pyarrow as pa
from isal import igzip, isal_zlib

from corpusveil.errors import UserError

BLOCK_ROWS = 8192
BATCH_BYTES = 4 << 20
CHUNK_BYTES = 1 << 20
GZIP_LEVEL = 1
_GZIP_WBITS = 31
_LONG_NUMBER = re.compile(rb"[0-9]{19}")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns a run reads: the text, perhaps an id, and those that are kept as they are."""

    text: str = "text"
    id: str | None = None
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.text in self.keep:
            raise UserError(f"{self.text}: the text column can't be kept as it is; name other columns with --keep.")
        if len(set(self.keep)) < len(self.keep):
            raise UserError("A column is named twice with --keep; name each once.")


def _chunks(file: IO[bytes], name: str, *, gzipped: bool) -> Iterator[bytes]:
    source: Any = igzip.IGzipFile(fileobj=cast("Any", file)) if gzipped else file
    try:
        while chunk := source.read(CHUNK_BYTES):
            yield chunk
    except EOFError:
        raise UserError(
            f"{name}: the file ends in the middle of its compressed data; fetch or make it again."
        ) from None
    except (OSError, zlib.error, isal_zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise UserError(f"{name}: not a sound gzip file; fetch or make it again.") from None


def _lines(chunks: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yield the non-blank lines of each chunk; a line that spans chunks comes with its last one."""
    rest: list[bytes] = []
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        rest.append(first)
        if others:
            lines = [b"".join(rest), *others[:-1]]
            rest = [others[-1]]
            yield [line for line in lines if line.strip()]
    last = b"".join(rest)
    if last.strip():
        yield [last]


def count_rows(file: IO[bytes], name: str, *, gzipped: bool) -> int:
    """Return the number of rows of a shard."""
    return sum(len(lines) for lines in _lines(_chunks(file, name, gzipped=gzipped)))


def _value(row: Any, column: str, name: str, number: int) -> Any:
    try:
        return row[column]
    except KeyError:
        raise UserError(f"{name}, row {number + 1}: has no column {column!r}; name the right one.") from None
    except (TypeError, IndexError):
        raise UserError(f"{name}, row {number + 1}: not a JSON object; each line has to be one.") from None


def _dumps(value: Any) -> bytes:
    """Write JSON with whole numbers of any size, which orjson turns into floats."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _parse(lines: Sequence[bytes], name: str, columns: Columns, first: int) -> pa.RecordBatch:
    texts: list[str] = []
    identities: list[Any] = []
    kept: list[list[bytes]] = [[] for _ in columns.keep]
    for number, line in enumerate(lines, first):
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            raise UserError(f"{name}, row {number + 1}: not valid JSON in UTF-8; mend or remove the line.") from None
        text = _value(row, columns.text, name, number)
        if not isinstance(text, str):
            raise UserError(f"{name}, row {number + 1}: column {columns.text!r} is not text; it has to be a string.")
        texts.append(text)
        if columns.id is not None:
            identity = _value(row, columns.id, name, number)
            if not isinstance(identity, (str, int)) or isinstance(identity, bool):
                raise UserError(
                    f"{name}, row {number + 1}: the id column {columns.id!r} has to be a string or a whole number."
                )
            identities.append(orjson.dumps(identity))
        exact = json.loads(line) if columns.keep and _LONG_NUMBER.search(line) else None
        for column, values in zip(columns.keep, kept, strict=True):
            value = _value(row, column, name, number)
            values.append(orjson.dumps(value) if exact is None else _dumps(exact[column]))
    arrays: dict[str, pa.Array] = {"text": pa.array(texts, type=pa.large_string())}
    if columns.id is not None:
        arrays["id"] = pa.array(identities, type=pa.binary())
    for number, values in enumerate(kept):
        arrays[f"keep{number}"] = pa.array(values, type=pa.binary())
    return pa.RecordBatch.from_pydict(arrays)


class _GzipBlocks:
    """A gzip member a block. What goes into the compressor, and in which pieces, depends on the block's rows only."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._member: Any = None

    def write(self, data: bytes) -> None:
        if self._member is None:
            self._member = isal_zlib.compressobj(GZIP_LEVEL, isal_zlib.DEFLATED, _GZIP_WBITS)
        self._file.write(self._member.compress(data))

    def end(self) -> None:
        if self._member is not None:
            self._file.write(self._member.flush())
            self._member = None


class _PlainBlocks:
    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write

    def end(self) -> None:
        """Nothing marks the end of a block in a plain file."""


class JsonLinesWriter:
    """Writes ``{"text": ..., kept columns}`` a line, the text column under its own name and first."""

    def __init__(self, blocks: _GzipBlocks | _PlainBlocks, columns: Columns, digest: Any) -> None:
        self._blocks = blocks
        self._text = orjson.dumps(columns.text)
        self._keep = [orjson.dumps(column) for column in columns.keep]
        self._column = columns.text
        self._digest = digest

    def write(self, texts: pa.Array, kept: Sequence[pa.Array]) -> None:
        dumps, newline, column = orjson.dumps, orjson.OPT_APPEND_NEWLINE, self._column
        if not kept:
            data = b"".join([dumps({column: text}, None, newline) for text in texts.to_pylist()])
        else:
            rows = []
            for text, *values in zip(texts.to_pylist(), *(array.to_pylist() for array in kept), strict=True):
                fields = [self._text + b":" + dumps(text)]
                fields += [name + b":" + value for name, value in zip(self._keep, values, strict=True)]
                rows.append(b"{" + b",".join(fields) + b"}\n")
            data = b"".join(rows)
        self._digest.update(data)
        self._blocks.write(data)

    def end_block(self) -> None:
        self._blocks.end()


@dataclass(frozen=True, slots=True)
class JsonLines:
    """A JSON object a line."""

    suffixes: tuple[str, ...]
    gzipped: bool

    def batches(
        self, file: IO[bytes], name: str, columns: Columns, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield (number of the first row, batch) for rows start to stop; no batch crosses a block of 8,192 rows.

        Where batches are cut depends only on the rows of their block. ``start`` is the first row of a block.
        """
        pending: list[bytes] = []
        size = 0
        number = 0
        for lines in _lines(_chunks(file, name, gzipped=self.gzipped)):
            for line in lines:
                if number < start:
                    number += 1
                    continue
                if stop is not None and number >= stop:
                    break
                pending.append(line)
                size += len(line)
                number += 1
                if size >= BATCH_BYTES or number % BLOCK_ROWS == 0:
                    yield number - len(pending), _parse(pending, name, columns, number - len(pending))
                    pending, size = [], 0
            if stop is not None and number >= stop:
                break
        if pending:
            yield number - len(pending), _parse(pending, name, columns, number - len(pending))

    def rows(self, file: IO[bytes], name: str) -> int:
        """Return the number of rows."""
        return count_rows(file, name, gzipped=self.gzipped)

    def writer(self, file: IO[bytes], columns: Columns, digest: Any) -> JsonLinesWriter:
        """Return a writer to ``file``; ``digest`` (hashlib's interface) is fed the uncompressed bytes."""
        return JsonLinesWriter(_GzipBlocks(file) if self.gzipped else _PlainBlocks(file), columns, digest)

    def uncompressed(self, file: IO[bytes], name: str) -> Iterator[bytes]:
        """Yield the file's content without compression."""
        return _chunks(file, name, gzipped=self.gzipped)


JSON_LINES_GZIP = JsonLines((".json.gz", ".jsonl.gz"), gzipped=True)
JSON_LINES = JsonLines((".json", ".jsonl"), gzipped=False)
