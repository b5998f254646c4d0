"""The comparison of a release with its original, from files or from texts in memory: ``cv.evaluate_release``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from corpusveil.choices import Separator
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.errors import (
    BadRowError,
    BadTypeError,
    BadValueError,
    ColumnError,
    ConflictError,
    DataError,
    ShapeError,
    UnsetError,
    no_column,
)
from corpusveil.evaluation.defaults import DOCUMENTS
from corpusveil.evaluation.matching import Matched, match, spread
from corpusveil.evaluation.report.evaluate_release import evaluate_release as evaluate_matched
from corpusveil.evaluation.report.evaluation_options import EvaluationOptions
from corpusveil.evaluation.report.findings import Findings
from corpusveil.evaluation.statistics.encoders import Encoder
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage import files
from corpusveil.storage.inputs import Address
from corpusveil.storage.rows import Columns
from corpusveil.transforms.frames import frame_of
from corpusveil.transforms.release.manifest import draft, read_manifest
from corpusveil.transforms.release.release import Release


def evaluate_release(
    original: Any,
    private: Any,
    release: Release | None = None,
    *,
    text: str = "text",
    private_text: str | None = None,
    id: str | None = None,
    label: str | None = None,
    attribute: str | None = None,
    second: str | None = None,
    second_private: Address | None = None,
    space: Space | None = None,
    collocations: Collocations | None = None,
    epsilons: Sequence[float] = (),
    mechanisms: Sequence[str] = (),
    models: Sequence[str] = ("tfidf",),
    keys: Sequence[Key] = (),
    seeds: int = 5,
    documents: int = DOCUMENTS,
    corpus: str | None = None,
    counts: Address | None = None,
    encoder: Encoder | None = None,
    vectors: Vectors | None = None,
    causal: Sequence[Address] = (),
    words: Address | None = None,
    separator: Separator = "comma",
) -> Findings:
    """Compare a release with its original: return what it discloses, and how useful it still is.

    ``original`` and ``private`` are addresses (files, a folder, a glob; the folder of a release), or both texts in
    memory: lists, columns or frames as ``cv.privatize`` takes them. Documents are matched by the column ``id``, or
    without it by position. ``release`` is the release that made the texts. It supplies its ``space`` and
    ``collocations``, and for texts in memory its guarantee; a release in files has a manifest.

    ``label`` and ``attribute`` are columns of the original: what a model should still predict, and what no attacker
    should infer. ``epsilons`` and ``mechanisms`` are tried in addition, under throwaway keys. ``keys`` are leaked keys.
    Above ``documents``, an even sample is evaluated. The other arguments are options of the same or a similar name of
    ``corpusveil evaluate release``.

    The findings hold original text. ``.publishable()`` leaves it out, and ``cv.write_report`` writes their page. Raises
    UserError if originals, private texts, manifest and space do not fit.
    """
    if release is not None:
        space, collocations = space or release.mechanism.space, collocations or release.collocations
    if second is None and second_private is not None:
        raise UnsetError("second_private: these are the second texts of pairs; name their column with second.")
    columns = [name for name in (label, attribute, second) if name is not None]
    if len(set(columns)) < len(columns):
        raise ConflictError("label, attribute and second: a column is named twice; give different columns.")
    question = EvaluationOptions(
        label, attribute, second, tuple(epsilons), seeds, tuple(models), space, collocations, encoder, vectors,
        None if counts is None else files.as_text(counts), tuple(mechanisms), tuple(keys),
        None if words is None else files.as_text(words), tuple(files.as_text(one) for one in causal),
    )  # fmt: skip
    if not _in_files(original, private):
        if second_private is not None:
            raise BadValueError("second_private: private second texts are read from files; give all texts in files.")
        promised = None if release is None else json.loads(json.dumps(draft(release, Columns(text, id))))
        matched = _matched(original, private, text, private_text or text, id, columns, documents)
        return evaluate_matched(matched, promised, question)
    address, others = files.as_text(private), None if second_private is None else files.as_text(second_private)
    manifest = _manifest(address)
    matched = match(
        [files.as_text(original)], [address], text=text, private_text=private_text, id=id, columns=columns,
        second=None if second is None or others is None else (second, [others]), most=documents, corpus=corpus,
        separator=separator,
    )  # fmt: skip
    return evaluate_matched(matched, manifest, question, None if others is None else _manifest(others))


def _in_files(original: Any, private: Any) -> bool:
    """Say whether both are addresses. Raises UserError if only one is."""
    places = [isinstance(one, (str, os.PathLike)) for one in (original, private)]
    if any(places) and not all(places):
        raise BadTypeError(
            "original and private: only one of them is an address; give two addresses, or two collections of texts."
        )
    return all(places)


def _manifest(private: str) -> dict[str, Any] | None:
    """Return the manifest, None if the private texts are not a release. Raises UserError if it is damaged."""
    return read_manifest(private) if files.exists(files.join(private, "manifest.json")) else None


def _matched(
    original: Any, private: Any, text: str, private_text: str, id: str | None, columns: Sequence[str], most: int
) -> Matched:
    """Return documents in memory with their private versions; a document with a missing text is left out."""
    before, after = _texts(original, text), _texts(private, private_text)
    ids: Sequence[Any] = range(len(before)) if id is None else _ids(original, text, id)
    others: Sequence[Any] = range(len(after)) if id is None else _ids(private, private_text, id)
    if id is None and len(before) != len(after):
        raise ShapeError(
            f"original and private: there are {len(before):,} and {len(after):,} texts; give equal numbers, or "
            "an id column."
        )
    if len(set(ids)) < len(ids) or len(set(others)) < len(others):
        raise BadRowError(f"{id}: two documents have the same id; name a column that identifies them.")
    made: Mapping[Any, str | None] = dict(zip(others, after, strict=True))
    chosen = spread(len(before), most)
    rows = [row for row in chosen if before[row] is not None and made.get(ids[row]) is not None]
    if not rows:
        raise DataError("original and private: no document is in both; check the ids.")
    values = {name: _values(original, name) for name in columns}
    return Matched(
        [str(before[row]) for row in rows], [str(made[ids[row]]) for row in rows], len(before),
        {name: [column[row] for row in rows] for name, column in values.items()}, len(chosen),
        ids=None if id is None else [ids[row] for row in rows],
    )  # fmt: skip


def _texts(data: Any, text: str) -> list[str | None]:
    found: list[str | None] = frame_of(data, text).texts.to_pylist()
    return found


def _ids(data: Any, text: str, id: str) -> list[Any]:
    column = frame_of(data, text).column
    if column is None:
        raise ColumnError(
            f"id = {id!r} names a column, and these texts have no columns; give a frame, or leave id out."
        )
    return column(id)


def _values(data: Any, name: str) -> list[Any]:
    """Return another column of a frame. Raises UserError if there is no such column."""
    stream = hasattr(data, "__arrow_c_stream__") and not hasattr(data, "__getitem__")
    frame = pa.table(data) if stream else data
    names = getattr(frame, "column_names", getattr(frame, "columns", None))
    if names is None:
        raise ColumnError(f"{name}: texts without columns do not have this column; give a frame.")
    if name not in list(names):
        raise no_column(name, names)
    column = frame[name]
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column)
