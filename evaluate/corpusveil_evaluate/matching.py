"""An original corpus and its release: matching documents, read as a stream, and sampled if there are many."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from corpusveil.choices import Separator
from corpusveil.errors import DataError, SettingError
from corpusveil.storage import files, formats
from corpusveil.storage.inputs import find_shards
from corpusveil.storage.rows import JSON, Columns
from corpusveil_evaluate.settings import DOCUMENTS


@dataclass(frozen=True, slots=True)
class Matched:
    """N documents and their private versions, in the order of the original.

    ``originals`` and ``privates`` are texts [N], ``columns`` values [N] of further columns of the original by name,
    ``documents`` the number of all documents, of which ``chosen`` were sought; ``unreadable`` is the number of further
    rows.
    """

    originals: list[str]
    privates: list[str]
    documents: int
    columns: dict[str, list[Any]] = field(default_factory=dict)
    chosen: int = 0
    unreadable: int = 0

    @property
    def sampled(self) -> bool:
        """Whether fewer than all documents were sought."""
        return self.chosen < self.documents

    @property
    def missing(self) -> int:
        """The number of documents that were sought and are not in the release."""
        return self.chosen - len(self.originals)


def match(
    original: Sequence[str],
    private: Sequence[str],
    *,
    text: str = "text",
    private_text: str | None = None,
    id: str | None = None,
    columns: Sequence[str] = (),
    most: int = DOCUMENTS,
    separator: Separator = "comma",
) -> Matched:
    """Match the documents of an original with those of its release: by the column ``id``, else by position.

    ``separator`` is that of CSV. Of more than ``most`` documents an
    even sample is taken (reservoir sampling, Vitter 1985, algorithm R); nothing else is held. Rows without
    text are no documents. Unreadable rows of the original are skipped. Of a release folder,
    ``data`` is read. Raises UserError if original and release do not match, and for a duplicate id.
    """
    named = tuple(dict.fromkeys(columns))
    if text in named:
        raise DataError(f"{text}: this is the column with the text; name another column as label or attribute.")
    bad: list[str] = []
    chosen, documents, rows = _reservoir(
        _rows(original, Columns(text, id, named, separator=separator), bad), most, np.random.default_rng(0)
    )
    if not documents:
        raise DataError(bad[0] if bad else f"{original[0]}: there are no documents here; give a file with documents.")
    wanted = {row.identity: place for place, row in enumerate(chosen)}
    if len(wanted) < len(chosen):
        raise _same_id_twice(original[0], id)
    privates = _found(private, Columns(private_text or text, id, separator=separator), wanted, rows, bad)
    places = sorted(privates)
    if not places:
        raise SettingError(
            f"{private[0]}: no document has the {id} of a document in the original; name the right column."
        )
    return Matched(
        [str(chosen[place].text) for place in places],
        [privates[place] for place in places],
        documents,
        {name: [chosen[place].values[number] for place in places] for number, name in enumerate(named)},
        len(chosen),
        len(bad),
    )


def _same_id_twice(place: str, column: object) -> DataError:
    return DataError(f"{place}: two documents have the same {column}; name a column that identifies them.")


def _found(
    private: Sequence[str], columns: Columns, wanted: Mapping[Any, int], rows: int, bad: Sequence[str]
) -> dict[int, str]:
    """Return the private texts of the wanted documents, by their places."""
    texts: dict[int, str] = {}
    there = 0
    for row in _rows([_data(url) for url in private], columns):
        there += 1
        place = wanted.get(row.identity)
        if place in texts:
            raise _same_id_twice(private[0], columns.id)
        if place is not None and row.text is not None:
            texts[place] = row.text
    if columns.id is None and bad and there != rows:
        raise SettingError(
            f"{private[0]}: this has {there:,} documents, and {rows:,} can be read in the original; {bad[0]}"
        )
    if columns.id is None and there != rows:
        raise SettingError(
            f"{private[0]}: this has {there:,} documents, and the original has {rows:,}. If some were left out "
            "or dropped, keep a column that identifies them (keep) and name it (id)."
        )
    return texts


@dataclass(frozen=True, slots=True)
class _Row:
    identity: Any
    text: str | None
    values: tuple[Any, ...]


def _data(url: str) -> str:
    return files.join(url, "data") if files.exists(files.join(url, "manifest.json")) else url


def _rows(inputs: Sequence[str], columns: Columns, unreadable: list[str] | None = None) -> Iterator[_Row]:
    """Yield the rows of all shards; without an id, the number over all shards identifies a row.

    The reasons of bad rows are added to ``unreadable``; without it, the first bad row is an error.
    """
    number = 0
    for shard in find_shards(inputs):
        form = formats.form_of(shard.url)
        form.check(columns)
        with files.open_read(shard.url) as file:
            for batch in form.batches(file, shard.url, columns):
                for bad in batch.bad:
                    sentence = f"{shard.url}, row {bad.number + 1}: {bad.why}"
                    if unreadable is None:
                        raise DataError(sentence)
                    unreadable.append(sentence)
                values = [_values(column) for column in batch.kept]
                identities = batch.ids if batch.ids is not None else range(number, number + len(batch.numbers))
                for at, (identity, text) in enumerate(zip(identities, batch.texts.to_pylist(), strict=True)):
                    yield _Row(identity, text, tuple(column[at] for column in values))
                number += len(batch.numbers)


def _values(column: pa.Array) -> list[Any]:
    if column.type == JSON:
        return [json.loads(value) for value in column.storage.to_pylist()]
    return list(column.to_pylist())


def _reservoir(rows: Iterator[_Row], most: int, rng: np.random.Generator) -> tuple[list[_Row], int, int]:
    """Return an even sample of at most this many rows with text, in their order; the number of these; and of all."""
    reservoir: list[tuple[int, _Row]] = []
    number = every = 0
    for row in rows:
        every += 1
        if row.text is None:
            continue
        if number < most:
            reservoir.append((number, row))
        elif (place := int(rng.integers(number + 1))) < most:
            reservoir[place] = (number, row)
        number += 1
    return [row for _, row in sorted(reservoir, key=lambda numbered: numbered[0])], number, every


def spread(rows: int, most: int) -> list[int]:
    """Return at most this many row numbers, evenly spread, since a corpus can be sorted by its labels."""
    return [at * rows // min(rows, most) for at in range(min(rows, most))]
