"""Running a study: prepare, do the cells that are not done, and write what was found and what it cost."""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corpusveil.collocations.stages import Engine, Watch, mark_of
from corpusveil.errors import WorkError
from corpusveil.evaluation.studies.cells import CELLS, Cell, CellStage, Results, run_cells
from corpusveil.evaluation.studies.given import absent, absolute, check_sets, check_sources
from corpusveil.evaluation.studies.ground import Ground, Sources, prepare
from corpusveil.evaluation.studies.pages import TABLES, write_account
from corpusveil.evaluation.studies.study import Account, Grid, Study, Table, find
from corpusveil.storage import files, lease

CLUSTER = 100
"""Cores of the cluster that the cost of a grid is stated for."""


@dataclass(frozen=True, slots=True)
class Worker:
    """Makes what does a cell, in any process. ``grid`` is JSON; the ground is opened once a process."""

    study: str
    grid: str
    folder: str
    sources: Sources

    def __call__(self) -> Any:
        """Return the function that does a cell."""
        study, grid, ground = _opened(self)
        return lambda cell: study.work(cell, grid, ground)


@functools.lru_cache(maxsize=2)
def _opened(worker: Worker) -> tuple[Study, Grid, Ground]:
    study = find(worker.study)
    grid = study.grid.model_validate_json(worker.grid)
    return study, grid, Ground(worker.folder, worker.sources, study.needs(grid))


@dataclass(frozen=True, slots=True)
class Ready:
    """A study whose ground is prepared, with its cells."""

    study: Study
    grid: Grid
    ground: Ground
    stage: CellStage
    cells: Sequence[Cell]

    @property
    def left(self) -> list[Cell]:
        """The cells that are not done."""
        return [cell for cell in self.cells if self.stage.record(cell) is None]

    def done(self) -> Results:
        """Return what the cells found that are done."""
        return Results([record for cell in self.cells if (record := self.stage.record(cell)) is not None])


def ready(study: Study, grid: Grid, sources: Sources, output: str, engine: Engine, watch: Watch | None = None) -> Ready:
    """Prepare a study in the folder ``output``: what is made once, and the list of its cells.

    With data of the user's the folder gets mode 0700 on a local disk, since figures of private data are private too.
    """
    output, sources = files.absolute(output), absolute(sources)
    ground = Ground(output, sources, study.needs(grid))
    check_sources(study, ground)
    cells = study.cells(grid, ground)
    check_sets(cells, grid, ground)
    _make_folders(output, private=is_private(sources))
    prepare(ground, engine, watch)
    study.prepare(grid, ground)
    worker = Worker(study.name, grid.model_dump_json(), output, sources)
    stage = CellStage(output, mark_of(grid.decides(), ground.digest()), worker)
    return Ready(study, grid, ground, stage, cells)


def is_private(sources: Sources) -> bool:
    """Say whether figures are of data of the user's: they are private then, and so are networks and tables."""
    return any(one is not None for one in (sources.data, sources.collection, sources.queries))


def held(output: str, sources: Sources) -> lease.Lease:
    """Return the lease of a study's folder, which is made as private as its figures.

    Raises WorkError where another run is in progress.
    """
    output = files.absolute(output)
    missing = files.missing_folders(output)
    if files.is_local(output):
        files.make_folder(output, private=is_private(sources))
    taken = lease.hold(files.join(output, lease.FOLDER))
    taken.made = (*missing, *taken.made)
    return taken


def _make_folders(output: str, *, private: bool) -> None:
    """Make the output folder and those in it; a folder that was there keeps its mode, those in it are closed."""
    if not files.is_local(output):
        return
    path = files.resolve(output)[1]
    files.make_folder(path, private=private)
    for name in ("ground", CELLS, TABLES):
        folder = os.path.join(path, name)
        files.make_folder(folder, private=private)
        if private:
            os.chmod(folder, 0o700)


def run_study(one: Ready, engine: Engine, watch: Watch | None = None) -> tuple[Account, str]:
    """Do the cells that are left, and write page, JSON and CSV; return what is reported and the page's address.

    Raises WorkError where cells failed, after the report of all others is written.
    """
    began = time.monotonic()
    left = len(one.left)
    results = run_cells(one.stage, one.cells, engine, watch)
    account = one.study.account(results, one.grid, one.ground)
    wall = time.monotonic() - began if left == len(one.cells) else None
    account = dataclasses.replace(
        account,
        tables=(*account.tables, costs(results, wall)),
        notes=(
            *account.notes,
            *absent(one.grid, one.ground),
            *one.ground.lines(),
            *(() if "model" in one.study.no_use_for else (one.ground.by_what(),)),
            *(f"Not run: {said}" for said in results.refused),
            *(f"Failed: {said}" for said in results.failed),
        ),
    )
    private = is_private(one.ground.sources)
    page = write_account(account, one.study, one.grid, results, one.ground.folder, private=private)
    if results.failed:
        raise WorkError(
            f"{len(results.failed):,} of {len(one.cells):,} cells failed, the first with: {results.failed[0]} {page} "
            "is without them; run the same command again to try them once more."
        )
    return account, page


def costs(results: Results, wall: float | None = None) -> Table:
    """Return what cells took by kind: seconds, CPU seconds and memory, and the same work on a cluster."""
    by_kind: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for record in results.records:
        by_kind[record["kind"]].append(record)
    rows = [(kind, *_cost(some)) for kind, some in by_kind.items()]
    rows.append(("all", *_cost(results.records)))
    notes = [
        f"On {CLUSTER} cores: as many cells at once, each on one core; at least as long as the longest cell.",
    ]
    if wall is not None:
        notes.append(f"Wall time of this run, without what was prepared: {wall:.0f} s.")
    columns = ("cells", "number", "seconds a cell", "longest, s", "sum, s", "CPU s", "peak MiB", f"{CLUSTER} cores, s")
    return Table("What it took", columns, rows, tuple(notes))


def _cost(records: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    seconds = [float(one["seconds"]) for one in records] or [0.0]
    longest, total = max(seconds), sum(seconds)
    cpu = sum(float(one["cpu_seconds"]) for one in records)
    peak = max((float(one["peak_mib"]) for one in records), default=0.0)
    return (
        len(records), round(float(np.median(seconds)), 2), round(longest, 1), round(total), round(cpu), round(peak),
        round(max(longest, total / CLUSTER), 1),
    )  # fmt: skip


def plan(one: Ready) -> Iterator[str]:
    """Say what is left to do, and how long it will take by the cells of each kind that are done."""
    done = one.done()
    took: dict[str, list[float]] = defaultdict(list)
    for record in done.records:
        took[record["kind"]].append(float(record["seconds"]))
    left = one.left
    yield f"{len(one.cells):,} cells, {len(one.cells) - len(left):,} of them done."
    seconds = 0.0
    for kind in dict.fromkeys(cell.kind for cell in left):
        many = sum(cell.kind == kind for cell in left)
        if took[kind]:
            seconds += many * float(np.mean(took[kind]))
            yield f"{kind}: {many:,} left, {np.mean(took[kind]):.1f} s each by those done."
        else:
            yield f"{kind}: {many:,} left; none is done, so nobody knows how long one takes."
    if seconds:
        yield f"About {seconds:,.0f} core-seconds of the known kinds; divide by the cores of a cluster."
