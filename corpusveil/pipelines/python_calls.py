"""A corpus in files through a release, and what that would take: as ``cv.privatize_corpus`` and ``cv.plan``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from corpusveil.choices import CsvFormulas, OnBadRows
from corpusveil.errors import BadTypeError, of_other_type
from corpusveil.jobs.local import Local
from corpusveil.storage import files
from corpusveil.storage.engine import Engine
from corpusveil.storage.inputs import Address, addresses, find_shards
from corpusveil.storage.rows import Columns
from corpusveil.transforms import corpus as shards
from corpusveil.transforms.corpus import Outcome
from corpusveil.transforms.ledger import Ledger, require_ledger
from corpusveil.transforms.planning import Forecast, count_duplicates, forecast
from corpusveil.transforms.release import Release, require_release


def privatize_corpus(
    inputs: Address | Sequence[Address],
    output: Address,
    release: Release,
    engine: Engine | None = None,
    *,
    text: str = "text",
    id: str | None = None,
    keep: str | Sequence[str] = (),
    corpus: str | None = None,
    root: Address | None = None,
    records: Address | None = None,
    ledger: Ledger | None = None,
    format: str = "same",
    csv_formulas: CsvFormulas = "keep",
    on_bad_rows: OnBadRows = "fail",
    rows_per_task: int | None = None,
) -> Outcome:
    """Privatize files, folders or globs into ``output/data``, and write ``output/manifest.json`` last.

    The same bytes on every ``engine``: ``cv.Local(workers=2)`` (default: this process), ``cv.Spark()``, ``cv.Beam()``.
    Called again after any interruption it goes on where it stopped, and leaves a finished release as it is. What is
    private goes to ``records`` (default: ``<output>.records``).

    ``text`` is the column that becomes private, ``id`` one that identifies documents; without it they are known by the
    ``corpus``, a name (default: its folder), their file's path below ``root`` (default: the lowest common folder) and
    their row. Columns leave only when named in ``keep``, in the clear. ``ledger`` is asked, and told what documents
    spend, before anything is drawn; with an ``id`` it takes the corpus' name. ``format``, ``csv_formulas``,
    ``on_bad_rows`` and ``rows_per_task`` are the command line's.

    Raises UserError when input or arguments are wrong, a cap refuses the release, or the output is another release's;
    WorkError when the engine fails, and while another run is at the same records.
    """
    return shards.privatize_corpus(
        require_release(release), addresses(inputs), files.as_text(output), _engine(engine),
        columns=_columns(text, id, keep, csv_formulas), root=None if root is None else files.as_text(root),
        corpus=corpus, records=None if records is None else files.as_text(records), rows_per_task=rows_per_task,
        format=format, on_bad_rows=on_bad_rows, spending=require_ledger(ledger),
    )  # fmt: skip


def plan(
    inputs: Address | Sequence[Address],
    release: Release,
    *,
    text: str = "text",
    id: str | None = None,
    keep: str | Sequence[str] = (),
    corpus: str | None = None,
    root: Address | None = None,
    ledger: Ledger | None = None,
    format: str = "same",
    csv_formulas: CsvFormulas = "keep",
    on_bad_rows: OnBadRows = "fail",
    duplicates: bool = False,
) -> Forecast:
    """Say what ``privatize_corpus`` would read, write, take and spend, from a sample; nothing is released or reserved.

    The arguments are those of ``privatize_corpus``. ``duplicates`` reads all documents, and counts equal ones. Raises
    UserError for what is wrong with the sampled shards; what a cap refuses is said in the forecast.
    """
    named, columns = addresses(inputs), _columns(text, id, keep, csv_formulas)
    found = forecast(
        require_release(release), named, columns=columns, root=None if root is None else files.as_text(root),
        corpus=corpus, format=format, on_bad_rows=on_bad_rows, spending=require_ledger(ledger),
    )  # fmt: skip
    return dataclasses.replace(found, copies=count_duplicates(find_shards(named), columns)) if duplicates else found


def _columns(text: str, id: str | None, keep: str | Sequence[str], formulas: CsvFormulas) -> Columns:
    return Columns(text, id, (keep,) if isinstance(keep, str) else tuple(keep), formulas)


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
