"""Privacy units: which column holds them, and the text of a value, a string or a whole number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.errors import DataError, SettingError, of_other_type
from corpusveil.sampling.draws import keyed_tags
from corpusveil.storage.documents import Documents
from corpusveil.storage.rows import JSON, Batch, Columns
from corpusveil.storage.tasks import ShardTask
from corpusveil.storage.values import unit_texts
from corpusveil.text.tokens import string_buffers

CONTENT = "content"
"""The unit that is a document's text."""
Values: TypeAlias = "pa.Array | pa.ChunkedArray | Sequence[Any]"
"""The values of a column: of Arrow where they have a type, otherwise of Python."""


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """A privacy unit: its ``name`` in the ledger, and the ``column`` with its values; None for a document's text."""

    name: str
    column: str | None

    @classmethod
    def parse(cls, text: str) -> Unit:
        """Return the unit of ``COLUMN``, ``NAME=COLUMN`` or ``content``. Raises UserError for an empty part."""
        name, equals, column = text.partition("=")
        if not name or (equals and not column):
            raise SettingError(f"unit {text!r}: name a column, as in customer_id or customer_id=customer, or content.")
        if name == CONTENT and equals:
            raise SettingError(f"unit {text!r}: the unit content is a document's text; give the column another name.")
        return cls(name, None if name == CONTENT else column or name)

    @property
    def noun(self) -> str:
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
    units = tuple(sorted(map(Unit.parse, texts)))
    if len({unit.name for unit in units}) < len(units):
        raise SettingError("unit: a unit is named twice; name each unit once.")
    return units


def texts_of(values: Values, unit: Unit, rows: Sequence[int], place: str) -> pa.Array:
    """Return the texts of a column's values, strings or whole numbers; large_string [D].

    ``rows`` [D] are the numbers of rows from 0, and ``place`` their file or frame, for sentences. Raises DataError
    for the first value that is missing, empty or of another type.
    """
    try:
        texts = unit_texts(values)
    except UnicodeEncodeError:
        raise DataError(f"{place}: the unit {unit.name} has half a surrogate pair; repair the text first.") from None
    if texts.null_count:
        at = texts.is_null().index(True).as_py()
        value = values[at].as_py() if isinstance(values, (pa.Array, pa.ChunkedArray)) else values[at]
        value = json.loads(value) if getattr(values, "type", None) == JSON else value
        why = "is missing" if value is None or value == "" else f"is of type {type(value).__name__}"
        raise DataError(
            f"{place}, row {rows[at] + 1}: the unit {unit.name} {why}; give every document a string or a whole number, "
            "or leave the document out."
        )
    return texts


def documents_of(batch: Batch, columns: Columns, corpus: str, task: ShardTask) -> Documents:
    """Return the documents of a batch that was read with these columns."""
    values = dict(zip(columns.keep, batch.kept, strict=False))  # fields that no name keeps follow
    identities = batch.identities(corpus, task.relative)
    return Documents(batch.texts, identities, columns.text, values, batch.numbers, task.url)


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
