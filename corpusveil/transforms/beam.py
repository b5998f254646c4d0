"""A release on a Beam collection of documents, bounded or not: the batch kernel in a DoFn that batches in its bundle.

Without caps nothing is held longer than a bundle, so there is no state, timer or delay. A runner commits a bundle's
input and output together, and a replayed bundle has the same output, byte for byte. A ledger admits a whole bounded
collection before any document is drawn; an unbounded one has a budget in state.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.coders import BytesCoder, VarIntCoder
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec, SetStateSpec
from apache_beam.transforms.window import GlobalWindow, GlobalWindows
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from apache_beam.utils.windowed_value import WindowedValue

from corpusveil.errors import BadRowError, BadTypeError, ColumnError, ConflictError, UnsetError
from corpusveil.ledger.account import Account, packed
from corpusveil.ledger.caps import Caps, Spending, parts_of, reserve_table
from corpusveil.ledger.summary import Ledger, require_ledger
from corpusveil.ledger.units import Unit, scope_of, scopes_of, text_of, units_of
from corpusveil.sampling.draws import encode_id
from corpusveil.storage.nested import column_of, path_of, refuse_nested
from corpusveil.transforms.frames import collected, large_strings, refilled
from corpusveil.transforms.identities import checked_identities
from corpusveil.transforms.release.release import Release, require_release

MOST_ROWS = 4096
MOST_CHARACTERS = 1 << 22
"""A batch has at most this many documents, and ends with the document that exceeds this many characters."""
_OF_DOCUMENTS = (BadRowError, BadTypeError)
"""Errors that are a document's own; all others would come again with the next one, and end the pipeline."""


class PrivatizeDocuments(beam.PTransform):
    """Privatize the string field ``text`` of each document; its other fields, type, window, timestamp and pane stay.

    ``text`` can be a path into lists and objects, as in ``cv.privatize``; a budget in state (``cap``) takes none.
    A document is a mapping, a ``beam.Row``, a NamedTuple or a dataclass; the collection keeps its schema. ``id`` names
    the field that identifies a document (text, bytes, a number, a date or a UUID). Two elements with the same id and
    text get the same output, in any bundle, window or run under the same release.

    A *bounded* collection takes a ``ledger``, as ``cv.privatize`` does: documents are accounted for, one worker asks
    the ledger and enters what their ``unit`` spends, and only then is anything drawn. That worker needs access to the
    ledger. The collection is read twice, so it has to give the same documents again.

    An *unbounded* collection takes a ``cap`` (epsilon in the metric of this release) on one ``unit``, and the transform
    returns two collections: private documents, and unchanged, still private ones of units that the document would have
    taken above the cap. What units have spent is in the state of the pipeline alone. A pipeline that is updated, or
    restarted from a snapshot or savepoint, remembers it; one that was drained or cancelled and started anew begins at
    zero, and no ledger knows of it. Equal noise (a repeated document) is spent once.

    Raises UserError, when the pipeline is built, without ``id`` or when the collection's schema lacks a field; in the
    worker, for a document without these fields, an id or a unit, or whose text is not a string, and if a unit would
    spend more than a cap of the ledger. A streaming runner retries such a bundle forever, so filter out such documents
    first, or let ``with_exception_handling`` send them to an output of their own.
    """

    def __init__(
        self,
        release: Release,
        text: str = "text",
        id: str | None = None,
        *,
        ledger: Ledger | None = None,
        unit: str | Sequence[str] | Mapping[str, str] | None = None,
        corpus: str | None = None,
        cap: float | None = None,
    ) -> None:
        super().__init__()
        if id is None:
            raise UnsetError(
                "Documents of a collection have no order to identify them by; name a field that identifies them: "
                "id='...'."
            )
        self._kernel = require_release(release).kernel()
        self._fields = (text, id)
        self._account = release.account(text)
        self._spending = require_ledger(ledger, None if ledger is None else unit, corpus)
        self._cap = cap
        self._handling: dict[str, Any] | None = None
        if cap is not None:
            refuse_nested(text, "a budget in state is about")
            units = units_of(unit)
            if ledger is not None or len(units) != 1:
                raise ConflictError(
                    "cap: a budget in state is about one unit, without a ledger; name the unit, and give either cap or "
                    "ledger."
                )
            Caps(cap)
            self._account = dataclasses.replace(self._account, units=units)
        elif unit is not None and ledger is None and not release.scoped:
            raise UnsetError("unit: give a ledger (or, for an unbounded collection, a cap) that is about this unit.")
        self._scope = scope_of(unit, scoped=release.scoped)

    def with_exception_handling(self, **options: Any) -> PrivatizeDocuments:
        """Return two outputs by name: ``good``, and ``bad`` with documents that cannot be processed, unchanged.

        A pipeline then goes on without them. ``options`` are those of ``beam.ParDo.with_exception_handling``, and as
        there, ``bad`` has pairs of a document and (class, sentence, traceback), which quotes nothing of it. With a
        ``cap`` there is a third output, ``over``.
        """
        self._handling = options
        return self

    def expand(self, documents: Any) -> Any:
        """Privatize in batches and give documents out one by one, each in its own window."""
        kind = documents.element_type
        units = self._account.units if self._spending is None else self._spending.units
        units = units or (() if self._scope is None else (self._scope,))
        if isinstance(kind, RowTypeConstraint):
            there = [name for name, _ in kind._fields]
            text, identity = self._fields
            for name in (column_of(text), identity, *(unit.column for unit in units if unit.column is not None)):
                if name not in there:
                    raise ColumnError(f"{name}: the documents have no such field; they have {', '.join(there)}.")
        if self._cap is None and self._spending is not None and not documents.is_bounded:
            raise ConflictError(
                "ledger: an unbounded collection cannot be admitted as a whole; give cap and unit instead, for a "
                "budget in the state of the pipeline."
            )
        over = None
        if self._handling is not None:
            columns = [unit.column for unit in units if unit.column is not None]
            checking = beam.Map(_checked, *self._fields, columns, nulls=self._cap is None).with_output_types(kind)
            options = {"main_tag": "good", "dead_letter_tag": "bad", "exc_class": _OF_DOCUMENTS, **self._handling}
            checked = documents | "Check" >> checking.with_exception_handling(**options)
            documents, bad = checked[options["main_tag"]], checked[options["dead_letter_tag"]]
        drawing = beam.ParDo(_Privatize(self._kernel, *self._fields, self._scope))
        if self._spending is not None:
            account = self._spending.accounting(self._account)
            entered = (
                documents
                | "Whole" >> beam.WindowInto(GlobalWindows())
                | "Account" >> beam.ParDo(_Accounts(account, *self._fields)).with_output_types(tuple[bytes, bytes])
                | "Together" >> beam.GroupByKey()
                | "Reserve" >> beam.ParDo(_Reserve(self._spending, account))
            )
            # a side input is complete before the first document is drawn
            admitted = beam.pvalue.AsList(entered)
            drawing = beam.ParDo(_PrivatizeAdmitted(self._kernel, *self._fields, self._scope), admitted)
        elif self._cap is not None:
            windows = documents.windowing
            both = (
                documents
                | "Whole" >> beam.WindowInto(GlobalWindows())  # state is of a key and window: this one never ends
                | "Account" >> beam.ParDo(_Keyed(self._account, *self._fields)).with_output_types(tuple[bytes, Any])
                | "Budget" >> beam.ParDo(_Budget(parts_of(self._cap))).with_outputs("over", main="within")
            )
            documents, over = (
                some
                | name >> beam.WindowInto(windows, allowed_lateness=windows.allowed_lateness).with_output_types(kind)
                for some, name in ((both.within, "Within"), (both.over, "Over"))
            )
        private = documents | "Privatize" >> drawing.with_output_types(kind)
        if self._handling is None:
            return private if over is None else (private, over)
        outputs = {options["main_tag"]: private, options["dead_letter_tag"]: bad}
        return outputs if over is None else {**outputs, "over": over}


class _Privatize(beam.DoFn):
    """Collects elements with their windows until there are enough for the kernel, or the bundle ends."""

    def __init__(self, kernel: Any, text: str, identity: str, scope: Unit | None = None) -> None:
        self._kernel = kernel
        self._scope = scope
        self._text = text
        self._id = identity
        self._column, self._path = column_of(text), path_of(text)

    def start_bundle(self) -> None:
        self._documents: list[Any] = []
        self._values: list[Any] = []
        self._identities: list[Any] = []
        self._where: list[tuple[Any, Any, Any]] = []
        self._characters = 0

    def process(self, element: Any, windowed: Any = beam.DoFn.WindowedValueParam) -> Iterator[Any]:
        value, identity, characters = _read(element, self._text, self._id)
        full = len(self._documents) >= MOST_ROWS or self._characters > MOST_CHARACTERS
        if (
            full and len(windowed.windows) > 1
        ):  # Beam would multiply elements that are yielded here by this element's windows
            (changed,) = self._privatized([element], [value], [identity])
            yield changed
            return
        if full:
            yield from self.finish_bundle()
            self.start_bundle()
        self._documents.append(element)
        self._values.append(value)
        self._identities.append(identity)
        self._where.append((windowed.timestamp, windowed.windows, windowed.pane_info))
        self._characters += characters

    def finish_bundle(self) -> Iterator[Any]:
        changed = self._privatized(self._documents, self._values, self._identities)
        for document, where in zip(changed, self._where, strict=True):
            yield WindowedValue(document, *where)

    def _flat(self, values: Sequence[Any], identities: list[Any]) -> tuple[Sequence[str | None], list[Any], list[int]]:
        """Return the texts of documents, with their ids and the numbers of their documents."""
        identities = checked_identities(identities, self._id)
        if self._path is None:
            return values, identities, list(range(len(values)))
        texts, places = collected(values, self._path, **_OBJECTS)
        return texts, places.identities(identities), places.rows.tolist()

    def _privatized(self, documents: Sequence[Any], values: Sequence[Any], identities: list[Any]) -> list[Any]:
        flat, identities, rows = self._flat(values, identities)
        texts, units = large_strings(flat, self._text), None
        if self._scope is not None:
            units = scopes_of(_values(documents, rows, self._scope), self._scope, texts, rows, "a bundle")
        out, _ = self._kernel.privatize(texts, identities, self._text, units)
        private = out.to_pylist()
        if self._path is not None:
            private = refilled(values, self._path, iter(private), **_OBJECTS)
        return [_with(document, self._column, value) for document, value in zip(documents, private, strict=True)]


class _PrivatizeAdmitted(_Privatize):
    """Privatizes documents that a ledger has admitted."""

    def process(  # type: ignore[override]
        self, element: Any, _: Any, windowed: Any = beam.DoFn.WindowedValueParam
    ) -> Iterator[Any]:
        return super().process(element, windowed)


class _Accounts(_Privatize):
    """Accounts for documents in batches; the rows travel as streams of Arrow's format, since elements are costly."""

    def __init__(self, account: Account, text: str, identity: str) -> None:
        super().__init__(account.kernel, text, identity)
        self._account = account

    def finish_bundle(self) -> Iterator[Any]:
        if self._documents:
            yield WindowedValue((b"", packed([self._rows()])), MIN_TIMESTAMP, (GlobalWindow(),))

    def _rows(self, **filled: str) -> pa.Table:
        flat, identities, rows = self._flat(self._values, self._identities)
        texts = large_strings([filled.get("missing") if text is None else text for text in flat], self._text)
        units = [unit for unit in self._account.units if unit.column is not None]
        values = {str(unit.column): _values(self._documents, rows, unit) for unit in units}
        return self._account.rows(texts, identities, values, rows, "a bundle")


class _Keyed(_Accounts):
    """Gives documents the fingerprint of their unit as key, with those of their noise, and what they spend."""

    def setup(self) -> None:
        """Key the fingerprints, on a worker: nothing derived from the key need be in the pipeline."""
        kernel: Any = self._account.kernel
        self._account = dataclasses.replace(self._account, secret=kernel.draw_key.tag)

    def finish_bundle(self) -> Iterator[Any]:
        if self._documents:
            rows = self._rows(missing="")
            tags = (rows[name].chunk(0).storage.to_pylist() for name in ("unit_0", "noise"))
            together = zip(*tags, rows["total"].to_pylist(), self._documents, self._where, strict=True)
            for unit, noise, total, document, where in together:
                yield WindowedValue((unit, (noise, total, document)), *where)


class _Budget(beam.DoFn):
    """Sends documents with which their unit would exceed the cap to the output ``over``."""

    SPENT = beam.DoFn.StateParam(ReadModifyWriteStateSpec("spent", VarIntCoder()))
    NOISES = beam.DoFn.StateParam(SetStateSpec("noises", BytesCoder()))

    def __init__(self, cap: int) -> None:
        self._cap = cap

    def process(
        self,
        element: tuple[bytes, tuple[bytes, int, Any]],
        spent: Any = SPENT,
        noises: Any = NOISES,
    ) -> Iterator[Any]:
        noise, total, document = element[1]
        before = spent.read() or 0
        if noise in set(noises.read()):  # equal noise is drawn again, and spent once
            yield document
        elif before + total > self._cap:
            yield beam.pvalue.TaggedOutput("over", document)
        else:
            spent.write(before + total)
            noises.add(noise)
            yield document


class _Reserve(beam.DoFn):
    """Enters all accounts of a bounded collection in the ledger. A retry enters nothing more: entries are equal."""

    def __init__(self, spending: Spending, account: Account) -> None:
        self._spending = spending
        self._account = account

    def process(self, element: tuple[bytes, Iterable[bytes]]) -> Iterator[bool]:
        reserve_table(self._spending, self._account, (pa.ipc.open_stream(rows).read_all() for rows in element[1]))
        yield True


def _values(documents: Sequence[Any], rows: Sequence[int], unit: Unit) -> list[Any]:
    """Return a unit's values of some documents."""
    return [_field(documents[row], str(unit.column)) for row in rows]


def _read(document: Any, text_field: str, id_field: str) -> tuple[Any, Any, int]:
    """Return a document's text, or the value with its texts, its id, and the characters of text.

    Raises UserError when there are none.
    """
    value, identity = (_field(document, name) for name in (column_of(text_field), id_field))
    if (path := path_of(text_field)) is not None:
        texts, _ = collected([value], path, **_OBJECTS)
        return value, identity, sum(len(text or "") for text in texts)
    if value is not None and not isinstance(value, str):
        raise BadRowError(f"{text_field}: the text of a document is not a string; convert it first.")
    return value, identity, len(value or "")


def _checked(document: Any, text_field: str, id_field: str, units: Sequence[str], *, nulls: bool) -> Any:
    """Return a document that can be accounted for and drawn. Raises UserError for any other.

    With ``nulls``, a document without a text needs no unit.
    """
    value, identity, _ = _read(document, text_field, id_field)
    path = path_of(text_field)
    texts = [value] if path is None else collected([value], path, **_OBJECTS)[0]
    large_strings(texts, text_field)
    encode_id(*checked_identities([identity], id_field))
    for unit in units if not nulls or any(text is not None for text in texts) else ():
        text_of(_field(document, unit), Unit(unit, unit), "a document")
    return document


def _field(document: Any, name: str) -> Any:
    fields = _fields(document)
    if name not in fields:
        raise BadRowError(f"{name}: a document lacks this field; add it or leave the document out.")
    return fields[name]


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


def _with(document: Any, name: str, text: Any) -> Any:
    """Return a document of the same type with another text."""
    if isinstance(document, Mapping):
        return {**document, name: text}
    if isinstance(document, beam.Row):
        return beam.Row(**{**document.as_dict(), name: text})
    replace: Callable[..., Any] | None = getattr(document, "_replace", None)
    return replace(**{name: text}) if replace is not None else dataclasses.replace(document, **{name: text})


_OBJECTS = {"fields": _fields, "with_field": _with}
