"""JSON lines, C4's own form."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import IO, Any, ClassVar

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.choices import Separator
from corpusveil.errors import BadFileError, ColumnError, existing
from corpusveil.storage.compression import chunks
from corpusveil.storage.forms import RECODE, ByteForm, is_utf8, split
from corpusveil.storage.rows import JSON, BadRow, Batch, Columns, no_id
from corpusveil.storage.values import as_json, joined, json_strings, string_bytes

SUFFIXES = (".json", ".jsonl")

_NUMBER = re.compile(rb"(?<=[\s\[:,])-?[0-9][0-9.eE+-]*")
_LONG_NUMBER = re.compile(rb"-?[0-9](?:[0-9.]{16,}(?:[eE][+-]?[0-9]+)?|[0-9.]*[eE][+-]?[0-9]{2,})")
"""Numbers that orjson could write with fewer digits than it has read: below -2^63, too, it reads a float."""
_PLAIN = {str, int, bool, type(None)}
_SHAPES = bytes(48 if byte in b"0123456789." else 101 if byte in b"eE" else 32 for byte in range(256))
_FIRST_LINES = 100
_LONG_TEXT, _LONG_LINE = 1 << 10, 16 << 20


def _value(row: Any, column: str) -> Any:
    try:
        return row[column]
    except KeyError:
        raise ColumnError(f"has no column {column!r}{existing(column, row)}") from None
    except (TypeError, IndexError):
        raise BadFileError("not a JSON object; write an object on each line.") from None


def _number(digits: str) -> int | float:
    try:
        number: int | float = orjson.loads(digits)
    except orjson.JSONDecodeError:  # beyond the largest float
        number = math.inf
    return number


def _loaded(line: bytes) -> Any:
    """Return a row; a number beyond the largest float, which is JSON nevertheless, is infinite."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if error.msg.startswith("Not enough memory"):  # of a sound line: nothing to mend, and nothing to set aside
            raise MemoryError from None
        if error.msg.startswith("number is infinity"):
            with contextlib.suppress(ValueError):
                return _by_number(line, _number)
        other = "" if is_utf8(line) else f" {RECODE}"
        raise BadFileError(f"not valid JSON in UTF-8; repair or remove the line.{other}") from None


def _by_number(line: bytes, number: Callable[[str], Any]) -> Any:
    """Return a row by the json module, with what ``number`` makes of the text of each number."""
    # refuses what is no JSON, and what is nested so deep that the json module's answer depends on who asks
    orjson.dumps(orjson.loads(_NUMBER.sub(b"0", line)))
    return json.loads(line, parse_int=number, parse_float=number)


def _is_exact(line: bytes) -> bool:
    """Say whether orjson writes each number of a row as it is there."""
    try:
        return all(orjson.dumps(orjson.loads(number)) == number for number in _LONG_NUMBER.findall(line))
    except orjson.JSONDecodeError:  # what only looks like a number, or one beyond the largest float
        return False


def _as_written(digits: str) -> Any:
    """Return a number, as it was written if orjson would write another; whatever else the row has."""
    number = digits.encode()
    is_other = _LONG_NUMBER.fullmatch(number) and not _is_exact(number)
    return orjson.Fragment(digits) if is_other else orjson.loads(digits)


def _are_exact(rows: Sequence[bytes]) -> bool:
    shapes = b"\n".join(rows).translate(_SHAPES)  # of which most need no look at each row
    return (b"0" * 17 not in shapes and b"0e" not in shapes) or all(map(_is_exact, rows))


def _are_plain(values: Iterable[Any]) -> bool:
    """Say whether orjson writes values as it read them, whatever their digits: none has a fraction or an exponent."""
    return {*map(type, values)} <= _PLAIN


def _kept(row: Any, line: bytes, columns: Columns) -> list[str]:
    """Return the kept values of a row as JSON text, in which numbers are as they were."""

    def picked(row: Any) -> list[Any]:
        if columns.others == "keep":
            return [{name: value for name, value in row.items() if name != columns.text}]
        return [_value(row, column) for column in columns.keep]

    values = picked(row)
    if not _are_plain(values[0].values() if columns.others == "keep" else values) and not _is_exact(line):
        values = picked(_by_number(line, _as_written))
    return [orjson.dumps(value).decode() for value in values]  # as str, because bytes of orjson keep 4 KB each


def _row(line: bytes, columns: Columns) -> tuple[str | None, str | int | None, list[str]]:
    """Return text, id and kept values of one line; a text that is null stays null. Raises UserError, which says why."""
    try:
        row = _loaded(line)
        text = _value(row, columns.text)
        if not isinstance(text, str | None):
            raise BadFileError(f"column {columns.text!r} is not text; make it a string.")
        identity = None
        if columns.id is not None:
            identity = _value(row, columns.id)
            if identity is None:
                raise BadFileError(no_id(columns.id))
            if not isinstance(identity, (str, int)) or isinstance(identity, bool):
                raise BadFileError(
                    f"the id column {columns.id!r} is neither a string nor a whole number; make it either."
                )
        return text, identity, _kept(row, line, columns) if columns.keeps else []
    except orjson.JSONEncodeError:
        raise BadFileError("nested too deeply; lists and objects can be nested 250 times.") from None


def _at_once(rows: Sequence[bytes], columns: Columns) -> tuple[Sequence[Any], Sequence[Any], list[list[str]]] | None:
    """Return texts [N], ids [N] and kept columns [N] of rows that are read without a look at each.

    None where anything could be wrong with a row.
    """
    text, id = columns.text, columns.id
    names = (text, *(() if id is None else (id,)), *columns.keep)
    try:
        every = [*map(orjson.loads, rows)] if columns.others == "keep" else []
        picked = map(itemgetter(*names), every or map(orjson.loads, rows))
        texts, *others = zip(*picked, strict=True) if len(names) > 1 else [[*picked]]
        ids = [] if id is None else others.pop(0)
        if not ({*map(type, texts)} <= {str, type(None)} and {*map(type, ids)} <= {str, int}):
            return None
        if columns.others == "keep":
            for row in every:
                del row[text]
            others = [every]
        values = chain.from_iterable(map(dict.values, every) if columns.others == "keep" else others)
        if columns.keeps and not _are_plain(values) and not _are_exact(rows):
            return None
        return texts, ids, [[orjson.dumps(value).decode() for value in column] for column in others]
    except (ValueError, LookupError, TypeError):
        return None


def _strings(texts: Sequence[str | None]) -> pa.Array:
    """Return texts as large_string; a single one, which may be huge, is copied once instead of twice."""
    if len(texts) != 1 or texts[0] is None:
        return pa.array(texts, type=pa.large_string())
    data = texts[0].encode()
    bounds = np.array([0, len(data)], dtype=np.int64)
    return pa.LargeStringArray.from_buffers(1, pa.py_buffer(bounds), pa.py_buffer(data))


def _types(columns: Columns) -> list[pa.DataType]:
    """Return the types of columns that are written whole: JSON text for each, or for all others together."""
    return [JSON] * (len(columns.keep) + (columns.others == "keep"))


def quoted(texts: pa.Array, before: str, after: str) -> bytes | memoryview:
    """Return large_string [N] as JSON strings between two pieces; most long texts have a line break, which is slow."""
    _, offsets = string_bytes(texts)
    if _LONG_TEXT * len(texts) < offsets[-1] - offsets[0] < _LONG_LINE:
        begin, end = before.encode(), after.encode()
        return b"".join([piece for text in texts.to_pylist() for piece in (begin, orjson.dumps(text), end)])
    return _bytes(json_strings(texts, before, after))


def _bytes(lines: pa.Array) -> memoryview:
    data, offsets = string_bytes(lines)
    return data[offsets[0] : offsets[-1]].data


class Renderer:
    """Rows as JSON lines."""

    def __init__(self, columns: Columns) -> None:
        self._begin = "{" + orjson.dumps(columns.text).decode() + ":"
        self._keep = ["," + orjson.dumps(column).decode() + ":" for column in columns.keep]
        self._whole = columns.others == "keep"

    def __call__(self, texts: pa.Array, kept: Sequence[pa.Array]) -> Any:
        """Return all rows in one piece, as what goes into a compressor at a time decides its output."""
        if not kept:
            return quoted(texts, self._begin, "}\n")
        begun = json_strings(texts, self._begin)
        values = list(map(as_json, kept))
        if not self._whole:
            named = zip(self._keep, values, strict=True)
            return _bytes(joined(begun, *chain.from_iterable(named), "}\n"))
        (others,) = values  # objects, of which the text becomes a part
        rest = pc.if_else(pc.equal(others, "{}"), "}", joined(",", pc.utf8_slice_codeunits(others, 1)))
        return _bytes(joined(begun, rest, "\n"))


class JsonLines(ByteForm):
    """A JSON object a line; blank lines are no rows. The text column is written under its own name, and first."""

    __slots__ = ()
    rows_differ: ClassVar[bool] = True
    language: ClassVar[str] = "JSON"

    def kept_types(self, file: IO[bytes], name: str, columns: Columns) -> list[pa.DataType]:
        return _types(columns)

    def names(self, file: IO[bytes], name: str, separator: Separator) -> list[str]:
        """Return the fields of the first lines but huge ones, in the order in which they appear."""
        fields: dict[str, None] = {}
        for line in next(self.documents(chunks(file, name, self.codec), name, Columns()), [])[:_FIRST_LINES]:
            if len(line) > _LONG_LINE:
                continue
            with contextlib.suppress(orjson.JSONDecodeError):
                row = orjson.loads(line)
                fields |= dict.fromkeys(row) if isinstance(row, dict) else {}
        return list(fields)

    def documents(self, pieces: Iterator[bytes], name: str, columns: Columns) -> Iterator[Sequence[bytes]]:
        is_first = True
        for group in split(pieces, name):
            lines = [line for line in group if line.strip()]
            begin, *_ = [*lines[:1], b""] if is_first else [b""]
            begin = begin.strip()
            if begin.startswith(b"[") or (begin == b"{" and lines[1:] and not lines[1].lstrip().startswith(b"{")):
                what, mend = ("an array", ".[]") if begin != b"{" else ("an object over several lines", ".")
                raise BadFileError(
                    f"{name}: this file begins with {what}, and one object a line is read; convert it: "
                    f"jq -c '{mend}' OLD > NEW."
                )
            is_first = is_first and not lines
            yield lines

    def parsed(self, documents: Sequence[bytes], first: int, columns: Columns) -> Batch:
        batch = Batch(first + len(documents))
        if (sound := _at_once(documents, columns)) is not None:
            batch.numbers = list(range(first, batch.stop))
            texts, identities, kept = sound
        else:
            texts, identities, kept = [], [], [[] for _ in _types(columns)]
            for number, line in enumerate(documents, first):
                try:
                    text, identity, values = _row(line, columns)
                except (BadFileError, ColumnError) as error:
                    batch.bad.append(BadRow(number, str(error), line, type(error)))
                    continue
                texts.append(text)
                batch.numbers.append(number)
                identities.append(identity)
                for column, value in zip(kept, values, strict=True):
                    column.append(value)
        batch.texts = _strings(texts)
        batch.ids = None if columns.id is None else list(identities)
        batch.kept = [pa.ExtensionArray.from_storage(JSON, pa.array(column, type=pa.large_string())) for column in kept]
        return batch

    def render(self, texts: pa.Array, kept: Sequence[pa.Array], columns: Columns) -> Any:
        """Return ``{"text": ..., kept columns}`` a line."""
        return Renderer(columns)(texts, kept)
