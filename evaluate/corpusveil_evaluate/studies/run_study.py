"""Running a study: prepare, do the unfinished cells, and write results."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from corpusveil.errors import WorkError
from corpusveil.storage import disk, files, lease
from corpusveil.storage.durable import mark_of
from corpusveil.storage.engine import Engine
from corpusveil_evaluate.studies.cells import CELLS, Cell, CellStage, run_cells
from corpusveil_evaluate.studies.preflight import absolute, check_sets, check_sources, missing_sets
from corpusveil_evaluate.studies.report import Account, statistics_table, write_account
from corpusveil_evaluate.studies.study import Grid, Study, find
from corpusveil_evaluate.studies.study_data import Sources, StudyData
from corpusveil_evaluate.studies.study_preparation import prepare_data


@dataclass(frozen=True, slots=True)
class Worker:
    """Makes the function for cells, in any process. ``grid`` is JSON; its data are opened once per process."""

    study: str
    grid: str
    folder: str
    sources: Sources

    def __call__(self) -> Any:
        """Return the function that does a cell."""
        study, grid, data = _opened(self)
        return lambda cell: study.work(cell, grid, data)


@functools.lru_cache(maxsize=2)
def _opened(worker: Worker) -> tuple[Study, Grid, StudyData]:
    study = find(worker.study)
    grid = study.grid.model_validate_json(worker.grid)
    return study, grid, StudyData(worker.folder, worker.sources, study.needs(grid))


@dataclass(frozen=True, slots=True)
class PreparedStudy:
    """A study whose data are prepared, with its cells."""

    study: Study
    grid: Grid
    data: StudyData
    stage: CellStage
    cells: Sequence[Cell]


def prepare_study(study: Study, grid: Grid, sources: Sources, output: str, engine: Engine) -> PreparedStudy:
    """Prepare a study in the folder ``output``: its shared artifacts, and the list of its cells.

    With the user's data, the folder gets mode 0700 on a local disk, since figures of private data are private, too.
    """
    output, sources = files.absolute(output), absolute(sources)
    data = StudyData(output, sources, study.needs(grid))
    check_sources(study, data)
    cells = study.cells(grid, data)
    check_sets(cells, grid, data)
    _make_folders(output, private=is_private(sources))
    prepare_data(data, engine)
    study.prepare(grid, data)
    worker = Worker(study.name, grid.model_dump_json(), output, sources)
    stage = CellStage(output, mark_of(grid.decides(), data.digest()), worker)
    return PreparedStudy(study, grid, data, stage, cells)


def is_private(sources: Sources) -> bool:
    """Say whether figures come from the user's data: then they are private, and so are networks and tables."""
    return any(url is not None for url in (sources.data, sources.collection, sources.queries))


def lease_of(output: str, sources: Sources) -> lease.Lease:
    """Return the lease of a study's folder, which is made as private as its figures.

    Raises WorkError if another run is in progress.
    """
    output = files.absolute(output)
    missing = files.missing_folders(output)
    if files.is_local(output):
        disk.make_folder(output, private=is_private(sources))
    taken = lease.hold(output)
    taken.made = missing
    return taken


def _make_folders(output: str, *, private: bool) -> None:
    """Make the output folder and those in it; a folder that was there keeps its mode, those in it are closed."""
    if not files.is_local(output):
        return
    path = files.resolve(output)[1]
    disk.make_folder(path, private=private)
    for name in ("ground", CELLS):
        folder = os.path.join(path, name)
        disk.make_folder(folder, private=private)
        if private:
            os.chmod(folder, 0o700)


def run_study(prepared: PreparedStudy, engine: Engine) -> tuple[Account, str]:
    """Do the remaining cells, and write page and JSON; return the report and the page's address.

    Raises WorkError if cells failed, after writing the report of all others.
    """
    results = run_cells(prepared.stage, prepared.cells, engine)
    account = prepared.study.account(results, prepared.grid, prepared.data)
    statistics = statistics_table(results)
    account = dataclasses.replace(
        account,
        tables=(*account.tables, *(() if statistics is None else (statistics,))),
        notes=(
            *account.notes,
            *missing_sets(prepared.grid, prepared.data),
            *prepared.data.lines(),
            *(() if "model" in prepared.study.no_use_for else (prepared.data.by_what(),)),
            *(f"Not run: {sentence}" for sentence in results.refused),
            *(f"Failed: {sentence}" for sentence in results.failed),
        ),
    )
    private = is_private(prepared.data.sources)
    study, folder = prepared.study, prepared.data.folder
    page = write_account(account, study.name, study.paper, prepared.grid, results, folder, private=private)
    if results.failed:
        raise WorkError(
            f"{len(results.failed):,} of {len(prepared.cells):,} cells failed, the first with: {results.failed[0]} "
            f"{page} is without them; run the same command again to retry them."
        )
    return account, page
