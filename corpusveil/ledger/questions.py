"""Questions to a ledger: SQL over its entries, in bounded memory, with exact sums.

The one rule: rows of equal noise are one row (``spent``), and what a unit has spent is the sum of its rows. DuckDB adds
whole numbers of 1e-9 in 128 bits. Entries are sorted by unit, so a range of units is read from a part of each file; a
question goes through the ranges one after the other, and holds the units of one.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from corpusveil.errors import SizeError
from corpusveil.ledger.entries import ABOUT, NUMBERS, READINGS, About, Entry, header_of
from corpusveil.ledger.units import CONTENT
from corpusveil.storage import disk

if TYPE_CHECKING:
    import duckdb

RANGE_ROWS = 1 << 21
"""About the number of rows whose units are looked at together."""
MEMORY, MOST_FILES = "1GB", 1024


@dataclass(frozen=True, slots=True)
class Worst:
    """The unit that has spent most by one ``reading`` (in its metric, "" for all): how much, in parts of 1e-9.

    ``over`` is the number of units above the cap in question.
    """

    reading: str
    metric: str
    value: int
    unit: uuid.UUID
    over: int = 0


@dataclass(frozen=True, slots=True)
class MakeUp:
    """What one unit has spent by one release: its noises, their words and readings summed, and what they come from.

    ``texts`` is the number of different texts of planned noises, 0 for others.
    """

    about: About = field(repr=False)
    planned: bool
    noises: int
    words: int
    sums: dict[str, int]
    texts: int


@contextlib.contextmanager
def connected(folder: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open DuckDB, which spills into a local folder beyond ``MEMORY``. It never asks a network."""
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": os.path.join(folder, "spill"), "preserve_insertion_order": False,
        "autoinstall_known_extensions": False, "autoload_known_extensions": False,
    }  # fmt: skip
    with duckdb.connect(":memory:", config=config) as connection:
        # In a notebook without ipywidgets DuckDB has turned the bar off itself, and refuses to be told so again.
        with contextlib.suppress(duckdb.InvalidInputException):
            connection.execute("SET enable_progress_bar = false")
        connection.execute(f"SET memory_limit = {_quoted(MEMORY)}")
        try:
            yield connection
        except duckdb.OutOfMemoryException:
            raise SizeError(
                f"{folder}: a question to the ledger needs more room here, for what exceeds {MEMORY} of memory; make "
                "room, or let TMPDIR name another folder."
            ) from None


def joined(connection: duckdb.DuckDBPyConnection, notes: Sequence[str]) -> list[str]:
    """Return accounts in at most ``MOST_FILES`` local files, of which DuckDB keeps 11 KB each in memory."""
    together = -(-len(notes) // MOST_FILES)
    if together <= 1:
        return list(notes)
    paths = []
    for first in range(0, len(notes), together):
        paths.append(f"{notes[first]}.joined")
        some = _read(notes[first : first + together])
        connection.execute(f"COPY (FROM {some}) TO {_quoted(paths[-1])} (FORMAT parquet, COMPRESSION zstd)")
        for note in notes[first : first + together]:
            os.remove(note)
    return paths


def write_entry(
    connection: duckdb.DuckDBPyConnection, notes: Sequence[str], number: int, about: dict[str, Any], path: str
) -> Entry:
    """Write the entry of one unit from the accounts of all documents in local files (``account.schema``)."""
    source, sums = _read(notes), "count(*), coalesce(sum(tokens), 0)"
    documents, tokens = connection.execute(f"SELECT {sums} FROM {source}").fetchall()[0]
    whole = About(**about, documents=documents, tokens=tokens)
    largest = ", ".join(f"max({name}) AS {name}" for name in NUMBERS)
    # what DuckDB knows of the source (one file or many, nulls) would reach the schema of the entry, and so its bytes
    connection.execute("SET disabled_optimizers = 'statistics_propagation'")
    connection.execute(
        f"COPY (SELECT unit_{number} AS unit, noise, {largest} FROM {source} GROUP BY ALL ORDER BY unit, noise) "
        f"TO {_quoted(path)} (FORMAT parquet, COMPRESSION zstd, "
        f"KV_METADATA {{{_quoted(ABOUT.decode())}: {_quoted(header_of(whole))}}})"
    )
    connection.execute("RESET disabled_optimizers")
    os.chmod(path, disk.PRIVATE_MODE)
    rows = connection.execute(f"SELECT count(*) FROM {_read([path])}").fetchall()[0][0]
    return Entry(path, whole, rows)


class Books:
    """The entries of a ledger, and perhaps those that a run plans, in one connection."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        entries: Sequence[Entry],
        planned: Sequence[Entry] = (),
        notes: Sequence[str] = (),
    ) -> None:
        """Take local entries; ``notes`` are the accounts of the planned documents, which tell copies of a text."""
        self._db = connection
        self._notes = notes
        self.kinds: list[tuple[About, bool]] = []
        paths: dict[tuple[Any, ...], list[str]] = {}
        for group, flag in ((entries, False), (planned, True)):
            for entry in group:
                kind = (*entry.about.kind, flag)
                if kind not in paths:
                    self.kinds.append((entry.about, flag))
                paths.setdefault(kind, []).append(entry.path)
        self._sources = list(paths.values())
        self._rows = sum(entry.rows for entry in (*entries, *planned))
        self._metrics = sorted({about.metric for about, _ in self.kinds})

    def _spent(self, where: str, *, of_planned: bool = False) -> str:
        """Return the query of all noise of the units ``where``: equal noise is one row, and planned if it is planned.

        With ``of_planned``, only of units that have planned noise.
        """
        planned = [kind for kind, (_, flag) in enumerate(self.kinds) if flag]
        units = " UNION ALL ".join(f"SELECT unit FROM {_read(self._sources[kind])} WHERE {where}" for kind in planned)
        of_release: dict[str, list[int]] = {}
        for kind, (about, _) in enumerate(self.kinds):
            of_release.setdefault(about.release, []).append(kind)
        largest = ", ".join(f"max({name}) AS {name}" for name in NUMBERS)
        parts = []
        for kinds in of_release.values():
            about = self.kinds[kinds[0]][0]
            same = f"{self._metrics.index(about.metric)} AS metric"
            rows = " UNION ALL ".join(
                f"SELECT {kind} AS kind, {same}, * FROM {_read(self._sources[kind])} WHERE {where}"
                + (f" AND unit IN ({units})" if of_planned and kind not in planned else "")
                for kind in kinds
            )
            # an entry has each noise of a unit once, and noise of two releases is never equal
            once = sum(len(self._sources[kind]) for kind in kinds) == 1
            merged = f"SELECT max(kind) AS kind, {same}, unit, noise, {largest} FROM ({rows}) GROUP BY unit, noise"
            parts.append(rows if once else merged)
        return f"({' UNION ALL '.join(parts)})"

    def _ranges(self, *, of_planned: bool) -> Iterator[None]:
        """Go through ranges of units; for each, fill the tables ``sums`` (by unit and metric) and ``units``."""
        count = -(-self._rows // RANGE_ROWS)
        sums = ", ".join(f"sum({name}) AS {name}" for name in READINGS)
        for number in range(count):
            first, after = ((number + more << 128) // count for more in (0, 1))
            where = f"unit BETWEEN '{uuid.UUID(int=first)}'::UUID AND '{uuid.UUID(int=after - 1)}'::UUID"
            self._db.execute(
                f"CREATE OR REPLACE TEMP TABLE sums AS SELECT unit, metric, {sums} "
                f"FROM {self._spent(where, of_planned=of_planned)} GROUP BY unit, metric"
            )
            self._db.execute(
                "CREATE OR REPLACE TEMP TABLE units AS SELECT unit, sum(ldp) AS ldp FROM sums GROUP BY unit"
            )
            yield

    def worst(self, caps: dict[str, int], *, of_planned: bool = False) -> list[Worst]:
        """Return the units that have spent most, by each reading of ``caps`` (in parts of 1e-9) and metric."""
        most: dict[tuple[str, str], Worst] = {}
        for _ in self._ranges(of_planned=of_planned):
            for reading, cap in caps.items():
                source = "(SELECT unit, -1 AS metric, ldp FROM units)" if reading == "ldp" else "sums"
                rows = self._db.execute(
                    f"SELECT metric, max({reading}), arg_max(unit, ({reading}, unit)), "
                    f"count(*) FILTER ({reading} > {cap}::HUGEINT) FROM {source} GROUP BY metric"
                ).fetchall()
                for number, value, unit, over in rows:
                    metric = "" if number < 0 else self._metrics[number]
                    candidate = Worst(reading, metric, int(value), unit, over)
                    before = most.get((reading, metric), candidate)
                    both = over if before is candidate else over + before.over
                    larger = max(before, candidate, key=lambda worst: (worst.value, worst.unit))
                    most[reading, metric] = Worst(reading, metric, larger.value, larger.unit, both)
        return [most[place] for place in sorted(most, key=lambda at: (READINGS.index(at[0]), at[1]))]

    def over(self, caps: dict[str, int]) -> frozenset[uuid.UUID]:
        """Return the units with planned noise that have spent more than a cap."""
        units: set[uuid.UUID] = set()
        for _ in self._ranges(of_planned=True):
            for reading, cap in caps.items():
                source = "units" if reading == "ldp" else "sums"
                over = self._db.execute(f"SELECT DISTINCT unit FROM {source} WHERE {reading} > {cap}::HUGEINT")
                units.update(unit for (unit,) in over.fetchall())
        return frozenset(units)

    def totals(self) -> list[int]:
        """Return the total of each unit with planned noise in its costliest metric, in parts of 1e-9, ascending."""
        totals: list[int] = []
        for _ in self._ranges(of_planned=True):
            totals += (
                int(total) for (total,) in self._db.execute("SELECT max(total) FROM sums GROUP BY unit").fetchall()
            )
        return sorted(totals)

    def redrawn(self) -> tuple[str, int, int]:
        """Return a unit's name, how many planned noises are new though the release has drawn for their unit, of all."""
        of = {(*about.kind, flag): source for (about, flag), source in zip(self.kinds, self._sources, strict=True)}
        unit, planned, before = "", [], []
        for about, flag in self.kinds:
            if flag and (not unit or about.unit == CONTENT):  # which tells best whether documents are the same
                unit, planned, before = about.unit, of[*about.kind, True], of.get((*about.kind, False), [])
        if not before:
            return unit, 0, 0
        pair, there, drawn = "SELECT unit, noise FROM", _read(planned), _read(before)
        again = f"({pair} {there} EXCEPT {pair} {drawn}) WHERE unit IN (SELECT unit FROM {drawn})"
        new, every = self._db.execute(
            f"SELECT (SELECT count(*) FROM {again}), (SELECT count(*) FROM {there})"
        ).fetchall()[0]
        return unit, new, every

    def make_up(self, unit: uuid.UUID) -> list[MakeUp]:
        """Return what a unit has spent, release by release, planned noise apart."""
        if not self._sources:
            return []
        where = f"unit = '{unit}'::UUID"
        rows = self._db.execute(
            f"SELECT kind, tokens, total, largest, ldp, count(*) FROM {self._spent(where)} GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        make_ups = []
        for kind in sorted({row[0] for row in rows}):
            about, planned = self.kinds[kind]
            mine = [row for row in rows if row[0] == kind]
            sums = {name: sum(row[2 + at] * row[5] for row in mine) for at, name in enumerate(READINGS)}
            texts = 0
            if planned and self._notes:
                number = [other.unit for other, flag in self.kinds if flag].index(about.unit)
                texts = self._db.execute(
                    f"SELECT count(DISTINCT text) FROM {_read(self._notes)} WHERE unit_{number} = '{unit}'::UUID"
                ).fetchall()[0][0]
            noises, words = sum(row[5] for row in mine), sum(row[1] * row[5] for row in mine)
            make_ups.append(MakeUp(about, planned, noises, words, sums, texts))
        return make_ups

    def lines(self) -> list[tuple[About, int, int, tuple[int, ...]]]:
        """Return the number, tokens and largest readings of the documents of each line of a listing.

        A line is a namespace, release and text column; its documents are counted by the first unit of the ledger.
        """
        first = min((about.unit for about, _ in self.kinds), default="")
        listing = []
        for (about, _), sources in zip(self.kinds, self._sources, strict=True):
            if about.unit == first:
                largest = ", ".join(f"max({name}) AS {name}" for name in NUMBERS)
                sums = ", ".join(f"coalesce(max({name}), 0)" for name in READINGS)
                documents, tokens, *most = self._db.execute(
                    f"SELECT count(*), coalesce(sum(tokens), 0), {sums} FROM "
                    f"(SELECT noise, {largest} FROM {_read(sources)} GROUP BY noise)"
                ).fetchall()[0]
                listing.append((about, documents, int(tokens), tuple(most)))
        return listing


def _read(paths: Sequence[str]) -> str:
    return f"read_parquet([{', '.join(map(_quoted, paths))}])"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
