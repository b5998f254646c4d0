"""A release on a Beam collection of documents, bounded or not: the batch kernel in a DoFn that batches in its bundle.

Nothing is held longer than a bundle, so there is no state, timer or delay. A runner commits a bundle's input and output
together, and a replayed bundle has the same output, byte for byte.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.utils.windowed_value import WindowedValue

from corpusveil.errors import BadRowError, BadTypeError, ColumnError, UnsetError
from corpusveil.transforms.frames import large_strings
from corpusveil.transforms.identities import checked_identities
from corpusveil.transforms.kernel import Kernel
from corpusveil.transforms.release import Release, require_release

MOST_ROWS = 4096
MOST_CHARACTERS = 1 << 22
"""A batch has at most this many documents, and ends with the document that exceeds this many characters."""


class PrivatizeDocuments(beam.PTransform):
    """Privatize the string field ``text`` of each document; its other fields, type, window, timestamp and pane stay.

    A document is a mapping, a ``beam.Row``, a NamedTuple or a dataclass; the collection keeps its schema. ``id`` names
    the field that identifies a document (text, bytes, a number, a date or a UUID). Two elements with the same id and
    text get the same output, in any bundle, window or run under the same release. No ledger counts the spending of
    these documents, and no cap applies: if you need a ledger, write the documents and run ``corpusveil privatize
    --ledger``.

    Raises UserError, when the pipeline is built, without ``id`` or when the collection's schema lacks a field; in the
    worker, for a document without these fields or without an id, or whose text is not a string. A streaming runner
    retries such a bundle forever, so filter out such documents first.
    """

    def __init__(self, release: Release, text: str = "text", id: str | None = None) -> None:
        super().__init__()
        if id is None:
            raise UnsetError(
                "Documents of a collection have no order to identify them by; name a field that identifies them: "
                "id='...'."
            )
        self._kernel = require_release(release).kernel()
        self._fields = (text, id)

    def expand(self, documents: Any) -> Any:
        """Privatize in batches and give documents out one by one, each in its own window."""
        kind = documents.element_type
        if isinstance(kind, RowTypeConstraint):
            there = [name for name, _ in kind._fields]
            for name in self._fields:
                if name not in there:
                    raise ColumnError(f"{name}: the documents have no such field; they have {', '.join(there)}.")
        return documents | "Privatize" >> beam.ParDo(_Privatize(self._kernel, *self._fields)).with_output_types(kind)


class _Privatize(beam.DoFn):
    """Collects elements with their windows until there are enough for the kernel, or the bundle ends."""

    def __init__(self, kernel: Kernel, text: str, identity: str) -> None:
        self._kernel = kernel
        self._text = text
        self._id = identity

    def start_bundle(self) -> None:
        self._documents: list[Any] = []
        self._texts: list[str | None] = []
        self._identities: list[Any] = []
        self._where: list[tuple[Any, Any, Any]] = []
        self._characters = 0

    def process(self, element: Any, windowed: Any = beam.DoFn.WindowedValueParam) -> Iterator[Any]:
        text, identity = self._read(element)
        full = len(self._documents) >= MOST_ROWS or self._characters > MOST_CHARACTERS
        if (
            full and len(windowed.windows) > 1
        ):  # Beam would multiply elements that are yielded here by this element's windows
            (changed,) = self._privatized([element], [text], [identity])
            yield changed
            return
        if full:
            yield from self.finish_bundle()
            self.start_bundle()
        self._documents.append(element)
        self._texts.append(text)
        self._identities.append(identity)
        self._where.append((windowed.timestamp, windowed.windows, windowed.pane_info))
        self._characters += len(text or "")

    def finish_bundle(self) -> Iterator[Any]:
        changed = self._privatized(self._documents, self._texts, self._identities)
        for document, where in zip(changed, self._where, strict=True):
            yield WindowedValue(document, *where)

    def _read(self, document: Any) -> tuple[str | None, Any]:
        """Return a document's text and id. Raises UserError when there are none."""
        fields = _fields(document)
        for name in (self._text, self._id):
            if name not in fields:
                raise BadRowError(f"{name}: a document lacks this field; add it or leave the document out.")
        text, identity = fields[self._text], fields[self._id]
        if text is not None and not isinstance(text, str):
            raise BadRowError(f"{self._text}: the text of a document is not a string; convert it first.")
        return text, identity

    def _privatized(self, documents: Sequence[Any], texts: Sequence[str | None], identities: list[Any]) -> list[Any]:
        column: pa.Array = large_strings(texts, self._text)
        out, _ = self._kernel.privatize(column, checked_identities(identities, self._id), self._text)
        return [_with(document, self._text, text) for document, text in zip(documents, out.to_pylist(), strict=True)]


def _fields(document: Any) -> Mapping[str, Any]:
    if isinstance(document, Mapping):
        return document
    if isinstance(document, beam.Row) or hasattr(document, "_asdict"):
        fields: dict[str, Any] = document._asdict()
        return fields
    if dataclasses.is_dataclass(document):
        return {field.name: getattr(document, field.name) for field in dataclasses.fields(document)}
    raise BadTypeError(
        f"A document is of type {type(document).__name__}; give mappings, beam.Row, NamedTuples or dataclasses."
    )


def _with(document: Any, name: str, text: str | None) -> Any:
    """Return a document of the same type with another text."""
    if isinstance(document, Mapping):
        return {**document, name: text}
    if isinstance(document, beam.Row):
        return beam.Row(**{**document.as_dict(), name: text})
    replace: Callable[..., Any] | None = getattr(document, "_replace", None)
    return replace(**{name: text}) if replace is not None else dataclasses.replace(document, **{name: text})
