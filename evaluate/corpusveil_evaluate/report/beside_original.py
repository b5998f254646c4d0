"""A release beside its original, in files or in memory: ``corpusveil evaluate release`` and ``cv.evaluate_release``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from corpusveil.choices import Separator
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.errors import (
    AddressError,
    DataError,
    SettingError,
)
from corpusveil.passages.store import Store
from corpusveil.pipelines.settings import Settings, needed
from corpusveil.pipelines.watch import Watch
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage import files
from corpusveil.storage.corpus import CorpusIn
from corpusveil.storage.inputs import Address
from corpusveil.storage.rows import Columns
from corpusveil.transforms.frames import frame_of
from corpusveil.transforms.release.manifest import draft, read_manifest
from corpusveil.transforms.release.passage_release import PassageRelease
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.release.verification import verify
from corpusveil_evaluate.matching import Matched, match, spread
from corpusveil_evaluate.output_folders import check_folder, lies_in_input
from corpusveil_evaluate.report.evaluate_release import evaluate_release as evaluate_matched
from corpusveil_evaluate.report.findings import Findings
from corpusveil_evaluate.report.question import Question
from corpusveil_evaluate.report.release_page import write_report
from corpusveil_evaluate.settings import EvaluateSettings
from corpusveil_evaluate.statistics.encoders import Encoder

REPORTS = ("report.csv", "report.json", "report.html")


def run(settings: Settings, watch: Watch | None = None) -> Findings:
    """Compare a release with its original, and write the report."""
    asked = needed(settings.section(EvaluateSettings), "evaluate")
    watch = watch or Watch()
    corpus, output = settings.corpus, settings.output
    originals = [asked.original] if asked.original is not None else [] if corpus is None else corpus.input
    private = asked.private or ("" if output is None else output.path)
    for name, value in (("original", originals), ("private", private), ("path", path := asked.path or "")):
        if not value:
            raise SettingError(f"evaluate.{name}: this setting is missing; add it.")
    for folder in (*originals, private):
        if lies_in_input(path, folder, REPORTS):
            raise AddressError(f"{path}: this is in {folder}, which the report is not part of; choose another folder.")
    check_folder(path)  # report an unwritable output now, not after all the work
    findings = _of_files(originals, private, Question.opened(settings))
    for line in (findings.publishable() if asked.publishable else findings).lines():
        watch.say(line)
    page = write_report(findings, path, publishable=asked.publishable)
    secret = "" if asked.publishable else " (private: it shows original text)"
    watch.say(f"{page}{secret}, {findings.seconds:.0f} s")
    return findings


class Asked(TypedDict, total=False):
    """The keys of ``[evaluate]`` that Python calls take, for editors and type checkers; the settings check them."""

    text: str
    private_text: str | None
    id: str | None
    label: str | None
    attribute: str | None
    models: Sequence[str]
    seeds: int
    documents: int
    counts: Address | None
    separator: Separator


def evaluate_release(
    original: Any,
    private: Any,
    release: Release | PassageRelease | None = None,
    *,
    space: Space | None = None,
    store: Store | None = None,
    collocations: Collocations | None = None,
    encoder: Encoder | None = None,
    vectors: Vectors | None = None,
    **asked: Unpack[Asked],
) -> Findings:
    """Compare a release with its original: what it discloses, and how useful it still is.

    ``original`` and ``private`` are addresses (files, a folder, a glob; the folder of a release), or both texts in
    memory, as ``cv.privatize`` takes them. Documents are matched by the column ``id``, or without it by position.
    ``release`` made the texts: it provides the ``space`` and ``collocations`` or the ``store``, and for texts in memory
    also the guarantee. ``encoder`` or ``vectors`` measure similarity of meaning.

    ``asked`` are the keys of ``[evaluate]`` in a configuration file: ``text``, the column with the text; ``label``, a
    column that a model should still predict; ``attribute``, one that no attacker should infer; ``documents``, the
    number above which an even sample is evaluated; ``private_text``, ``models``, ``seeds``, ``corpus``, ``counts``,
    ``separator``.

    The findings hold original text, which ``.publishable()`` leaves out. Raises UserError if originals, private texts,
    manifest and space do not fit.

    >>> private = cv.privatize(texts, release, ids=["r-1", "r-2"])
    >>> cv.evaluate_release(texts, private, release).documents
    2
    """
    if isinstance(release, PassageRelease):
        store = store or release.mechanism.store
    elif release is not None:
        space, collocations = space or release.mechanism.space, collocations or release.collocations
    opened: dict[str, Any] = {"encoder": encoder, "vectors": vectors}
    question = Question.from_arguments(space=space, store=store, collocations=collocations, **opened, **asked)
    in_files = [isinstance(given, (str, os.PathLike)) for given in (original, private)]
    if any(in_files) and not all(in_files):
        raise SettingError(
            "original and private: only one of them is an address; give two addresses, or two collections of texts."
        )
    if all(in_files):
        return _of_files([files.as_text(original)], files.as_text(private), question)
    text, id = question.asked.text or "text", question.asked.id
    promised = None if release is None else json.loads(json.dumps(draft(release, CorpusIn([], Columns(text, id)))))
    return evaluate_matched(_matched(original, private, text, question), promised, question)


def _of_files(originals: Sequence[str], private: str, question: Question) -> Findings:
    asked = question.asked
    manifest = _manifest(private)
    matched = match(
        originals, [private], text=asked.text or "text", private_text=asked.private_text, id=asked.id,
        columns=question.columns, most=asked.documents,
        separator=asked.separator or "comma",
    )  # fmt: skip
    return evaluate_matched(matched, manifest, question)


def _manifest(private: str) -> dict[str, Any] | None:
    """Return the manifest of a release, None for other private texts. Raises CorpusveilError if its files differ."""
    if not files.exists(files.join(private, "manifest.json")):
        return None
    verify(private).require()
    return read_manifest(private)


def _matched(original: Any, private: Any, text: str, question: Question) -> Matched:
    """Return documents in memory with their private versions; a document with a missing text is left out."""
    id, private_text = question.asked.id, question.asked.private_text or text
    before, after = _texts(original, text), _texts(private, private_text)
    ids: Sequence[Any] = range(len(before)) if id is None else _column(original, text, id)
    others: Sequence[Any] = range(len(after)) if id is None else _column(private, private_text, id)
    if id is None and len(before) != len(after):
        raise SettingError(
            f"original and private: there are {len(before):,} and {len(after):,} texts; give equal numbers, or "
            "an id column."
        )
    if len(set(ids)) < len(ids) or len(set(others)) < len(others):
        raise DataError(f"{id}: two documents have the same id; name a column that identifies them.")
    made: Mapping[Any, str | None] = dict(zip(others, after, strict=True))
    chosen = spread(len(before), question.asked.documents)
    rows = [row for row in chosen if before[row] is not None and made.get(ids[row]) is not None]
    if not rows:
        raise DataError("original and private: no document is in both; check the ids.")
    values = {name: _column(original, text, name) for name in question.columns}
    return Matched(
        [str(before[row]) for row in rows], [str(made[ids[row]]) for row in rows], len(before),
        {name: [column[row] for row in rows] for name, column in values.items()}, len(chosen),
    )  # fmt: skip


def _texts(data: Any, text: str) -> list[str | None]:
    texts: list[str | None] = frame_of(data, text).texts.to_pylist()
    return texts


def _column(data: Any, text: str, name: str) -> list[Any]:
    """Return another column of a frame. Raises UserError if there is no such column."""
    column = frame_of(data, text).column
    if column is None:
        raise DataError(
            f"{name!r} names a column, and these texts have no columns; give a frame, or leave this column out."
        )
    values = column(name)
    return values if isinstance(values, list) else list(values.to_pylist())
