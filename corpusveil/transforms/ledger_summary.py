"""What a ledger says, in words: releases by date and corpus, metrics by mechanism and space, one document's history."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.sampling.draws import keyed_tags
from corpusveil.storage.ledger import READINGS, ROWS, Entry
from corpusveil.transforms.kernel import _part


@dataclass(frozen=True, slots=True)
class Names:
    """What people call the metrics of entries: a mechanism and its space; where two are called alike, also a number."""

    by_metric: dict[str, str]

    def __init__(self, entries: Iterable[Entry]) -> None:
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


def summary(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Return for each corpus, release and text column: documents, tokens, and the largest readings of one document."""
    groups: dict[tuple[str, str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[str(entry.about["corpus"]), str(entry.about["release"]), str(entry.about["column"])].append(entry)
    lines = []
    for (corpus, release, column), group in sorted(groups.items()):
        rows = distinct(group)
        about = group[0].about
        line = {"corpus": corpus, "release": release, "column": column, "mechanism": about["mechanism"]}
        line |= {"metric": about["metric"], "space": about["space"], "entry": min(entry.name for entry in group)}
        line |= {"documents": rows.num_rows, "tokens": pc.sum(rows["tokens"]).as_py() or 0}
        lines.append(line | {name: pc.max(rows[name]).as_py() or 0.0 for name in READINGS})
    return lines


def distinct(entries: Sequence[Entry]) -> pa.Table:
    """Return the rows of one release's entries, each document (noise and identity) once."""
    rows = pa.concat_tables([entry.table for entry in entries] or [ROWS.empty_table()])
    grouped = rows.group_by(["noise", "identity"]).aggregate([(name, "max") for name in ("tokens", *READINGS)])
    return grouped.rename_columns([name.removesuffix("_max") for name in grouped.column_names])


def tags_of(secret: bytes, document: str, corpora: Iterable[str]) -> tuple[bytes, list[bytes]]:
    """Return the fingerprints of a document, told by its text or by its id: as a text, and as an id of each corpus.

    An id can be text, a whole number, or PATH:ROW where documents were known by file and row. Only who holds the
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


def of_document(entries: Sequence[Entry], content: bytes, identities: Sequence[bytes]) -> list[Entry]:
    """Return the rows that count for one document: those of its text or id, and of the ids and texts found with it."""
    known = {"content": {content}, "identity": set(identities)}
    matched = _matching(entries, known)
    for entry in matched:
        for name, tags in known.items():
            tags.update(entry.table[name].to_pylist())
    return _matching(entries, known) if matched else []


def _matching(entries: Iterable[Entry], known: Mapping[str, set[bytes]]) -> list[Entry]:
    found = []
    for entry in entries:
        masks = [pc.is_in(entry.table[name], value_set=pa.array(sorted(tags), ROWS.field(name).type))
                 for name, tags in known.items()]  # fmt: skip
        rows = entry.table.filter(pc.or_(*masks))
        if rows.num_rows:
            found.append(Entry(entry.about, rows, entry.name))
    return found
