"""Values as terminals and notebooks show them: one card, as text."""

from __future__ import annotations

import abc
import decimal
import html
import itertools
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 110
"""Characters of a line of text, so that a card fits a terminal and a notebook's cell."""


@dataclass(frozen=True, slots=True)
class Table:
    """Cells in ``rows`` under the names of ``columns``; an empty column is not shown."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def shown(self) -> list[list[str]]:
        places = [place for place in range(len(self.columns)) if any(row[place] for row in self.rows)]
        return [[row[place] for place in places] for row in (self.columns, *self.rows)]

    def lines(self) -> list[str]:
        shown = self.shown()
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        padded = ("  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)) for row in shown)
        return [f"  {row}".rstrip() for row in padded]


@dataclass(frozen=True, slots=True)
class Card:
    """A ``title``, ``fields`` (a name, and a paragraph or several), and ``tables``; those without rows are left out."""

    title: str
    fields: Sequence[tuple[str, str | Sequence[str]]] = ()
    tables: Sequence[Table] = ()

    def text(self) -> str:
        width = max((len(name) + 2 for name, _ in self.fields if name), default=0)
        lines = [self.title]
        for name, value in self.fields:
            paragraphs = [
                line
                for paragraph in ([value] if isinstance(value, str) else value)
                for line in textwrap.wrap(paragraph, WIDTH - width, break_long_words=False, break_on_hyphens=False)
            ]
            heads = itertools.chain([name], itertools.repeat(""))
            lines += [f"  {head:{width}}{line}" for head, line in zip(heads, paragraphs or ["none"], strict=False)]
        lines += [line for table in self.tables if table.rows for line in table.lines()]
        return "\n".join(lines)


class Shown(abc.ABC):
    """A value that prints as its card, without key or text; the title says so if it shows private counts."""

    __slots__ = ()

    @abc.abstractmethod
    def card(self) -> Card:
        """Return the description that ``print`` shows."""

    def __repr__(self) -> str:
        return self.card().text()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def round_up(bound: float, digits: int) -> float:
    """Return a bound with this many digits, rounded up; infinity is unchanged."""
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING)
    return bound if math.isinf(bound) else float(context.create_decimal(repr(float(bound))))


def rounded_up(bound: float | None) -> str:
    """Write a bound with four digits, rounded up, so that "at most" stays true."""
    return "unbounded" if bound is None else f"{round_up(bound, 4):g}"


def figure(spent: float) -> str:
    """Write spending for a reader: three digits, rounded up, without a power of ten."""
    return "inf" if math.isinf(spent) else f"{decimal.Decimal(repr(round_up(spent, 3))).normalize():,f}"


def several(number: int, what: str, many: str = "") -> str:
    """Write a number of things: 1 shard, 2 shards."""
    return f"{number:,} {what if number == 1 else many or what + 's'}"
