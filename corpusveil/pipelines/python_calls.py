"""Flows as calls from Python: ``cv.privatize_corpus``, ``cv.plan``, ``cv.demo_space``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from corpusveil.choices import OnBadRows, Separator
from corpusveil.errors import BadTypeError, of_other_type
from corpusveil.jobs.local import Local
from corpusveil.language.model import LanguageModel, load_model
from corpusveil.ledger.summary import Ledger, require_ledger
from corpusveil.ledger.units import scope_of
from corpusveil.spaces import Space, load_space
from corpusveil.spaces.installed import ENGLISH, SCHEME
from corpusveil.storage import files
from corpusveil.storage.engine import Engine
from corpusveil.storage.inputs import Address, addresses, find_shards
from corpusveil.storage.rows import Columns
from corpusveil.transforms.release.corpus import Outcome, Run
from corpusveil.transforms.release.fit import warn_of_misfit
from corpusveil.transforms.release.planning import Forecast, count_duplicates, forecast
from corpusveil.transforms.release.release import Release, require_release

Units: TypeAlias = str | Sequence[str] | Mapping[str, str] | None
"""The units of a ledger: a column or ``content``, several, or columns by name."""


def privatize_corpus(
    inputs: Address | Sequence[Address],
    output: Address,
    release: Release,
    engine: Engine | None = None,
    *,
    text: str = "text",
    id: str | None = None,
    keep: str | Sequence[str] = (),
    separator: Separator = "comma",
    corpus: str | None = None,
    root: Address | None = None,
    records: Address | None = None,
    ledger: Ledger | None = None,
    unit: Units = None,
    format: str = "same",
    on_bad_rows: OnBadRows = "fail",
    page: bool = True,
    rows_per_task: int | None = None,
) -> Outcome:
    """Privatize files, folders or globs into ``output/data``, and write ``output/manifest.json`` last.

    Every ``engine`` writes the same bytes: ``cv.Local(workers=2)`` (default: this process), ``cv.Spark()``,
    ``cv.Beam()``. A repeated call resumes after any interruption, and leaves a finished release as it is. Private
    figures go to ``records`` (default: ``<output>.records``).

    ``text`` is the column that becomes private, or a path to texts within one (``messages[].content``), and ``id`` a
    column that identifies documents. Without ``id``, three things identify a document: the name ``corpus`` (default:
    its folder), the file's path below ``root`` (default: the lowest common folder), and the row. Other columns are
    written only if ``keep`` names them, in the clear; ``"all"`` keeps every other column (a column of that name alone
    is ``'"all"'``).

    A ``ledger`` checks its caps, and records what units spend, before anything is drawn. ``unit`` names their column
    (an author, a customer, the id), or several, or ``"content"``; ``{"customer_id": "customer"}`` says in which column
    the ledger's unit customer_id is. In a named ``corpus``, units are those of this data set only. Pseudonyms that are
    equal within a unit need ``unit`` also without a ledger. ``format``,
    ``separator``, ``on_bad_rows``, ``page`` and ``rows_per_task`` are those of the command line.

    Raises UserError if input or arguments are wrong, a cap refuses the release, or the output is another release's;
    WorkError if the engine fails, or another run uses the same records.
    """
    scope = scope_of(unit, scoped=require_release(release).scoped)
    run = Run(
        release, addresses(inputs), files.as_text(output),
        columns=Columns.of(text, id, keep, separator, None if scope is None else scope.column),
        root=None if root is None else files.as_text(root), corpus=corpus,
        records=None if records is None else files.as_text(records), rows_per_task=rows_per_task,
        format=format, on_bad_rows=on_bad_rows, page=page,
        spending=require_ledger(ledger, unit, corpus, scoped=release.scoped),
        look=lambda batch: warn_of_misfit(release, batch.texts),
    )  # fmt: skip
    return run.privatize(_engine(engine))


def plan(
    inputs: Address | Sequence[Address],
    release: Release,
    *,
    text: str = "text",
    id: str | None = None,
    keep: str | Sequence[str] = (),
    separator: Separator = "comma",
    corpus: str | None = None,
    root: Address | None = None,
    ledger: Ledger | None = None,
    unit: Units = None,
    format: str = "same",
    on_bad_rows: OnBadRows = "fail",
    duplicates: bool = False,
) -> Forecast:
    """Forecast what ``privatize_corpus`` would read, write, take and spend, from a sample; release and reserve nothing.

    The arguments are those of ``privatize_corpus``. ``duplicates`` reads all documents and counts equal ones. Raises
    UserError for faults in the sampled shards. The forecast says if a cap refuses the release.
    """
    scope = scope_of(unit, scoped=require_release(release).scoped)
    columns = Columns.of(text, id, keep, separator, None if scope is None else scope.column)
    named = addresses(inputs)
    run = Run(
        release, named, "", columns=columns, root=None if root is None else files.as_text(root),
        corpus=corpus, format=format, on_bad_rows=on_bad_rows,
        spending=require_ledger(ledger, unit, corpus, scoped=release.scoped),
    )  # fmt: skip
    made = forecast(run)
    return dataclasses.replace(made, copies=count_duplicates(find_shards(named), columns)) if duplicates else made


def _engine(engine: Engine | None) -> Engine:
    """Return the engine, by default this process. Raises UserError for anything else, such as a name or a class."""
    if engine is None:
        return Local()
    if isinstance(engine, type) or not callable(getattr(engine, "run", None)):
        needed = "an engine, such as cv.Local(workers=2), cv.Spark() or cv.Beam()"
        if isinstance(engine, type):
            raise BadTypeError(f"engine: give {needed}, not the class {engine.__name__}.")
        raise of_other_type("engine", engine, needed)
    return engine


def demo_space() -> Space:
    """Return the space ``en`` of the package corpusveil-space-en: 14,424 words of news and encyclopedia articles.

    The first call unpacks it into the user's cache folder. It has 50 dimensions, public counts and one balanced list,
    so every mechanism works on it. It is small: for work that counts, build a space of more text, or of published
    vectors.

    Raises UserError where the package is missing, or other users may write to the cache folder.
    """
    return load_space(SCHEME + ENGLISH)


def demo_model() -> LanguageModel:
    """Return a language model of the text of ``cv.demo_space``, for denoising; of the same package."""
    return load_model(SCHEME + ENGLISH)
