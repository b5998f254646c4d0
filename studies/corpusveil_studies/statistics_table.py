"""Every statistic in a study's cells, in one table, which includes new statistics without an edit of the study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corpusveil.evaluation.statistics import registry
from corpusveil_studies.cells import Results
from corpusveil_studies.study import Table

OVER = ("task", "seed")
"""Options over which figures are averaged."""


def statistics_table(results: Results) -> Table | None:
    """Return the statistics of private texts, a row for each mechanism and epsilon; None if no cell compares texts.

    The cells are those of the kind ``task``, each of which makes one private version of a task.
    """
    cells = results.where("task")
    statistics = [statistic for statistic in registry.statistics() if statistic.key and cells.values(statistic.key)]
    if not statistics:
        return None
    names = list(dict.fromkeys(name for cell in cells.records for name in cell["options"] if name not in OVER))
    settings: list[dict[str, Any]] = []
    for cell in cells.records:
        setting = {name: cell["options"].get(name) for name in names}
        if setting not in settings:
            settings.append(setting)
    rows = [
        (
            *(_shown(value) for value in setting.values()),
            *(cells.where(**setting).figure(statistic.key) for statistic in statistics),
        )
        for setting in settings
    ]
    return Table("Statistics of private texts", (*names, *(statistic.name for statistic in statistics)), rows)


def _shown(option: Any) -> Any:
    if isinstance(option, Mapping):
        return ", ".join(f"{name} {value}" for name, value in option.items())
    return option
