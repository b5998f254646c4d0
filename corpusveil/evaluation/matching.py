"""An original corpus beside its release: documents that belong together, read as a stream, of many a sample."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from corpusveil.errors import UserError
from corpusveil.storage import files, formats
from corpusveil.storage.inputs import find_shards
from corpusveil.storage.rows import JSON, Columns

MOST = 10_000
"""Documents that are looked at, unless more are asked for."""


@dataclass(frozen=True, slots=True)
class Matched:
    """N documents and what became of them, in the order of the original.

    ``originals`` and ``privates`` are texts [N], ``columns`` values [N] of further columns of the original by name,
    ``documents`` how many there are in all.
    """

    originals: list[str]
    privates: list[str]
    documents: int
    columns: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def sampled(self) -> bool:
        """Whether these are fewer than all."""
        return len(self.originals) < self.documents


def match(
    original: Sequence[str],
    private: Sequence[str],
    *,
    text: str = "text",
    private_text: str | None = None,
    id: str | None = None,
    columns: Sequence[str] = (),
    most: int = MOST,
    seed: int = 0,
) -> Matched:
    """Match the documents of an original with those of its release: by the column ``id``, else by position.

    Of more than ``most`` documents an even sample is taken (reservoir sampling, Vitter 1985, algorithm R, by ``seed``);
    nothing else is held. A folder that is a release is read at its ``data``. Raises UserError when the two do not fit.
    """
    kept = tuple(dict.fromkeys(name for name in columns if name != text))
    chosen, documents = _reservoir(_rows(original, Columns(text, id, kept)), most, np.random.default_rng(seed))
    if not documents:
        raise UserError(f"{original[0]}: there is no document here.")
    wanted = {row.identity: place for place, row in enumerate(chosen)}
    found: dict[int, str] = {}
    there = 0
    for row in _rows([_data(one) for one in private], Columns(private_text or text, id)):
        there += 1
        place = wanted.get(row.identity)
        if place is not None:
            found[place] = row.text
    if id is None and there != documents:
        raise UserError(
            f"{private[0]}: {there:,} documents, and {documents:,} in the original; where some were left out or set "
            "aside, keep a column that tells them apart (privatize --keep) and name it with --id."
        )
    if not found:
        raise UserError(f"{private[0]}: no document has the {id} of one in the original.")
    places = sorted(found)
    return Matched(
        [chosen[place].text for place in places],
        [found[place] for place in places],
        documents,
        {name: [chosen[place].values[number] for place in places] for number, name in enumerate(kept)},
    )


@dataclass(frozen=True, slots=True)
class _Row:
    identity: Any
    text: str
    values: tuple[Any, ...]


def _data(url: str) -> str:
    return files.join(url, "data") if files.exists(files.join(url, "manifest.json")) else url


def _rows(inputs: Sequence[str], columns: Columns) -> Iterator[_Row]:
    """Yield the rows of all shards; without an id they are known by their number over all of them."""
    number = 0
    for shard in find_shards(inputs):
        form = formats.find(formats.form_of(shard.url))
        with files.open_read(shard.url) as file:
            for batch in form.batches(file, shard.url, columns):
                for bad in batch.bad:
                    raise UserError(f"{shard.url}, row {bad.number + 1}: {bad.why}")
                values = [_values(column) for column in batch.kept]
                identities = batch.ids if batch.ids is not None else range(number, number + len(batch.numbers))
                for at, (identity, text) in enumerate(zip(identities, batch.texts.to_pylist(), strict=True)):
                    yield _Row(identity, text, tuple(column[at] for column in values))
                number += len(batch.numbers)


def _values(column: pa.Array) -> list[Any]:
    if column.type == JSON:
        return [json.loads(value) for value in column.storage.to_pylist()]
    return list(column.to_pylist())


def _reservoir(rows: Iterator[_Row], most: int, rng: np.random.Generator) -> tuple[list[_Row], int]:
    """Return an even sample of at most so many rows, in their order, and how many there were."""
    kept: list[tuple[int, _Row]] = []
    number = 0
    for row in rows:
        if number < most:
            kept.append((number, row))
        elif (place := int(rng.integers(number + 1))) < most:
            kept[place] = (number, row)
        number += 1
    return [row for _, row in sorted(kept, key=lambda one: one[0])], number
