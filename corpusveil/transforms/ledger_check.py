"""A check of a ledger: its entries against their names, and against the records of releases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from corpusveil.errors import NotMadeError, UserError, VersionError
from corpusveil.storage.ledger import Ledger, digest_of
from corpusveil.storage.records import RUN_VERSION, Records, Run, Shard


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between a ledger and records; ``too_low`` if more may have been spent than the ledger says."""

    sentence: str
    too_low: bool


def differences(ledger: Ledger, records: Sequence[Records]) -> Iterator[Difference]:
    """Yield entries that do not match their names, and shards not covered by the entries that their records name.

    Raises UserError for records that belong to no run, or to a run of another version.
    """
    secret = ledger.secret
    held: dict[str, tuple[int, int]] = {}
    for name in ledger.names():
        try:
            entry = ledger.held(name)
            digest, _ = digest_of(entry.address, secret)
            tokens = sum(int(pc.sum(rows["tokens"]).as_py() or 0) for rows in entry.tables())
        except UserError as error:
            yield Difference(str(error), too_low=True)
            continue
        if not name.startswith(f"{digest}."):
            yield Difference(f"Entry {name} was changed, or belongs to another ledger.", too_low=True)
        held[digest] = entry.rows, tokens
    for folder in records:
        run = folder.read("run.json", Run)
        if run is None:
            raise NotMadeError(
                f"{folder.url}: there are no records of a run here (no run.json); name the private records of a "
                "release."
            )
        if run.version != RUN_VERSION:
            raise VersionError(
                f"{folder.url}: these records were written by another version of corpusveil; verify them with "
                "that version."
            )
        for name in folder.names("shards"):
            record = folder.read(f"shards/{name}", Shard)
            if record is not None and ".piece-" not in name:
                yield from _uncovered(f"{folder.url}, shard {record.input.path}", record, held)


def _uncovered(where: str, record: Shard, held: Mapping[str, tuple[int, int]]) -> Iterator[Difference]:
    """Yield the parts of a shard's record that the entries do not cover."""
    names = record.ledger
    if names is None:
        yield Difference(f"{where}: this shard was privatized without a ledger.", too_low=True)
        return
    missing = [name for name in names if name not in held]
    for name in missing:
        yield Difference(f"{where}: the entry {name} of the ledger, which covers this shard, is missing.", too_low=True)
    if missing:
        return
    found = tuple(sum(held[name][place] for name in names) for place in (0, 1))
    expected = record.counts.documents, record.counts.privatized + record.counts.fillers
    if found != expected:
        yield Difference(
            f"{where}: {expected[0]:,} documents and {expected[1]:,} tokens were privatized; the ledger has "
            f"{found[0]:,} and {found[1]:,}.",
            too_low=found[0] < expected[0] or found[1] < expected[1],
        )
