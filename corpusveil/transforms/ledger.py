"""A ledger as callers hold it: an address and caps, what documents have spent, and whether its entries are whole."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from corpusveil.budget.budget import written
from corpusveil.display import Card, Shown, Table
from corpusveil.errors import BadTypeError, BadValueError
from corpusveil.storage import files
from corpusveil.storage.inputs import Address, addresses
from corpusveil.storage.ledger import Ledger as Entries
from corpusveil.storage.records import Records
from corpusveil.transforms.spending import (
    READINGS,
    Caps,
    Difference,
    Spending,
    differences,
    summary,
    worst,
)

READING_NAMES = {"total": "sum of epsilons", "largest": "largest epsilon of a token", "ldp": "plain LDP, nats"}


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger at ``url`` (any fsspec URL), confidential like the input; made by the first release that uses it.

    ``cap`` is the most that a document may spend, summed over tokens and releases, within one metric: another
    mechanism, parameter or space is another metric. ``cap_token`` is the same for its dearest token. ``cap_ldp`` holds
    over all metrics, in nats of plain LDP. A release that would take a document further is refused before anything is
    drawn. Raises UserError for a cap that is not above 0.
    """

    url: str
    cap: float | None = field(default=None, kw_only=True)
    cap_token: float | None = field(default=None, kw_only=True)
    cap_ldp: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.url, (str, os.PathLike)) or not str(self.url):
            raise BadValueError("url: a ledger is a folder at a path or URL; give that, as in cv.Ledger('ledger').")
        object.__setattr__(self, "url", files.as_text(self.url))
        self.spending()

    def spending(self) -> Spending:
        """Return the ledger and its caps as a release takes them."""
        return Spending(self.url, Caps(self.cap, self.cap_token, self.cap_ldp))

    def spent(self) -> LedgerSummary:
        """Return what was spent, release by release. Raises UserError when there is no ledger, or a damaged entry."""
        entries = Entries.existing(self.url)
        most: dict[tuple[str, str], float] = {}
        for one in worst(entries.entries(), READINGS):
            place = one.reading, one.metric
            most[place] = max(most.get(place, 0.0), one.value)
        return LedgerSummary(self.url, tuple(summary(entries.entries())), dict(sorted(most.items())))

    def verify(self, records: Address | Sequence[Address] = ()) -> LedgerCheck:
        """Check every entry against its name, and that they cover what the private ``records`` of releases say.

        Raises UserError when there is no ledger, and for records of no run.
        """
        entries = Entries.existing(self.url)
        folders = [Records(folder) for folder in addresses(records)]
        return LedgerCheck(self.url, len(entries.names()), len(folders), tuple(differences(entries, folders)))


@dataclass(frozen=True, slots=True, repr=False)
class LedgerSummary(Shown):
    """What a ledger holds: ``releases``, one line a corpus, release and text column.

    ``worst`` is the most that any document has spent, by reading (``total``, ``largest``, ``ldp``) and metric.
    """

    url: str
    releases: tuple[dict[str, Any], ...]
    worst: dict[tuple[str, str], float]

    def card(self) -> Card:
        """Return a row a release, and what the worst document has spent."""
        columns = ("corpus", "release", "column", "mechanism", "metric", "documents", "tokens", *READINGS)
        rows = [
            [f"{line[name]:,}" if isinstance(line[name], int) else str(line[name]) for name in columns]
            for line in self.releases
        ]
        most = [
            f"{written(value)} {READING_NAMES[reading]}{f' in metric {metric}' if metric else ' over all metrics'}"
            for (reading, metric), value in self.worst.items()
        ]
        return Card(
            f"Ledger {self.url} (confidential)", [("the worst document", most or ["nothing"])], [Table(columns, rows)]
        )


@dataclass(frozen=True, slots=True, repr=False)
class LedgerCheck(Shown):
    """What a check of a ledger found: ``differences`` between its ``entries`` and so many ``records``."""

    url: str
    entries: int
    records: int
    differences: tuple[Difference, ...]

    @property
    def too_low(self) -> int:
        """How many differences mean that more may have been spent than the ledger says."""
        return sum(one.too_low for one in self.differences)

    def card(self) -> Card:
        """Return the differences, or that there is none."""
        told = [("more was spent" if one.too_low else "less was spent", one.sentence) for one in self.differences]
        return Card(self.verdict, told)

    @property
    def verdict(self) -> str:
        """What the check found, in a line."""
        if self.differences:
            return (
                f"{self.url}: differences: {len(self.differences)}, of which {self.too_low} mean that more was spent."
            )
        return f"{self.url}: {self.entries:,} entries are whole" + (", the records agree." if self.records else ".")


def require_ledger(value: Ledger | None) -> Spending | None:
    """Return what a release takes of a ledger. Raises UserError for a value that is none."""
    if value is None:
        return None
    if not isinstance(value, Ledger):
        raise BadTypeError(f"ledger: this is of type {type(value).__name__}; give cv.Ledger(URL, cap=...).")
    return value.spending()
