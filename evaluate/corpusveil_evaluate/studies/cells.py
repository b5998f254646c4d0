"""Cells of a grid: pieces of work with a name and options, done once, and recorded with their cost."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from corpusveil.errors import UserError, WorkError
from corpusveil.storage.durable import Done, Stage, mark_of, run
from corpusveil.storage.engine import Engine
from corpusveil.storage.records import Failed

CELLS = "cells"


@dataclass(frozen=True, slots=True)
class Cell:
    """One piece of a study, of a ``kind``, with ``options`` (names and JSON values)."""

    kind: str
    options: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """Return an option. Raises KeyError if the cell does not have it."""
        return self.options[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return an option, or the default if the cell does not have it."""
        return self.options.get(name, default)

    @property
    def record_name(self) -> str:
        """The name of its file: readable, and different for different cells."""
        words = "-".join(_short(value) for value in self.options.values() if value not in (None, "", {}))
        return f"{self.kind}-{words}"[:100].rstrip("-") + f"-{mark_of(self.kind, self.options)[:8]}.json"


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return "-".join(f"{name}{_short(one)}" for name, one in value.items())
    if isinstance(value, float):
        return f"{value:g}"
    return re.sub(r"[^A-Za-z0-9.+-]+", "", str(value))[:24]


Work = Callable[[Cell], Mapping[str, Any]]
"""A function that does a cell: it returns names and JSON values, with figures as plain numbers."""


class CellDone(Done):
    """A finished cell and its results."""

    kind: str
    options: dict[str, Any]
    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CellStage(Stage[CellDone]):
    """Does cells, each in a process that opens the study's data itself. ``made`` makes the function for cells."""

    name: ClassVar[str] = CELLS

    made: Callable[[], Work]

    def is_mine(self, record: CellDone, task: Cell) -> bool:
        return super(CellStage, self).is_mine(record, task) and record.options == dict(task.options)

    def __call__(self, task: Cell) -> None:
        """Do a cell unless it is done. A failure is recorded, so that other cells continue."""
        try:
            super(CellStage, self).__call__(task)
        except WorkError as error:
            self.refuse(error, task)

    def do_task(self, task: Cell) -> dict[str, Any]:
        """Do one cell. A refusal by a mechanism or measure is also a result, shown with its sentence."""
        try:
            result: Mapping[str, Any] = self.made()(task)
        except UserError as error:
            result = {"refused": str(error)}
        return {
            "kind": task.kind,
            "options": dict(task.options),
            "result": finite(json.loads(json.dumps(result, default=_plain))),
        }


def finite(value: Any) -> Any:
    """Return JSON values with None for NaN and infinity, which JSON lacks."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: finite(one) for name, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, (list, tuple)) else value


def _plain(value: Any) -> Any:
    if isinstance(value, (np.floating, np.integer, np.bool_)):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    message = f"a result of type {type(value).__name__} cannot be recorded"
    raise TypeError(message)


@dataclass(frozen=True, slots=True)
class Results:
    """The results of cells. Figures are means over the options that a selection leaves open, such as seeds."""

    records: Sequence[Mapping[str, Any]]
    failed: tuple[str, ...] = ()
    """The messages of cells without a record, which failed."""

    def where(self, kind: str | None = None, **options: Any) -> Results:
        """Return the cells of a kind whose options have these values, of a tuple any; one that a cell lacks is None."""
        wanted = {name: value if isinstance(value, tuple) else (value,) for name, value in options.items()}
        return Results([
            record for record in self.records
            if (kind is None or record["kind"] == kind)
            and all(record["options"].get(name) in values for name, values in wanted.items())
        ])  # fmt: skip

    def each(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Yield the different values of some options, in the order of the cells, each time with the cells."""
        records = [record for record in self.records if all(name in record["options"] for name in names)]
        for values in dict.fromkeys(tuple(record["options"][name] for name in names) for record in records):
            yield *values, self.where(**dict(zip(names, values, strict=True)))

    def over(self, measure: str, places: Iterable[Any], axis: str = "epsilon") -> list[SeedMean | None]:
        """Return a figure at every place of an axis."""
        return [self.where(**{axis: place}).figure(measure) for place in places]

    def line(self, measure: str, axis: str = "epsilon") -> list[tuple[float, float, float]]:
        """Return a figure over an axis as (place, mean, deviation)."""
        places = sorted(self.options(axis))
        figures = zip(places, self.over(measure, places, axis), strict=True)
        return [(place, one.mean, one.deviation or 0.0) for place, one in figures if one is not None]

    def values(self, measure: str) -> list[float]:
        """Return a figure of every cell with this figure, in the order of the cells."""
        found = [record["result"].get(measure) for record in self.records]
        return [float(value) for value in found if value is not None]

    def mean(self, measure: str) -> float | None:
        """Return the mean of a figure, None if no cell has it."""
        values = self.values(measure)
        return float(np.mean(values)) if values else None

    def figure(self, measure: str) -> SeedMean | None:
        """Return mean, deviation and number of a figure over seeds; None where no cell has it.

        Several cells of one seed, such as several tasks, are averaged first: differences between tasks are not
        deviations. Each cell without a seed counts separately.
        """
        of_seed: dict[Any, list[float]] = {}
        for number, one in enumerate(self.records):
            value = one["result"].get(measure)
            if value is not None:
                of_seed.setdefault(one["options"].get("seed", (number,)), []).append(float(value))
        return SeedMean.from_values([float(np.mean(values)) for values in of_seed.values()]) if of_seed else None

    def options(self, name: str) -> list[Any]:
        """Return the different values of an option, in the order of the cells."""
        return list(dict.fromkeys(record["options"][name] for record in self.records if name in record["options"]))

    @property
    def refused(self) -> list[str]:
        """The refusals of mechanisms and measures, each sentence once."""
        return list(
            dict.fromkeys(record["result"]["refused"] for record in self.records if "refused" in record["result"])
        )

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self.records)


@dataclass(frozen=True, slots=True)
class SeedMean:
    """A mean with the standard deviation (n - 1 in the denominator) over ``count`` values; None of a single one."""

    mean: float
    deviation: float | None
    count: int

    @classmethod
    def from_values(cls, values: Sequence[float]) -> SeedMean:
        """Return the figure of some values."""
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
        return cls(float(np.mean(values)), deviation, len(values))

    def __str__(self) -> str:
        """Return it as in tables."""
        return _number(self.mean) if self.deviation is None else f"{_number(self.mean)} ± {_number(self.deviation)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def cells_over(kind: str, **axes: Iterable[Any]) -> list[Cell]:
    """Return a cell for every combination of values, the last axis fastest."""
    found: list[dict[str, Any]] = [{}]
    for name, values in axes.items():
        held = list(values)
        found = [{**one, name: value} for one in found for value in held]
    return [Cell(kind, one) for one in found]


def of_seeds(kind: str, tasks: Iterable[str], at: Mapping[str, Any], seeds: int) -> list[Cell]:
    """Return a cell of these options for every task and seed."""
    return [Cell(kind, {"task": task, **at, "seed": seed}) for task in tasks for seed in range(seeds)]


def run_cells(stage: CellStage, cells: Sequence[Cell], engine: Engine) -> Results:
    """Do the unfinished cells; return the results in order, and the failed cells.

    The cells are done in a nearly random order, so that the finished cells show at any time how long the rest will
    take.
    """
    if len({cell.record_name for cell in cells}) < len(cells):
        message = "two cells of the study are the same"
        raise WorkError(message)
    mixed = sorted(cells, key=lambda cell: mark_of(cell.record_name))
    failed: tuple[str, ...] = ()
    try:
        run(stage, mixed, engine)
    except UserError:  # whatever a cell failed by, the others have figures
        place = stage.work_folder()
        notes = (place.read(f"failed/{name}", Failed) for name in place.names("failed"))
        failed = tuple(note.sentence for note in notes if note is not None)
        if not failed:
            raise
    records = [record.as_dict() for cell in cells if (record := stage.read(cell)) is not None]
    return Results(records, failed)
