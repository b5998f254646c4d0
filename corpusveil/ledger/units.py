"""Privacy units: which column holds them, and one text for a value, whatever type a file gave it."""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import json
import re
import unicodedata
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.errors import BadRowError, BadValueError, ConflictError, of_other_type
from corpusveil.sampling.draws import keyed_tags
from corpusveil.storage.documents import Documents, chosen
from corpusveil.storage.rows import JSON, BadRow, Batch, Columns
from corpusveil.storage.tasks import ShardTask
from corpusveil.text.tokens import string_buffers

CONTENT = "content"
"""The unit that is a document's text."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]\+[0-9]{1,2})?")
_INSTANT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}|[0-9]{8}T[0-9]{4})([0-9:.,]*) ?(\S*)")
_EXACT_DIGITS = 18
_PLAIN = r"[!-~](?:[ -~]*[!-~])?"
"""Texts in normal form C, without blanks around them, for every library of expressions alike."""
_VARIED = r"[+-].*|[0-9]*\..*|[0-9]+[eE]\+.*|[0-9]{8}T.*|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ].*"
"""All numbers and instants that ``canonical`` may write otherwise; other plain texts stay as they are."""
Values: TypeAlias = "pa.Array | pa.ChunkedArray | Sequence[Any]"
"""The values of a column: of Arrow where they have a type, otherwise of Python."""
_FLOATS = {pa.float16(): np.float16, pa.float32(): np.float32}


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """A privacy unit: its ``name`` in the ledger, and the ``column`` with its values; None for a document's text."""

    name: str
    column: str | None

    @classmethod
    def of(cls, text: str) -> Unit:
        """Return the unit of ``COLUMN``, ``NAME=COLUMN`` or ``content``. Raises UserError for an empty part."""
        name, equals, column = text.partition("=")
        if not name or (equals and not column):
            raise BadValueError(f"unit {text!r}: name a column, as in customer_id or customer_id=customer, or content.")
        if name == CONTENT and equals:
            raise BadValueError(f"unit {text!r}: the unit content is a document's text; give the column another name.")
        return cls(name, None if name == CONTENT else column or name)

    @property
    def noun(self) -> str:
        """The unit in words, as a count noun."""
        return "text" if self.column is None else self.name


def units_of(given: str | Sequence[str] | Mapping[str, str] | None) -> tuple[Unit, ...]:
    """Return units in the order of their names: ``COLUMN``, ``NAME=COLUMN`` or ``content``, or columns by name.

    Raises UserError for a value of another type, and for a unit that is named twice.
    """
    if isinstance(given, Mapping):
        given = [f"{name}={column}" if isinstance(column, str) else column for name, column in given.items()]
    if given is None:
        return ()
    texts = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    for text in texts:
        if not isinstance(text, str):
            raise of_other_type("unit", text, "the name of a column, or 'content'")
    units = tuple(sorted(map(Unit.of, texts)))
    if len({unit.name for unit in units}) < len(units):
        raise ConflictError("unit: a unit is named twice; name each unit once.")
    return units


def canonical(value: Any) -> str | None:
    """Return the one text of a unit's value, whatever its type; None for a missing value, and for one that has none.

    Whole numbers are written without decimals (1, 1.0, "+1", "1.", "1.0"), instants in UTC, midnight without a zone as
    its date; text is in Unicode's normal form C, without blanks around it. "1e+05" is a number; "1e3" may be a code. A
    float has no text from where its type skips whole numbers: it stands for several.
    """
    if isinstance(value, np.ndarray):
        return None
    if isinstance(value, np.datetime64):
        value = value.astype("M8[us]")  # an item in nanoseconds is a whole number
    if isinstance(value, (float, np.floating)):
        if not abs(float(value)) < 2.0 ** (np.finfo(type(value)).nmant + 1):  # NaN, too
            return None
        return _of_number(np.format_float_positional(value, trim="-"))
    if hasattr(value, "item") and not isinstance(value, str):  # a scalar of NumPy
        value = value.item()
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return None
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:  # half a surrogate pair
            return None
        return _of_text(unicodedata.normalize("NFC", value).strip()) or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, decimal.Decimal):
        return _of_number(format(value, "f")) if value.is_finite() else None
    if isinstance(value, dt.datetime):
        return _of_instant(value) if value == value else None  # noqa: PLR0124 - NaT
    return str(value) if isinstance(value, (dt.date, dt.time, uuid.UUID)) else None


def _of_text(text: str) -> str:
    if not re.fullmatch(_VARIED, text):
        return text
    if _NUMBER.fullmatch(text):
        return _of_number(format(decimal.Decimal(text), "f") if "e" in text.lower() else text)
    if instant := _INSTANT.fullmatch(text):
        zone = "Z" if instant[3] in {"UTC", "z"} else instant[3]
        try:
            return _of_instant(dt.datetime.fromisoformat(f"{instant[1]}{instant[2]}{zone}"))
        except (ValueError, OverflowError):
            return text
    return text


def _of_number(text: str) -> str:
    text = text.removeprefix("+")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    return "0" if digits in {"0", ""} else f"{sign}0{digits}" if digits.startswith(".") else text


def _of_instant(value: dt.datetime) -> str:
    value = dt.datetime.combine(value.date(), value.timetz())  # pandas counts nanoseconds, and text microseconds
    if value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat() + "Z"
    return value.isoformat().removesuffix("T00:00:00")


def text_of(value: Any, unit: Unit, place: str) -> str:
    """Return the text of one value, with its ``place`` for the sentence. Raises BadRowError if it has none."""
    if (text := canonical(value)) is None:
        raise BadRowError(
            f"{place}: the unit {unit.name} {_why_no_text(value)}; give every document one, or leave the document out."
        )
    return text


def _why_no_text(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and value == value:  # noqa: PLR0124 - NaN
        return "is a floating-point number so large that it stands for several; write it as a whole number"
    if isinstance(value, (bytes, str)) and value.strip():
        return "is not valid text (UTF-8)"
    kind = type(value).__name__
    if value is None or isinstance(value, (bytes, str, float, np.floating)) or kind in {"NaTType", "NAType"}:
        return "is missing"
    return f"is a value of type {kind}, and not a text, a number, a date or a time"


def texts_of(values: Values, unit: Unit, rows: Sequence[int], place: str) -> pa.Array:
    """Return ``canonical`` of the values of a column, large_string [D].

    ``rows`` [D] are the numbers of rows from 0, and ``place`` their file or frame, for sentences. Raises BadRowError
    for the first value that is missing or has no text.
    """
    kind = getattr(values, "type", None)
    try:
        values, texts = _with_texts(values)
    except (OverflowError, ValueError):
        raise BadRowError(
            f"{place}: the unit {unit.name} ({kind}) has a date that is not in the years 1 to 9999, or text that is "
            "not valid UTF-8; repair or leave out these rows."
        ) from None
    if texts.null_count:
        at = texts.is_null().index(True).as_py()
        value = values[at].as_py() if isinstance(values, pa.Array) else values[at]
        text_of(value, unit, f"{place}, row {rows[at] + 1}")
    return texts


def _with_texts(values: Any) -> tuple[Any, pa.Array]:
    """Return values as their type means them, and their texts, large_string [D]; null where one has none."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    kind = getattr(values, "type", None)
    if isinstance(values, pa.ExtensionArray):
        values = list(map(_parsed, values.storage.to_pylist())) if kind == JSON else values.to_pylist()
    if kind is not None and pa.types.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    if kind in _FLOATS:  # as numbers of Python they would hide how exact they are
        values = [None if value is None else _FLOATS[kind](value) for value in values.to_pylist()]
    if not isinstance(values, pa.Array):
        return values, pa.array(map(canonical, values), pa.large_string())
    if pa.types.is_integer(kind):
        return values, values.cast(pa.large_string())
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return values, pa.array(map(canonical, values.to_pylist()), pa.large_string())
    texts = values.cast(pa.large_string())
    plain = pc.match_substring_regex(texts, f"^(?:{_PLAIN})$")
    varied = pc.fill_null(pc.or_(pc.invert(plain), pc.match_substring_regex(texts, f"^(?:{_VARIED})$")), False)
    others = pa.array(map(canonical, texts.filter(varied).to_pylist()), pa.large_string())
    return values, pc.replace_with_mask(texts, varied, others)


@dataclass(frozen=True, slots=True)
class UnitsNeeded:
    """Units without which a row is set aside, as one is that cannot be read."""

    units: tuple[Unit, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(unit.column for unit in self.units if unit.column is not None))

    def lacking(self, batch: Batch) -> Iterator[BadRow]:
        """Yield the rows that have a text and no unit; ``batch`` has kept the units' columns."""
        at = np.flatnonzero(np.asarray(batch.texts.is_valid())).tolist()
        for name, values in zip(self.columns, batch.kept, strict=True):
            for place, lacks in zip(at, _lacks(chosen(values, at)), strict=True):
                if lacks:
                    yield BadRow(batch.numbers[place], f"the unit {name} is missing or has no text; add it.")


def _lacks(values: Any) -> list[bool]:
    """Say which values have no text."""
    try:
        return list(_with_texts(values)[1].is_null().to_pylist())
    except (OverflowError, ValueError):  # of one of them
        return [len(values) == 1 or _lacks(chosen(values, [at]))[0] for at in range(len(values))]


def documents_of(batch: Batch, columns: Columns, corpus: str, task: ShardTask) -> Documents:
    """Return the documents of a batch that was read with these columns."""
    values = dict(zip(columns.keep, batch.kept, strict=False))  # fields that no name keeps follow
    identities = batch.identities(corpus, task.relative)
    return Documents(batch.texts, identities, columns.text, values, batch.numbers, task.url)


def _parsed(text: str | None) -> Any:
    """Return a value from its JSON; orjson would make long whole numbers inexact."""
    return None if text is None else json.loads(text) if len(text) > _EXACT_DIGITS else orjson.loads(text)


def part(secret: bytes, purpose: bytes) -> bytes:
    """Return a key for one kind of fingerprint."""
    return hashlib.blake2b(purpose, key=secret, digest_size=32).digest()


def fingerprints(secret: bytes, unit: Unit, namespace: str, texts: pa.Array) -> npt.NDArray[np.uint64]:
    """Return the fingerprints of a unit's values, large_string [D], under a ledger's secret; uint64 [D, 2].

    In a ``namespace``, a name of the data set, values are only unique within it; a text is the same everywhere.
    """
    data, offsets = string_buffers(texts)
    purpose, label = (b"content", "") if unit.column is None else (b"unit", json.dumps([unit.name, namespace]))
    return keyed_tags(part(secret, purpose), label, [b""] * len(texts), data, offsets)
