"""Questions to a ledger: SQL over its entries, in bounded memory, with exact sums.

The one rule: rows of equal noise are one row, and a unit has spent the sum of its rows. DuckDB adds whole numbers of
1e-9 in 128 bits, and spills what exceeds its memory.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corpusveil.errors import DataError
from corpusveil.ledger.entries import ABOUT, NUMBERS, About, Entry, header_of
from corpusveil.storage import disk

if TYPE_CHECKING:
    import duckdb

MEMORY = "1GB"
_LARGEST = ", ".join(f"max({name}) AS {name}" for name in NUMBERS)


@dataclass(frozen=True, slots=True)
class ReleaseLine:
    """The spending of one release: its documents, their tokens, and their nats in parts of 1e-9.

    The nats are those of the costliest document, or, for one unit, the sum over its documents.
    """

    about: About
    documents: int
    tokens: int
    nats: int


@contextlib.contextmanager
def connected() -> Iterator[tuple[str, duckdb.DuckDBPyConnection]]:
    """Make a local folder in ``TMPDIR``, and open DuckDB, which spills there beyond ``MEMORY``. It asks no network."""
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False, "autoload_known_extensions": False,
    }  # fmt: skip
    folders = tempfile.TemporaryDirectory(prefix="corpusveil-ledger-")
    with folders as folder, duckdb.connect(":memory:", config=config) as connection:
        connection.execute(f"SET temp_directory = {_quoted(os.path.join(folder, 'spill'))}")
        # In a notebook without ipywidgets DuckDB has turned the bar off itself, and refuses to be told so again.
        with contextlib.suppress(duckdb.InvalidInputException):
            connection.execute("SET enable_progress_bar = false")
        connection.execute(f"SET memory_limit = {_quoted(MEMORY)}")
        try:
            yield folder, connection
        except duckdb.OutOfMemoryException:
            raise DataError(
                f"{folder}: a question to the ledger needs more room here, for what exceeds {MEMORY} of memory; make "
                "room, or let TMPDIR name another folder."
            ) from None


def write_entry(
    connection: duckdb.DuckDBPyConnection, notes: Sequence[str], number: int, about: dict[str, Any], path: str
) -> Entry:
    """Write the entry of one unit from the accounts of all documents in local files (``account.schema``)."""
    source, sums = _read(notes), "count(*), coalesce(sum(tokens), 0)"
    documents, tokens = connection.execute(f"SELECT {sums} FROM {source}").fetchall()[0]
    whole = About(**about, documents=documents, tokens=tokens)
    # what DuckDB knows of the source (one file or many, nulls) would reach the schema of the entry, and so its bytes
    connection.execute("SET disabled_optimizers = 'statistics_propagation'")
    connection.execute(
        f"COPY (SELECT unit_{number} AS unit, noise, {_LARGEST} FROM {source} GROUP BY ALL ORDER BY unit, noise) "
        f"TO {_quoted(path)} (FORMAT parquet, COMPRESSION zstd, "
        f"KV_METADATA {{{_quoted(ABOUT.decode())}: {_quoted(header_of(whole))}}})"
    )
    connection.execute("RESET disabled_optimizers")
    os.chmod(path, disk.PRIVATE_MODE)
    return Entry(path, whole)


class Books:
    """The entries of a ledger, and perhaps those that a run plans, in one connection."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, entries: Sequence[Entry], planned: Sequence[Entry] = ()
    ) -> None:
        """Take entries in local files."""
        self._db = connection
        self._entries = entries
        every = [*entries, *planned]
        self._sums = ""
        if every:  # of units of the planned entries alone, if there are any
            only = f"WHERE unit IN (SELECT unit FROM {_read([entry.path for entry in planned])})" if planned else ""
            once = f"SELECT unit, max(nats) AS nats FROM {_read([entry.path for entry in every])} {only}"
            self._sums = f"(SELECT unit, sum(nats) AS nats FROM ({once} GROUP BY unit, noise) GROUP BY unit)"

    def most(self) -> tuple[int, uuid.UUID | None]:
        """Return the most that a unit has spent, in parts of 1e-9, and the unit; 0 and None without any unit."""
        if not self._sums:
            return 0, None
        what = "coalesce(max(nats), 0), arg_max(unit, (nats, unit))"
        nats, unit = self._db.execute(f"SELECT {what} FROM {self._sums}").fetchall()[0]
        return int(nats), unit

    def over(self, cap: int) -> frozenset[uuid.UUID]:
        rows = self._db.execute(f"SELECT unit FROM {self._sums} WHERE nats > {cap}::HUGEINT").fetchall()
        return frozenset(unit for (unit,) in rows)

    def totals(self) -> list[int]:
        """Return what each unit has spent, ascending."""
        return [int(nats) for (nats,) in self._db.execute(f"SELECT nats FROM {self._sums} ORDER BY nats").fetchall()]

    def spent_by(self, unit: uuid.UUID) -> int:
        """Return the spending of one unit, in parts of 1e-9, without planned noise."""
        if not self._entries:
            return 0
        source = _read([entry.path for entry in self._entries])
        once = f"SELECT noise, max(nats) AS nats FROM {source} WHERE unit = '{unit}'::UUID GROUP BY noise"
        return int(self._db.execute(f"SELECT coalesce(sum(nats), 0) FROM ({once})").fetchall()[0][0])

    def lines(self, unit: uuid.UUID | None = None) -> list[ReleaseLine]:
        """Return the spending of each release, in the order of entries; or its spending on one unit.

        A line is a namespace, release and text column; documents are counted by the first unit of the ledger.
        """
        first = min((entry.about.unit for entry in self._entries), default="")
        kinds: dict[tuple[str, ...], tuple[About, list[str]]] = {}
        for entry in self._entries:
            if unit is not None or entry.about.unit == first:
                kinds.setdefault(entry.about.kind, (entry.about, []))[1].append(entry.path)
        where, added = ("", "max") if unit is None else (f" WHERE unit = '{unit}'::UUID", "sum")
        lines = []
        for about, paths in kinds.values():
            once = f"SELECT noise, {_LARGEST} FROM {_read(paths)}{where} GROUP BY noise"
            documents, tokens, nats = self._db.execute(
                f"SELECT count(*), coalesce(sum(tokens), 0), coalesce({added}(nats), 0) FROM ({once})"
            ).fetchall()[0]
            if documents or unit is None:
                lines.append(ReleaseLine(about, documents, int(tokens), int(nats)))
        return lines


def _read(paths: Sequence[str]) -> str:
    """Return a table of local files; DuckDB would take a folder that is called ``nats=0`` for a column (#10431)."""
    return f"read_parquet([{', '.join(map(_quoted, paths))}], hive_partitioning = false)"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
