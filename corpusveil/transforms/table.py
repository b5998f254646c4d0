"""A release on texts in this process: a list, a column, or one column of a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np
import pyarrow as pa

from corpusveil.errors import (
    BadRowError,
    BadTypeError,
    ColumnError,
    ConflictError,
    ShapeError,
    UnsetError,
    listed,
    of_other_type,
)
from corpusveil.kernel.kernel import Kernel
from corpusveil.language.denoise import MARGIN, Denoiser, Search
from corpusveil.language.model import LanguageModel, load_model
from corpusveil.ledger.account import Account
from corpusveil.ledger.caps import Spending, reserve_table
from corpusveil.ledger.summary import Ledger, require_ledger
from corpusveil.ledger.units import Unit, chosen, scope_of, scopes_of, texts_of
from corpusveil.recognizers.row_values import values_of_rows
from corpusveil.spaces.installed import shipped_beside
from corpusveil.transforms.frames import (
    Frame,
    Kept,
    cannot_hold,
    column_values,
    frame_of,
    large_strings,
    warn_of_dropped,
)
from corpusveil.transforms.identities import Ids, identities_of_documents, warn_of_repeated
from corpusveil.transforms.release.fit import TEXTS, warn_of_misfit
from corpusveil.transforms.release.release import Release, require_release
from corpusveil.waiting import reached, waiting

T = TypeVar("T")

DENOISED_ROWS = 256
"""The documents that are denoised before progress is told."""
COMBINED_BYTES = 1 << 30
"""Chunks of columns below this size are joined and privatized at once; larger columns are done chunk by chunk."""


UnitValues: TypeAlias = str | Sequence[str] | Mapping[str, Any]
"""The units of a ledger: the name of a column or ``content``, several, or columns or values by name."""


@overload  # for type checkers, which require ids
def privatize(texts: T, release: Release, ids: Ids, text: str = ..., *, keep: Kept = ...) -> T: ...


@overload
def privatize(
    texts: T,
    release: Release,
    ids: Ids,
    text: str = ...,
    *,
    keep: Kept = ...,
    ledger: Ledger,
    unit: UnitValues | None = ...,
    corpus: str | None = ...,
) -> T: ...


def privatize(
    texts: Any,
    release: Release,
    ids: Ids | None = None,
    text: str = "text",
    *,
    keep: Kept = (),
    ledger: Ledger | None = None,
    unit: UnitValues | None = None,
    corpus: str | None = None,
) -> Any:
    """Privatize texts, and return them as the type that was given.

    ``texts`` is a list, tuple or NumPy array of strings, a Series or DataFrame of pandas or Polars, an Array,
    ChunkedArray, RecordBatch or Table of Arrow, a Hugging Face Dataset, or an object with an Arrow stream (which is
    returned as Arrow). In a frame, the column ``text`` becomes private. Other columns, and an index that is more than
    row numbers, come back only if ``keep`` names them, in the clear; ``keep="all"`` keeps all of them. A warning names
    what was dropped. Types and order stay as they are.

    ``ids`` are required and identify the documents. They are the name of a frame's column, one id per text (text,
    bytes, numbers, dates, UUIDs, or pairs ``(name, row)``), or ``RowNumbers(name)``. A document's noise is a keyed
    function of ``text`` (the column's name, also without columns), its id and its text. Under one release the same
    three give the same output, in any batch and order. A missing text (None, NaN, pandas.NA) stays missing.

    In a frame, ``text`` can be a path into lists and structs, such as ``messages[].content``. Each text there is a
    document, identified by its row's id and its place; all around the texts stays as it is, so ``keep`` names it.

    With a ``ledger``, what the documents' units spend is written there before anything is drawn. ``unit`` names the
    column with the privacy unit (an author, a customer, the id), or several, or ``"content"`` for the text itself; the
    caps are about its values. ``{"customer_id": "customer"}`` says in which column the ledger's unit customer_id is, or
    gives its values, one per text. Pseudonyms that are equal within a unit need ``unit`` also without a ledger.
    ``corpus`` is a name space, for values that are unique in one data set only. Equal
    noise, here or from a file, is spent once.

    Raises UserError for texts of any other type; for a column that is missing, is not text or can't hold the private
    text; for ids that are missing or too few; and if a unit would spend more than a cap (the ledger stays as it was).
    """
    if corpus is not None and ledger is None:
        raise UnsetError(f"corpus = {corpus!r} names a data set in a ledger, and no ledger is given; add ledger=.")
    frame = frame_of(texts, text, keep)
    names, values = _units(unit, frame)
    scoped = require_release(release).scoped
    spending = require_ledger(ledger, names, corpus, scoped=scoped)
    return _privatized(frame, release, ids, text, spending, values, scope_of(names, scoped=scoped))


def privatize_table(
    table: T, release: Release, text: str = "text", id: str | None = None, ids: Ids | None = None, *, keep: Kept = (),
) -> T:  # fmt: skip
    """Privatize the column ``text`` of an Arrow table, record batch or frame, and return a table of the same type.

    ``id`` names the column that identifies documents; alternatively give ``ids`` as in ``privatize``, which does the
    work. A column of any of Arrow's string types, also as a dictionary, keeps its type, and its nulls stay null.
    """
    if id is not None and ids is not None:
        raise ConflictError("id names a column and ids gives the ids; pass only one.")
    frame = frame_of(table, text, keep)
    if frame.column is None:
        raise BadTypeError(
            f"privatize_table takes a table or frame, and a value of type {type(table).__name__} has no columns; use "
            "cv.privatize."
        )
    scope = scope_of(None, scoped=require_release(release).scoped)
    private: T = _privatized(frame, release, ids if id is None else id, text, None, {}, scope)
    return private


def masker(release: Release, text: str = "text") -> Callable[[str], str]:
    """Return a function from one text to its private text, for hooks of logs and traces; threads may share it.

    Noise is that of ``cv.privatize`` for the column ``text`` and the id ``""``: such texts have no id, so equal texts
    get equal output. That discloses which texts are equal; with fresh noise, a text that occurs often could be averaged
    instead. Nothing is written to a ledger. The returned function raises UserError for a value that is not text.
    """
    kernel = require_release(release).kernel()

    def mask(value: str) -> str:
        if not isinstance(value, str):
            raise of_other_type("the text", value, "a string")
        private, _ = kernel.privatize(large_strings([value], None), [""], text)
        return str(private[0])

    mask("a")  # what a process prepares once, before the first text waits for it
    return mask


@waiting("privatizing")
def _privatized(
    frame: Frame,
    release: Release,
    ids: Ids | None,
    text: str,
    spending: Spending | None,
    values: Mapping[str, pa.Array],
    scope: Unit | None,
) -> Any:
    kernel = release.kernel()
    if chunks := chunks_of(frame.texts):
        warn_of_misfit(release, plain_texts(chunks[0].slice(0, TEXTS), text))

    known = known_of(frame, () if release.spans is None else release.spans.spans_from)

    def reserve(chunks: Sequence[pa.Array], identities: Sequence[Any], rows: Sequence[int]) -> None:
        warn_of_repeated(identities)
        if spending is None:
            return
        account = spending.accounting(release.account(text))
        columns = {
            unit.column: _texts_of(unit, frame, values).take(pa.array(rows, pa.int64()))
            for unit in spending.units
            if unit.column is not None
        }
        reserve_table(spending, account, _accounted(account, chunks, identities, columns, text, rows, known))

    warn_of_dropped(frame)
    return drawn(kernel, frame, ids, text, reserve, scope, values, known)


def drawn(
    kernel: Kernel, frame: Frame, ids: Ids | None, text: str, reserve: Callable[..., None] = lambda *_: None,
    scope: Unit | None = None, values: Mapping[str, Any] = MappingProxyType({}),
    known: Sequence[Sequence[str]] | None = None,
) -> Any:  # fmt: skip
    """Return the frame with private texts; ``reserve`` gets chunks of texts, identities and rows before.

    ``scope`` is the unit within which pseudonyms are equal; its column is in ``values``, or in the frame;
    ``known`` are the values of each text's row that are spans of it.
    """
    identities = identities_of_documents(ids, len(frame), frame.column)
    rows: Sequence[int] = range(len(frame))
    if frame.places is not None:
        identities, rows = frame.places.identities(identities), frame.places.rows.tolist()
    chunks = chunks_of(frame.texts)
    reserve(chunks, identities, rows)
    given = None if scope is None else _texts_of(scope, frame, values).take(pa.array(rows, pa.int64()))
    parts: list[pa.Array] = []
    first = 0
    for chunk in chunks:
        last, units = first + len(chunk), None
        if scope is not None and given is not None:
            units = scopes_of(given.slice(first, len(chunk)), scope, chunk, rows[first:last], "the texts")
        own = None if known is None else known[first:last]
        parts += privatized_parts(kernel, chunk, identities[first:last], text, units, own)
        first = last
        reached("", first / max(1, len(frame.texts)))
    return frame.back(parts)


def _accounted(
    account: Account, chunks: Sequence[pa.Array], identities: Sequence[Any], values: Mapping[str, pa.Array], text: str,
    rows: Sequence[int], known: Sequence[Sequence[str]] | None,
) -> Iterator[pa.Table]:  # fmt: skip
    """Yield the rows of an account for texts in chunks, with the values of units [D] and the texts' rows [D]."""
    first = 0
    for chunk in chunks:
        last = first + len(chunk)
        here = {name: column.slice(first, len(chunk)) for name, column in values.items()}
        own, at = None if known is None else known[first:last], rows[first:last]
        yield account.rows(plain_texts(chunk, text), identities[first:last], here, at, "the texts", own)
        first = last


@waiting("denoising")
def denoise_frame(
    frame: Any, release: Release, text: str, *, model: LanguageModel | None = None, search: Search | None = None
) -> Any:
    """Return the likeliest originals of private texts in a list, a column or a frame, in the type that was given."""
    mechanism, given = release.mechanism, frame_of(frame, text)
    if model is None and (named := shipped_beside(mechanism.space.url)) is not None:
        model = load_model(named)
    if model is None:
        raise UnsetError("model: the search needs a language model of public text; give one.")
    denoiser = Denoiser(
        mechanism, release.budget, release.policy, model, search or Search(margin=MARGIN), release.collocations,
        spans=release.spans is not None,
    )  # fmt: skip
    parts, done = [], 0
    for chunk in chunks_of(given.texts):
        for first in range(0, len(chunk), DENOISED_ROWS):
            some = chunk.slice(first, DENOISED_ROWS)
            parts += privatized_parts(denoiser, some, [], text)
            done += len(some)
            reached("", done / len(given.texts))
    return given.back(parts or [given.texts])


def known_of(frame: Frame, names: Sequence[str]) -> list[tuple[str, ...]] | None:
    """Return the values of each text's row that are spans of it, of the columns ``spans_from``; None without any."""
    if not names:
        return None
    if frame.column is None:
        raise ColumnError(f"spans_from: these texts have no columns, so no {listed(names)}; give a frame.")
    rows = values_of_rows([frame.column(name) for name in names])
    return rows if frame.places is None else [rows[row] for row in frame.places.rows.tolist()]


def _units(given: UnitValues | None, frame: Frame) -> tuple[Any, dict[str, Any]]:
    """Return units as names and columns, and the values that the caller gave for some instead of a column."""
    if not isinstance(given, Mapping):
        return given, {}
    values = {name: value for name, value in given.items() if not isinstance(value, str)}
    for name, value in values.items():
        if not hasattr(value, "__len__"):
            raise of_other_type(f"unit {name}", value, "the name of a column, or a value for each text")
        if len(value) != len(frame):
            raise ShapeError(f"unit {name}: {len(value):,} values for {len(frame):,} texts; give one for each text.")
    names = {name: name if name in values else column for name, column in given.items()}
    return names, {name: column_values(value) for name, value in values.items()}


def _texts_of(unit: Unit, frame: Frame, values: Mapping[str, Any]) -> pa.Array:
    """Return the texts of a unit's values, large_string [rows]; null in rows without a text, which need no unit.

    Raises UserError for texts without columns, and for a value that is missing or has no text.
    """
    name = str(unit.column)
    if name not in values and frame.column is None:
        raise ColumnError(
            f"unit {name}: these texts have no columns; give a value for each text, as in unit={{{name!r}: [...]}}."
        )
    given = values[name] if name in values or frame.column is None else frame.column(name)
    there = np.flatnonzero(np.asarray(frame.texts.is_valid()))
    rows = np.unique(there if frame.places is None else frame.places.rows[there])
    at = np.full(len(frame), -1)
    at[rows] = np.arange(rows.size)
    return texts_of(chosen(given, rows.tolist()), unit, rows.tolist(), "the texts").take(pa.array(at, mask=at < 0))


def privatized_parts(
    kernel: Kernel | Denoiser, column: pa.Array, identities: Sequence[Any], name: str,
    units: Sequence[str] | None = None, known: Sequence[Sequence[str]] | None = None,
) -> list[pa.Array]:  # fmt: skip
    """Return the private texts of a string column in its own type: one array, several where one can't hold them.

    ``units`` and ``known`` are those of ``Kernel.privatize``. Raises UserError for
    invalid UTF-8, and if the type cannot hold them.
    """
    out, _ = kernel.privatize(plain_texts(column, name), identities, name, units, known)
    try:
        return [_cast(out, column.type)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # whose text would quote the column
        if not (pa.types.is_string(column.type) and len(column) > 1):  # a string array holds 2 GiB
            raise cannot_hold(name, column.type) from None
    half = len(column) // 2
    return [
        part
        for some in (slice(0, half), slice(half, len(column)))
        for part in privatized_parts(
            kernel, column.slice(some.start, some.stop - some.start), identities[some], name,
            None if units is None else units[some], None if known is None else known[some],
        )
    ]  # fmt: skip


def plain_texts(column: pa.Array, name: str) -> pa.Array:
    """Return a column of strings without a dictionary. Raises UserError for text that is not UTF-8."""
    column = validated(column, name)
    coded = pa.types.is_dictionary(column.type)
    return column.dictionary.cast(pa.large_string()).take(column.indices) if coded else column


def _cast(texts: pa.LargeStringArray, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_dictionary(kind):
        return texts.cast(kind)
    coded = texts.dictionary_encode()  # Arrow casts to dictionaries of some string types only
    indices, words = coded.indices.cast(kind.index_type), coded.dictionary.cast(kind.value_type)
    return pa.DictionaryArray.from_arrays(indices, words, ordered=kind.ordered)


def validated(column: pa.Array, name: str) -> pa.Array:
    """Return the column after a check that its bytes are UTF-8. Raises UserError when they are not."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raise BadRowError(f"{name}: this column has text that is not valid UTF-8; repair it first.") from None
    return column


def chunks_of(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """Return a column as arrays to process: a single array, unless it would be too large."""
    if not isinstance(column, pa.ChunkedArray):
        return [column]
    if column.num_chunks == 1 or column.nbytes >= COMBINED_BYTES:
        chunks: list[pa.Array] = column.chunks
        return chunks
    whole = column.combinechunks_of()
    return whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
