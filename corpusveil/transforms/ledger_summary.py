"""A ledger in words: releases by date and corpus, metrics by mechanism and space, one document's history."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.sampling.draws import keyed_tags
from corpusveil.storage.ledger import READINGS, ROWS, AnEntry, Entry
from corpusveil.transforms.kernel import _part
from corpusveil.transforms.ledger_passes import ask, line_of
from corpusveil.transforms.spent_documents import Answer, Line, Question


@dataclass(frozen=True, slots=True)
class Names:
    """Readable names of the metrics of entries: a mechanism and its space, and a number if two have the same name."""

    by_metric: dict[str, str]

    def __init__(self, entries: Iterable[AnEntry]) -> None:
        found: dict[str, str] = {}
        for entry in entries:
            about = entry.about
            found[str(about["metric"])] = f"{about['mechanism']} on space {str(about['space'])[:8]}"
        alike = Counter(found.values())
        told = {metric: name if alike[name] == 1 else f"{name}, metric {metric[:8]}" for metric, name in found.items()}
        object.__setattr__(self, "by_metric", told)

    def metric(self, metric: str) -> str:
        """Return the name of a metric."""
        return self.by_metric.get(metric, f"metric {metric}")


def summary(entries: Sequence[AnEntry], answer: Answer | None = None) -> list[dict[str, Any]]:
    """Return for each corpus, release and text column: documents, tokens, and the largest readings of one document.

    ``answer`` is the entries' answer to a question for lines, if it was already asked.
    """
    groups: dict[tuple[str, str, str], list[AnEntry]] = defaultdict(list)
    for entry in entries:
        groups[line_of(entry)].append(entry)
    found = (ask(Question(lines=True), entries) if answer is None else answer).lines
    lines = []
    for number, ((corpus, release, column), group) in sorted(enumerate(groups.items()), key=lambda one: one[1][0]):
        about, size = group[0].about, found.get(number, Line())
        line = {"corpus": corpus, "release": release, "column": column, "mechanism": about["mechanism"]}
        line |= {"metric": about["metric"], "space": about["space"], "entry": min(entry.name for entry in group)}
        line |= {"documents": size.documents, "tokens": size.tokens}
        lines.append(line | dict(zip(READINGS, size.largest, strict=True)))
    return lines


def tags_of(secret: bytes, document: str, corpora: Iterable[str]) -> tuple[bytes, list[bytes]]:
    """Return the fingerprints of a document, given by text or id: as a text, and as an id of each corpus.

    An id can be text, a whole number, or PATH:ROW if documents were identified by file and row. Only a holder of the
    ledger's secret can compute these.
    """
    data = np.frombuffer(document.encode(), dtype=np.uint8)
    content = keyed_tags(_part(secret, b"content"), "", [b""], data, np.array([0, data.size]))
    path, colon, row = document.rpartition(":")
    found = []
    for corpus in sorted(set(corpora)):
        ids: list[Any] = [document]
        if document.removeprefix("-").isdecimal() and -(1 << 63) <= int(document) < 1 << 64:
            ids.append(int(document))
        if colon and row.isdecimal() and int(row) < 1 << 64:
            ids += [(corpus, path, int(row)), (path, int(row))]
        nothing = np.zeros(len(ids) + 1, dtype=np.int64)
        identity = keyed_tags(_part(secret, b"identity"), corpus, ids, data[:0], nothing)
        found += [row.tobytes() for row in identity]
    return content[0].tobytes(), found


def of_document(entries: Sequence[AnEntry], content: bytes, identities: Sequence[bytes]) -> list[Entry]:
    """Return the rows that count for one document: those of its text or id, and of the ids and texts found with it."""
    known = {"content": {content}, "identity": set(identities)}
    matched = _matching(entries, known)
    for entry in matched:
        for name, tags in known.items():
            tags.update(entry.table[name].to_pylist())
    return _matching(entries, known) if matched else []


def _matching(entries: Iterable[AnEntry], known: Mapping[str, set[bytes]]) -> list[Entry]:
    wanted = {name: pa.array(sorted(tags), ROWS.field(name).type) for name, tags in known.items()}
    found = []
    for entry in entries:
        parts = [ROWS.empty_table()]
        for rows in entry.tables():
            masks = [pc.is_in(rows[name], value_set=tags) for name, tags in wanted.items()]
            parts.append(rows.filter(pc.or_(*masks)))
        rows = pa.concat_tables(parts)
        if rows.num_rows:
            found.append(Entry(entry.about, rows, entry.name))
    return found
