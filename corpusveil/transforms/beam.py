"""A release on a Beam collection of documents, bounded or not: the batch kernel in a DoFn that batches in its bundle.

Nothing is held longer than a bundle, so there is no state, timer or delay. A runner commits a bundle's input and output
together, and a replayed bundle has the same output, byte for byte. A ledger admits a whole bounded collection before
any document is drawn.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindow, GlobalWindows
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from corpusveil.errors import DataError, SettingError, listed
from corpusveil.ledger.account import Account, packed
from corpusveil.ledger.caps import Spending, reserve_table
from corpusveil.ledger.summary import Ledger, require_ledger
from corpusveil.storage.documents import Documents
from corpusveil.storage.rows import Columns
from corpusveil.storage.values import not_kept
from corpusveil.transforms.frames import Kept, large_strings, not_copied
from corpusveil.transforms.identities import checked_identities
from corpusveil.transforms.release.keyed_release import AnyRelease, require_release
from corpusveil.transforms.table import Units

MOST_ROWS = 4096
MOST_CHARACTERS = 1 << 22
"""A batch has at most this many documents, and ends with the document that exceeds this many characters."""


class PrivatizeDocuments(beam.PTransform):
    """Privatize the string field ``text`` of each document; its window, timestamp and pane stay.

    Other fields come back only if ``keep`` names them, in the clear: strings, numbers, dates and times. A document is a
    mapping, which comes back as one, or a ``beam.Row``, NamedTuple or dataclass, which comes back as a ``beam.Row``.
    ``id`` names the field that identifies a document (a string or an integer).
    Two elements with the same id and text get the same output, in any bundle, window or run under the same release.

    A *bounded* collection takes a ``ledger``, as ``cv.privatize`` does: documents are accounted for, one worker asks
    the ledger and enters what their ``unit`` spends, and only then is anything drawn. That worker needs access to the
    ledger. The collection is read twice, so it has to give the same documents again.

    Raises UserError, when the pipeline is built, without ``id`` or when the collection's schema lacks a field; in the
    worker, for a document without these fields, an id or a unit, or whose text is not a string, and if a unit would
    spend more than a cap of the ledger. A streaming runner retries such a bundle forever, so filter out such documents
    first.
    """

    def __init__(
        self,
        release: AnyRelease,
        text: str = "text",
        id: str | None = None,
        *,
        keep: Kept = (),
        ledger: Ledger | None = None,
        unit: Units = None,
        corpus: str | None = None,
    ) -> None:
        super().__init__()
        if id is None:
            raise SettingError(
                "Documents of a collection have no order to identify them by; name a field that identifies them: "
                "id='...'."
            )
        self._kernel = require_release(release).kernel()
        self._fields = (text, id)
        self._kept = Columns.from_names(text, None, keep)
        self._account = release.account(text)
        self._spending = require_ledger(ledger, unit, corpus)
        self._units: Sequence[str] = () if self._spending is None else self._spending.columns

    def expand(self, documents: Any) -> Any:
        """Privatize in batches and give documents out one by one, each in its own window."""
        self._refuse(documents)
        admitted = []
        if self._spending is not None:
            admitted = [self._admitted(documents, self._spending)]
        act = functools.partial(_drawn, self._kernel, self._kept)
        drawing = beam.ParDo(_InBatches(self._fields, act), *admitted)
        return documents | "Privatize" >> drawing.with_output_types(self._kind(documents.element_type))

    def _kind(self, kind: Any) -> Any:
        """Return the type of the documents that come out, and warn of the fields that do not."""
        there = _named(kind)
        gone = [name for name in there if name not in self._kept.named]
        if gone or not there:
            what = listed(gone) if gone else f"fields other than {listed(self._kept.named)}"
            warnings.warn(not_copied(what), stacklevel=5)
        return RowTypeConstraint.from_fields([(name, there[name]) for name in self._kept.named]) if there else Any

    def _refuse(self, documents: Any) -> None:
        """Raise UserError if the schema lacks a field, or if an unbounded collection is to be admitted as a whole."""
        if there := _named(documents.element_type):
            text, identity = self._fields
            for name in (text, identity, *self._units, *self._kept.keep):
                if name not in there:
                    raise DataError(f"{name}: the documents have no such field; they have {', '.join(there)}.")
        if self._spending is not None and not documents.is_bounded:
            raise SettingError(
                "ledger: an unbounded collection cannot be admitted as a whole; release bounded parts of it, one after "
                "the other, under the ledger."
            )

    def _admitted(self, documents: Any, spending: Spending) -> Any:
        """Return a side input, which is complete before the first document is drawn: the ledger has admitted all."""
        account = spending.accounting(self._account)
        accounting = beam.ParDo(_InBatches(self._fields, functools.partial(_accounted, account, self._units)))
        return beam.pvalue.AsList(
            documents
            | "Whole" >> beam.WindowInto(GlobalWindows())
            | "Account" >> accounting.with_output_types(tuple[bytes, bytes])
            | "Together" >> beam.GroupByKey()
            | "Reserve" >> beam.Map(_reserved, spending, account)
        )


@dataclass(slots=True)
class _Batch:
    """Some documents, with the values of their fields, and timestamp, windows and pane."""

    text: str
    id: str
    documents: list[Any] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    identities: list[Any] = field(default_factory=list)
    where: list[tuple[Any, Any, Any]] = field(default_factory=list)
    characters: int = 0

    def add(self, document: Any, windowed: Any) -> None:
        value, identity = _field(document, self.text), _field(document, self.id)
        if value is not None and not isinstance(value, str):
            raise DataError(f"{self.text}: the text of a document is not a string; convert it first.")
        self.documents.append(document)
        self.values.append(value)
        self.identities.append(identity)
        self.where.append((windowed.timestamp, windowed.windows, windowed.pane_info))
        self.characters += len(value or "")

    def read(self, units: Sequence[str] = ()) -> Documents:
        """Return the documents' texts, with the fields of units."""
        identities, texts = checked_identities(self.identities, self.id), large_strings(self.values, self.text)
        values = {name: [_field(document, name) for document in self.documents] for name in units}
        return Documents(texts, identities, self.text, values, range(len(texts)), "a bundle")

    def with_texts(self, private: list[Any], kept: Columns) -> Iterator[Any]:
        """Yield the documents with other texts, and of other fields those that are kept."""
        for document, text in zip(self.documents, private, strict=True):
            made = {name: text if name == self.text else _kept(document, name) for name in kept.named}
            yield made if isinstance(document, Mapping) else beam.Row(**made)


class _InBatches(beam.DoFn):
    """Collects elements with their windows until there are enough for ``act``, or the bundle ends."""

    def __init__(self, fields: tuple[str, str], act: Callable[[_Batch], Iterator[WindowedValue]]) -> None:
        self._fields = fields
        self._act = act

    def start_bundle(self) -> None:
        self._batch = _Batch(*self._fields)

    def process(self, element: Any, windowed: Any = beam.DoFn.WindowedValueParam, _: Any = None) -> Iterator[Any]:
        """Take an element. A side input is only waited for."""
        batch = self._batch
        if len(batch.documents) < MOST_ROWS and batch.characters <= MOST_CHARACTERS:
            batch.add(element, windowed)
        elif len(windowed.windows) > 1:  # Beam would multiply what is yielded here by the windows of this element
            alone = _Batch(*self._fields)
            alone.add(element, windowed)
            yield from (made.value for made in self._act(alone))
        else:
            self._batch = _Batch(*self._fields)
            self._batch.add(element, windowed)
            yield from self._act(batch)

    def finish_bundle(self) -> Iterator[Any]:
        if self._batch.documents:
            yield from self._act(self._batch)


def _drawn(kernel: Any, kept: Columns, batch: _Batch) -> Iterator[WindowedValue]:
    private, _ = kernel.apply(batch.read())
    for document, where in zip(batch.with_texts(private.to_pylist(), kept), batch.where, strict=True):
        yield WindowedValue(document, *where)


def _accounted(account: Account, units: Sequence[str], batch: _Batch) -> Iterator[WindowedValue]:
    """Account for documents; the rows travel as streams of Arrow's format, since elements are costly."""
    yield WindowedValue((b"", packed([account.spending(batch.read(units))])), MIN_TIMESTAMP, (GlobalWindow(),))


def _reserved(element: tuple[bytes, Iterable[bytes]], spending: Spending, account: Account) -> bool:
    """Enter all accounts of a collection in the ledger. A retry enters nothing more: entries are equal."""
    reserve_table(spending, account, (pa.ipc.open_stream(rows).read_all() for rows in element[1]))
    return True


def _field(document: Any, name: str) -> Any:
    fields = _fields(document)
    if name not in fields:
        raise DataError(f"{name}: a document lacks this field; add it or leave the document out.")
    return fields[name]


def _kept(document: Any, name: str) -> Any:
    value = _field(document, name)
    if not isinstance(value, (str, int, float, dt.date, Timestamp, type(None))):
        raise DataError(str(not_kept(name, f"a value of type {type(value).__name__}")))
    return value


def _fields(document: Any) -> Mapping[str, Any]:
    if isinstance(document, Mapping):
        return document
    if isinstance(document, beam.Row) or hasattr(document, "_asdict"):
        fields: dict[str, Any] = document._asdict()
        return fields
    if dataclasses.is_dataclass(document):
        return {field.name: getattr(document, field.name) for field in dataclasses.fields(document)}
    raise SettingError(
        f"A document is of type {type(document).__name__}; give mappings, beam.Row, NamedTuples or dataclasses."
    )


def _named(kind: Any) -> dict[str, Any]:
    """Return the fields of a collection with a schema, and their types; none for any other."""
    row = kind if isinstance(kind, RowTypeConstraint) else RowTypeConstraint.from_user_type(kind)
    return {} if row is None else dict(row._fields)
