"""Privacy units: which column holds them, and one text for a value, whatever type a file gave it."""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import json
import re
import unicodedata
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.errors import BadRowError, BadValueError, ConflictError, UnsetError, of_other_type
from corpusveil.sampling.draws import keyed_tags
from corpusveil.storage.rows import JSON
from corpusveil.text.tokens import string_buffers

CONTENT = "content"
"""The unit that is a document's text."""
_NUMBER = re.compile(r"-?[0-9]+\.[0-9]+")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}\S*")
_EXACT_DIGITS = 18
_UNUSUAL = rf"^(?:{_NUMBER.pattern}|{_INSTANT.pattern})$|^\s|\s$|[^\x00-\x7f]"


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

    Whole numbers are written without decimals (1, 1.0, "1.0"), instants in UTC, midnight without a zone as its date;
    text is in Unicode's normal form C, without blanks around it. A float of 2^53 or more has no text: it stands for
    several whole numbers.
    """
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
    if value is None or isinstance(value, bool) or value != value:  # noqa: PLR0124 - NaN, NaT
        return None
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (float, decimal.Decimal)):
        if isinstance(value, float) and abs(value) >= 2.0**53:
            return None
        exact = decimal.Decimal(repr(value)) if isinstance(value, float) else value
        return _of_number(format(exact, "f")) if exact.is_finite() else None
    if isinstance(value, dt.datetime):
        return _of_instant(value)
    return str(value) if isinstance(value, (dt.date, dt.time, uuid.UUID)) else None


def _of_text(text: str) -> str:
    if _NUMBER.fullmatch(text):
        return _of_number(text)
    if _INSTANT.fullmatch(text):
        try:
            return _of_instant(dt.datetime.fromisoformat(text))
        except (ValueError, OverflowError):
            return text
    return text


def _of_number(text: str) -> str:
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in {"-0", "", "-"} else text


def _of_instant(value: dt.datetime) -> str:
    value = dt.datetime.combine(value.date(), value.timetz())  # pandas counts nanoseconds, and text microseconds
    if value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat() + "Z"
    return value.isoformat().removesuffix("T00:00:00")


def texts_of(values: pa.Array, unit: Unit, rows: Sequence[int], place: str) -> pa.Array:
    """Return the texts of a column's values, large_string [D].

    ``rows`` [D] are the numbers of rows from 0, and ``place`` their file or frame, for sentences. Raises BadRowError
    for the first value that is missing or has no text.
    """
    if isinstance(values, pa.ExtensionArray):
        there = map(_parsed, values.storage.to_pylist()) if values.type == JSON else values.to_pylist()
        values = pa.array(map(canonical, there), pa.large_string())
    kind = values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    plain = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
    texts = values.cast(pa.large_string()) if plain else None
    if texts is None or pc.any(pc.or_(pc.match_substring_regex(texts, _UNUSUAL), pc.equal(texts, ""))).as_py():
        try:
            texts = pa.array(map(canonical, values.to_pylist()), pa.large_string())
        except (OverflowError, ValueError):
            raise BadRowError(
                f"{place}: the unit {unit.name} ({kind}) has a date that is not in the years 1 to 9999, or text that "
                "is not valid UTF-8; repair or leave out these rows."
            ) from None
    if texts.null_count:
        at = texts.is_null().index(True).as_py()
        empty = values[at].as_py() in (None, "")
        why = "is missing" if empty else f"({kind}) has no text by which it could be compared"
        raise BadRowError(
            f"{place}, row {rows[at] + 1}: the unit {unit.name} {why}; give every document one, or leave the document "
            "out."
        )
    return texts


def scope_of(given: str | Sequence[str] | Mapping[str, str] | None, *, scoped: bool) -> Unit | None:
    """Return the unit within which pseudonyms are equal, if they are ``scoped`` by units.

    Raises UserError unless one column is named.
    """
    units = units_of(given) if scoped else ()
    if scoped and (len(units) != 1 or units[0].column is None):
        raise UnsetError("pseudonyms = 'unit': name one column whose values are the units, such as customer_id.")
    return units[0] if scoped else None


def scopes_of(values: pa.Array, unit: Unit, texts: pa.Array, rows: Sequence[int], place: str) -> list[str]:
    """Return the units of D texts, "" for a missing text, which needs none; otherwise as ``texts_of``."""
    there = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False)).tolist()
    scopes = [""] * len(texts)
    given = texts_of(values.take(pa.array(there, pa.int64())), unit, [rows[at] for at in there], place)
    for at, scope in zip(there, given.to_pylist(), strict=True):
        scopes[at] = scope
    return scopes


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
