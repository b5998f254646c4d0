"""A ledger for callers: its address and caps, the spending of documents, and a check of its entries."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from corpusveil.budget.composition import check_delta
from corpusveil.display import Card, Shown, Table, figure
from corpusveil.errors import BadValueError, of_other_type
from corpusveil.storage import files
from corpusveil.storage.engine import Engine
from corpusveil.storage.inputs import Address, addresses
from corpusveil.storage.ledger import READINGS, AnEntry
from corpusveil.storage.ledger import Ledger as Entries
from corpusveil.storage.records import Records
from corpusveil.transforms.ledger_check import Difference, differences
from corpusveil.transforms.ledger_passes import Where, ask
from corpusveil.transforms.ledger_summary import Names, of_document, summary, tags_of
from corpusveil.transforms.spending import Caps, Spending
from corpusveil.transforms.spent_documents import Question

S = TypeVar("S", bound="LedgerSummary")

READING_NAMES = {"total": "sum of epsilons", "largest": "epsilon of its costliest token", "ldp": "nats of plain LDP"}


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger at ``url`` (any fsspec URL), confidential like the input; made by the first release that uses it.

    ``cap`` is the most that a document may spend, summed over tokens and releases, within one metric; another
    mechanism, parameter or space has another metric. ``cap_token`` is the same for its costliest token. ``cap_ldp``
    holds over all metrics, in nats of plain LDP. With ``cap_delta`` the ``cap`` is an epsilon at this delta, composed
    over tokens, releases and metrics, between documents whose words differ by a distance of at most 1.

    A release that would exceed a cap for any document is refused before anything is drawn. Raises UserError for a cap
    that is not above 0.
    """

    url: str
    cap: float | None = field(default=None, kw_only=True)
    cap_token: float | None = field(default=None, kw_only=True)
    cap_ldp: float | None = field(default=None, kw_only=True)
    cap_delta: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.url, (str, os.PathLike)) or not str(self.url):
            raise BadValueError("url: a ledger is a folder; give its path or URL, as in cv.Ledger('ledger').")
        object.__setattr__(self, "url", files.as_text(self.url))
        self.spending()

    def spending(self) -> Spending:
        """Return the ledger and its caps in the form that a release uses."""
        return Spending(self.url, Caps(self.cap, self.cap_token, self.cap_ldp, self.cap_delta))

    def spent(self, *, delta: float | None = None, engine: Engine | None = None) -> LedgerSummary:
        """Return the spending, release by release.

        With ``delta``, also return the most that any document has spent in (epsilon, delta), composed over everything.
        Many documents are processed in parts in a temporary folder, by this process or by ``cv.Local(workers=2)``.
        Raises UserError if there is no ledger, or if an entry is damaged.
        """
        ledger = Entries.existing(self.url)
        return _summed(LedgerSummary, ledger, list(ledger.entries()), delta, engine)

    def spent_on(self, document: str, *, delta: float | None = None) -> DocumentHistory:
        """Return the spending of one ``document``, given by text, id or PATH:ROW, whichever identified it.

        An edited or moved document is recognized by the id, or the text, that it kept. The ledger holds keyed
        fingerprints, so the question needs the ledger's secret and the document; anyone with both could check a guess.
        Raises UserError as ``spent`` does.
        """
        ledger = Entries.existing(self.url)
        entries = list(ledger.entries())
        corpora = (str(entry.about["corpus"]) for entry in entries)
        found = of_document(entries, *tags_of(ledger.secret, document, corpora))
        return _summed(DocumentHistory, ledger, found, delta)

    def verify(self, records: Address | Sequence[Address] = ()) -> LedgerCheck:
        """Check that entries match their names, and that they cover the private ``records`` of releases.

        Raises UserError if there is no ledger, or if records belong to no run.
        """
        entries = Entries.existing(self.url)
        folders = [Records(folder) for folder in addresses(records)]
        return LedgerCheck(self.url, len(entries.names()), len(folders), tuple(differences(entries, folders)))


@dataclass(frozen=True, slots=True, repr=False)
class LedgerSummary(Shown):
    """The content of a ledger: ``releases``, one line per corpus, release and text column, with the day of entry.

    ``worst`` is the most that any document has spent, by reading (``total``, ``largest``, ``ldp``) and metric.
    ``names`` are the names of these metrics. ``composed`` is the most in (epsilon, ``delta``), over all metrics,
    between documents whose words differ by a distance of at most 1; None if no delta was given. Numbers are exact here,
    and rounded up to three digits where they are shown.
    """

    url: str
    releases: tuple[dict[str, Any], ...]
    worst: dict[tuple[str, str], float]
    names: dict[str, str]
    delta: float | None = None
    composed: float | None = None
    title: ClassVar[str] = "Ledger {url} (confidential)"
    of_what: ClassVar[str] = "the worst document"

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name, for JSON."""
        called = {"": "all metrics", **self.names}
        most = [
            {"reading": reading, "metric": metric or None, "called": called[metric], "spent": spent}
            for (reading, metric), spent in self.worst.items()
        ]
        told = {} if self.delta is None else {"delta": self.delta, "epsilon": self.composed}
        return {"ledger": self.url, "releases": list(self.releases), "worst": most, **told}

    def card(self) -> Card:
        """Return a row a release, and the most that a document has spent."""
        columns = ("date", "corpus", "release", "column", "metric", "documents", "tokens", *READING_NAMES)
        shown = {"total": "epsilons of a document", "largest": "of a token", "ldp": "nats of plain LDP"}
        rows = [
            [_cell(self.names[line["metric"]] if name == "metric" else line[name]) for name in columns]
            for line in self.releases
        ]
        most = []
        if self.composed is not None:
            most.append(
                f"{figure(self.composed)} at delta = {self.delta:g} over all releases, compared with a document in "
                "which each known word differs by a distance of at most 1"
            )
        most += [
            f"{figure(spent)} {READING_NAMES[reading]} {f'in {self.names[metric]}' if metric else 'over all metrics'}"
            for (reading, metric), spent in self.worst.items()
        ]
        heads = [shown.get(name, name) for name in columns]
        return Card(self.title.format(url=self.url), [(self.of_what, most or ["nothing"])], [Table(heads, rows)])


class DocumentHistory(LedgerSummary):
    """The spending of one document, with the fields of ``LedgerSummary``."""

    __slots__ = ()
    title = "One document in ledger {url} (confidential)"
    of_what = "it has spent"


def _summed(
    kind: type[S], ledger: Entries, entries: Sequence[AnEntry], delta: float | None, engine: Engine | None = None
) -> S:
    delta = None if delta is None else check_delta(delta)
    where = Where() if engine is None else Where(engine)
    answer = ask(Question(READINGS, delta, lines=True), entries, where=where)
    most: dict[tuple[str, str], float] = {}
    for one in answer.in_order():
        place = one.reading, one.metric
        most[place] = max(most.get(place, 0.0), one.value)
    lines = summary(entries, answer)
    for line in lines:
        line["date"] = ledger.written_on(line.pop("entry"))
    composed = None if delta is None else 0.0 if answer.composed is None else answer.composed.epsilon
    return kind(ledger.url, tuple(lines), dict(sorted(most.items())), Names(entries).by_metric, delta, composed)


def _cell(value: Any) -> str:
    return figure(value) if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


@dataclass(frozen=True, slots=True, repr=False)
class LedgerCheck(Shown):
    """The result of a ledger check: ``differences`` between its ``entries`` and the number of ``records`` compared."""

    url: str
    entries: int
    records: int
    differences: tuple[Difference, ...]

    @property
    def too_low(self) -> int:
        """The number of differences by which more may have been spent than the ledger says."""
        return sum(one.too_low for one in self.differences)

    def card(self) -> Card:
        """Return the differences, or that there is none."""
        told = [("more was spent" if one.too_low else "less was spent", one.sentence) for one in self.differences]
        return Card(self.verdict, told)

    @property
    def verdict(self) -> str:
        """The result of the check, in one line."""
        if self.differences:
            return (
                f"{self.url}: {len(self.differences)} differences; in {self.too_low} of them, more was spent than the "
                "ledger says."
            )
        return f"{self.url}: all {self.entries:,} entries are undamaged" + (
            ", and the records agree." if self.records else "."
        )


def require_ledger(value: Ledger | None) -> Spending | None:
    """Return the form of a ledger that a release uses. Raises UserError for a value that is not a ledger."""
    if value is None:
        return None
    if not isinstance(value, Ledger):
        raise of_other_type("ledger", value, "cv.Ledger(URL, cap=...)")
    return value.spending()
