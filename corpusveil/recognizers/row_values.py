"""The values of a row's own columns, such as its name, as spans of that row's text."""

from __future__ import annotations

import datetime as dt
import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corpusveil.recognizers.terms import ListedTerms
from corpusveil.storage.rows import JSON, Batch, Columns
from corpusveil.storage.values import as_strings

_PART = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True, slots=True)
class RowValues:
    """Finds in each of D texts the values of its row, [D], whole, and their parts of three letters or more."""

    rows: Sequence[Sequence[str]] = field(repr=False)

    def __call__(self, texts: list[str]) -> list[list[tuple[int, int, str]]]:
        terms = [terms_of(tuple(values)) for values in self.rows]
        return [[] if own is None else own([text])[0] for own, text in zip(terms, texts, strict=True)]


@functools.lru_cache(maxsize=4096)
def terms_of(values: tuple[str, ...]) -> ListedTerms | None:
    """Return what finds some values and their parts; None if there is nothing to find."""
    whole = [" ".join(value.split()) for value in values]
    parts = [part for value in whole for part in (*value.split(), *_PART.findall(value)) if _PART.search(part)]
    terms = dict.fromkeys((*whole, *(part.strip(',;()"') for part in parts)))
    wanted = tuple(("name", term) for term in terms if sum(map(str.isalnum, term)) > 1)
    return ListedTerms(wanted) if wanted else None


def values_of_rows(columns: Sequence[Any]) -> list[tuple[str, ...]]:
    """Return the texts of the values that each of N rows has in some columns: of Arrow, or lists of Python's values."""
    texts = [[tuple(_texts(value)) for value in _python(column)] for column in columns]
    return [tuple(text for own in row for text in own) for row in zip(*texts, strict=True)]


def _python(column: Any) -> Iterable[Any]:
    """Return the values of a column as Python's."""
    kind = getattr(column, "type", None)
    if kind is None:
        return list(column)
    if kind != JSON:
        try:
            return list(column.to_pylist())
        except (OverflowError, ValueError):  # of times that Python lacks
            return [text for chunk in getattr(column, "chunks", [column]) for text in as_strings(chunk).to_pylist()]
    texts = [text for chunk in getattr(column, "chunks", [column]) for text in chunk.storage.to_pylist()]
    return [None if text is None else json.loads(text) for text in texts]


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts within a value; a whole number has no decimals, whatever type a file gave it."""
    match value:
        case str():
            yield value
        case Mapping():
            for part in value.values():
                yield from _texts(part)
        case list() | tuple() | np.ndarray():
            for part in value:
                yield from _texts(part)
        case dt.datetime() if value == value and value.time() == dt.time():  # noqa: PLR0124 - NaT
            yield str(value.date())  # which is how a text has a date, whatever type a column gives it
        case None | bool():
            return
        case float() if not value.is_integer():
            yield from [] if value != value else [repr(value)]  # noqa: PLR0124 - NaN
        case float():
            yield str(int(value))
        case _:
            yield str(value)


def known_in(batch: Batch, columns: Columns) -> list[tuple[str, ...]] | None:
    """Return for each text of a batch, in which ``columns`` are kept, the values that are spans of it; None if none."""
    if not columns.spans_from:
        return None
    return values_of_rows([batch.kept[columns.keep.index(name)] for name in columns.spans_from])
