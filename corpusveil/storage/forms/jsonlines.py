"""JSON lines, C4's own form."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import IO, Any, ClassVar

import orjson
import pyarrow as pa

from corpusveil.choices import Separator
from corpusveil.errors import DataError, existing
from corpusveil.storage.compression import chunks
from corpusveil.storage.forms import RECODE, ByteForm, is_utf8, split
from corpusveil.storage.rows import JSON, BadRow, Batch, Columns
from corpusveil.storage.values import as_json, joined, json_strings, string_bytes

SUFFIXES = (".json", ".jsonl")

_SCALARS = {str, int, bool, float, type(None)}
_BEYOND = 2.0**63
"""Whole numbers of JSON that are not below this become floats, which round them."""
_FIRST_LINES = 100
_LONG_LINE = 16 << 20


def _value(row: Any, column: str) -> Any:
    try:
        return row[column]
    except KeyError:
        raise DataError(f"has no column {column!r}{existing(column, row)}") from None
    except (TypeError, IndexError):
        raise DataError("not a JSON object; write an object on each line.") from None


def _loaded(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if error.msg.startswith("Not enough memory"):  # of a sound line: nothing to mend, and nothing to leave out
            raise MemoryError from None
        other = "" if is_utf8(line) else f" {RECODE}"
        raise DataError(
            f"not valid JSON in UTF-8, or with a number beyond 64 bits; repair or remove the line.{other}"
        ) from None


def _could_be_rounded(values: Iterable[Any]) -> bool:
    return any(type(value) is float and abs(value) >= _BEYOND for value in values)


def _kept(row: Any, line: bytes, columns: Columns) -> list[str]:
    """Return the kept values of a row as JSON text. Raises UserError for other values than scalars."""
    values = [_value(row, column) for column in columns.keep]
    for column, value in zip(columns.keep, values, strict=True):
        if type(value) not in _SCALARS:
            raise DataError(
                f"the kept column {column!r} has a list or an object; make it a string or a number, or leave it out."
            )
        if _could_be_rounded([value]) and isinstance(json.loads(line)[column], int):
            raise DataError(f"the kept column {column!r} has an integer beyond 64 bits; make it a string.")
    return [orjson.dumps(value).decode() for value in values]  # as str, because bytes of orjson keep 4 KB each


def _row(line: bytes, columns: Columns) -> tuple[str | None, str | int | None, list[str]]:
    """Return text, id and kept values of one line; a text that is null stays null. Raises UserError, which says why."""
    try:
        row = _loaded(line)
        text = _value(row, columns.text)
        if not isinstance(text, str | None):
            raise DataError(f"column {columns.text!r} is not text; make it a string.")
        identity = None
        if columns.id is not None:
            identity = _value(row, columns.id)
            if not isinstance(identity, (str, int, type(None))) or isinstance(identity, bool):
                raise DataError(f"the id column {columns.id!r} is neither a string nor a whole number; make it either.")
        return text, identity, _kept(row, line, columns)
    except RecursionError:
        raise DataError("nested too deeply; repair or remove the line.") from None


def _at_once(rows: Sequence[bytes], columns: Columns) -> tuple[Sequence[Any], Sequence[Any], list[list[str]]] | None:
    """Return texts [N], ids [N] and kept columns [N] of rows that are read without a look at each.

    None where anything could be wrong with a row.
    """
    text, id = columns.text, columns.id
    names = (text, *(() if id is None else (id,)), *columns.keep)
    try:
        picked = map(itemgetter(*names), map(orjson.loads, rows))
        texts, *others = zip(*picked, strict=True) if len(names) > 1 else [[*picked]]
        ids = [] if id is None else others.pop(0)
        if not ({*map(type, texts)} <= {str, type(None)} and {*map(type, ids)} <= {str, int, type(None)}):
            return None
        kinds = {kind for column in others for kind in map(type, column)}
        if not kinds <= _SCALARS or (float in kinds and any(map(_could_be_rounded, others))):
            return None
        return texts, ids, [[orjson.dumps(value).decode() for value in column] for column in others]
    except (ValueError, LookupError, TypeError):
        return None


def rendered(texts: pa.Array, kept: Sequence[pa.Array], columns: Columns) -> Any:
    """Return rows as JSON lines in one piece, as what goes into a compressor at a time decides its output."""
    begin, *names = (f"{orjson.dumps(column).decode()}:" for column in (columns.text, *columns.keep))
    lines = json_strings(texts, f"{{{begin}", "" if kept else "}\n")
    if kept:
        named = zip([f",{name}" for name in names], map(as_json, kept), strict=True)
        lines = joined(lines, *chain.from_iterable(named), "}\n")
    data, offsets = string_bytes(lines)
    return data[offsets[0] : offsets[-1]].data


class JsonLines(ByteForm):
    """A JSON object a line; blank lines are no rows. The text column is written under its own name, and first."""

    __slots__ = ()
    lacks_nan: ClassVar[bool] = True

    def kept_types(self, file: IO[bytes], name: str, columns: Columns) -> list[pa.DataType]:
        return [JSON] * len(columns.keep)

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
                raise DataError(
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
            texts, identities, kept = [], [], [[] for _ in columns.keep]
            for number, line in enumerate(documents, first):
                try:
                    text, identity, values = _row(line, columns)
                except DataError as error:
                    batch.bad.append(BadRow(number, str(error)))
                    continue
                texts.append(text)
                batch.numbers.append(number)
                identities.append(identity)
                for column, value in zip(kept, values, strict=True):
                    column.append(value)
        batch.texts = pa.array(texts, type=pa.large_string())
        batch.ids = None if columns.id is None else list(identities)
        batch.kept = [pa.ExtensionArray.from_storage(JSON, pa.array(column, type=pa.large_string())) for column in kept]
        return batch

    def render(self, texts: pa.Array, kept: Sequence[pa.Array], columns: Columns) -> Any:
        """Return ``{"text": ..., kept columns}`` a line."""
        return rendered(texts, kept, columns)
