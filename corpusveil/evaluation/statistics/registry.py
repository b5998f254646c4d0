"""Statistics by name. Every module of the packages with statistics is imported; there is no list to edit."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from corpusveil.evaluation.statistics.figure import Figure
from corpusveil.evaluation.statistics.statistic import Evidence, Statistic

ROOMS = tuple(f"corpusveil.evaluation.{room}" for room in ("statistics", "language", "utility", "attacks"))

_BY_NAME: dict[str, Statistic] = {}


def register(name: str, **fields: Any) -> Statistic:
    """Enter a statistic of these ``fields`` (``Statistic``) under its name, and return it."""
    statistic = Statistic(name=name, **fields)
    if _BY_NAME.setdefault(name, statistic) is not statistic:
        message = f"two statistics are named {name}"
        raise ValueError(message)
    return statistic


@functools.cache
def _load_all() -> None:
    for room in ROOMS:
        for module in pkgutil.iter_modules(importlib.import_module(room).__path__):
            importlib.import_module(f"{room}.{module.name}")


def statistics() -> list[Statistic]:
    """Return all statistics in the order in which reports show them."""
    _load_all()
    return sorted(_BY_NAME.values(), key=lambda statistic: (statistic.place, statistic.name))


def find(name: str) -> Statistic:
    """Return a statistic by its name; for an unknown name, a statistic with only this name."""
    _load_all()
    return _BY_NAME.get(name) or Statistic(name=name)


def compared() -> list[Statistic]:
    """Return the statistics that compare mechanisms at equal risk, in order of rank."""
    return sorted(
        (statistic for statistic in statistics() if statistic.compared), key=lambda statistic: statistic.compared
    )


def of_texts(evidence: Evidence) -> Iterator[Figure]:
    """Yield every statistic of originals and private texts that a report shows."""
    for statistic in statistics():
        if statistic.group:
            yield from statistic.measures(evidence)


def of_measures(measures: Sequence[Figure]) -> Iterator[Figure]:
    """Yield the figures combined from those of the release itself, by the first of several models."""
    released: dict[str, Figure] = {}
    for measure in measures:
        if measure.epsilon is None:
            released.setdefault(measure.name, measure)
    for statistic in statistics():
        for reading in statistic.combine(released) if statistic.combine is not None else ():
            yield statistic.measure(reading)


def by_key(evidence: Evidence) -> Mapping[str, float]:
    """Return the statistics of texts by their keys in the records of studies."""
    readings = {statistic.key: statistic.value(evidence) for statistic in statistics() if statistic.key}
    return {key: reading.value for key, reading in readings.items() if reading is not None}
