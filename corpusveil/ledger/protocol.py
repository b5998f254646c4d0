"""How runs enter their spending, on any store that lists, reads and removes files, and creates one only once.

A run writes its entries under names that contain the run, looks at all entries, and withdraws its own if a cap refuses
them. If two runs do not fit together, the later to look sees the entries of both, since an admitted run never withdraws
its entries. So no cap is exceeded; runs that start at the same moment may all be refused. A run relies on another run's
entry only if it was *kept* (``RUN.kept`` next to the entries); nobody removes it after that.

The store is whatever has four operations, so a test goes through all their interleavings and crashes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from typing import Any, Protocol

from corpusveil.errors import CapError, UserError, WorkError

_ENTRY = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{16})\.parquet")
_MARK = re.compile(r"([0-9a-f]{16})\.kept")

Refuse = Callable[[Sequence[Any]], None]
"""Raises UserError if these entries leave no room for the planned spending."""


class EntryFiles(Protocol):
    """The operations of a run on a ledger's files."""

    def listed(self) -> Collection[str]: ...
    def read(self, name: str) -> Any:
        """Return an entry, None if it was withdrawn."""

    def create(self, name: str, data: Any = None) -> object: ...
    def remove(self, name: str) -> object: ...


def enter(store: EntryFiles, planned: Mapping[str, Any], run: str, refuse: Refuse | None) -> None:
    """Enter the spending of a run: entries by their digests.

    ``refuse`` is None for a run without caps, which never withdraws an entry. It is called again only if the second
    look finds an entry of another run that the first did not, since fewer entries mean less spending. Raises CapError
    if a cap refuses the run, and WorkError if it does so because of a run that entered meanwhile; then the entries
    of this run are removed.
    """
    seen: dict[str, Any] = {}
    if refuse is not None:
        refuse(_look(store, seen, ()))
    # An entry that is not kept may still be withdrawn by its run, so this run writes its own.
    there = {name[:32] for name in kept_of(store.listed())}
    mine = {f"{digest}.{run}.parquet": entry for digest, entry in planned.items() if digest not in there}
    for name, entry in mine.items():
        store.create(name, entry)
    if refuse is not None:
        before = len(seen)
        # The second look comes after the writing: of two runs that write before either looks, one sees both.
        try:
            entries = _look(store, seen, mine)
            if len(seen) > before:
                refuse(entries)
        except UserError as error:  # if the store itself fails, what it has counts as spent
            for name in mine:
                store.remove(name)
            if isinstance(error, CapError):
                raise WorkError(
                    "Another run entered its spending in the ledger at the same moment; nothing was drawn. Run the "
                    "same command again."
                ) from None
            raise
    if mine:
        store.create(f"{run}.kept")


def entries_of(names: Collection[str]) -> list[str]:
    return [name for name in names if _ENTRY.fullmatch(name)]


def kept_of(names: Collection[str]) -> list[str]:
    """Return the names of the entries that their runs keep."""
    runs = _marked(names)
    return [name for name in entries_of(names) if name.split(".")[1] in runs]


def lost_of(names: Collection[str]) -> list[str]:
    """Return the runs marked as kept whose entries are all missing."""
    return sorted(_marked(names) - {name.split(".")[1] for name in entries_of(names)})


def _marked(names: Collection[str]) -> set[str]:
    return {mark[1] for name in names if (mark := _MARK.fullmatch(name))}


def _look(store: EntryFiles, seen: dict[str, Any], mine: Container[str]) -> list[Any]:
    """Return all entries except ``mine``, and read those not ``seen``; entries withdrawn meanwhile are left out."""
    names = [name for name in entries_of(store.listed()) if name not in mine]
    for name in names:
        # A name is a digest of its content, so what was read once is not read again.
        if name not in seen and (entry := store.read(name)) is not None:
            seen[name] = entry
    return [seen[name] for name in names if name in seen]
