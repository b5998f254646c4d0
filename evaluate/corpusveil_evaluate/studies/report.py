"""The report of a study: tables and checks, as a page and as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from corpusveil import __version__
from corpusveil.storage import files
from corpusveil_evaluate.report.page import Block, render_blocks
from corpusveil_evaluate.statistics.statistic import statistics
from corpusveil_evaluate.studies.cells import Results, SeedMean, finite
from corpusveil_evaluate.studies.claims import Check

BESIDE = "Beside the paper"
SAME = {True: "yes", False: "no", None: "not shown by this run"}


@dataclass(frozen=True, slots=True)
class Table:
    """Figures with a title. Cells of rows are text, numbers, ``Figure`` or None (a dash)."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    empty: str = "no cell of this run has these figures"
    """Why there is no row, if there is none."""

    @property
    def said(self) -> tuple[str, ...]:
        """The notes, after the reason of an empty table."""
        return self.notes if self.rows else (f"No rows: {self.empty}.", *self.notes)


@dataclass(frozen=True, slots=True)
class Account:
    """The report of a study."""

    tables: tuple[Table, ...]
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()


def write_account(
    account: Account, name: str, paper: str, grid: BaseModel, results: Results, folder: str, *, private: bool = False
) -> str:
    """Write ``study.html`` and ``study.json`` into the study's folder; return the page's address.

    ``private`` files get mode 0600 on a local disk.
    """
    document = {
        "study": name,
        "paper": paper,
        "version": __version__,
        "grid": grid.model_dump(mode="json"),
        "tables": [dataclasses.asdict(table) for table in account.tables],
        "checks": [dataclasses.asdict(check) for check in account.checks],
        "notes": account.notes,
        "cells": list(results.records),
    }
    encoded = (json.dumps(finite(document), indent=1, default=str, allow_nan=False) + "\n").encode()
    files.write_bytes(files.join(folder, "study.json"), encoded, private=private)
    page = files.join(folder, "study.html")
    files.write_bytes(page, render(account, name, paper).encode(), private=private)
    return page


def render(account: Account, name: str, paper: str) -> str:
    """Return the page."""
    heads = ("Claim", "Paper says", "This run shows", "Slack or threshold", "Same direction?", "What differs")
    compared = [(one.claim, one.paper, one.seen, one.slack, verdict(one), one.differs) for one in account.checks]
    checked = Block("Comparison with the paper", heads=heads, rows=compared)
    blocks = [checked] if account.checks else []
    for table in account.tables:
        numbers = [at for row in table.rows[:1] for at, value in enumerate(row) if is_number(value)]
        rows = [[shown(value) for value in row] for row in table.rows]
        blocks.append(Block(table.title, heads=table.columns, rows=rows, numbers=numbers, notes=table.said))
    blocks.append(Block("How this was measured", notes=account.notes))
    intro = f"After {paper}. Private versions of the texts were made under public keys, measured and deleted."
    return render_blocks(f"Study {name}", intro, blocks)


def verdict(check: Check) -> str:
    """Write whether the direction is the paper's, or why this run does not show it."""
    return f"{SAME[check.same]}: {check.why}" if check.why else SAME[check.same]


def is_number(value: Any) -> bool:
    """Say whether a table's entry is a figure."""
    return isinstance(value, (int, float, SeedMean)) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """Write a table's entry."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def lines(account: Account) -> Iterator[str]:
    """Yield tables and checks as text."""
    for table in account.tables:
        yield f"\n{table.title}"
        rows = [[shown(value) for value in row] for row in table.rows]
        sizes = [max(len(row[at]) for row in [list(table.columns), *rows]) for at in range(len(table.columns))]
        for row in [list(table.columns), *rows]:
            yield ("  " + "  ".join(text.ljust(min(size, 64)) for text, size in zip(row, sizes, strict=True)).rstrip())
        yield from (f"  {note}" for note in table.said)
    if account.checks:
        yield f"\n{BESIDE}"
    for check in account.checks:
        yield f"  {check.claim}: {verdict(check)}"
        yield f"    paper: {check.paper}; here: {check.seen} ({check.slack})"
        yield f"    {check.differs}"


def statistics_table(results: Results) -> Table | None:
    """Return every statistic of private texts, also one that no study names; None if no cell compares texts.

    The cells are those of the kind ``task``, each of which makes one private version of a task; figures are means over
    tasks and seeds.
    """
    cells = results.where("task")
    measured = [statistic for statistic in statistics() if statistic.key and cells.values(statistic.key)]
    if not measured:
        return None
    names = list(dict.fromkeys(name for cell in cells.records for name in cell["options"]))
    names = [name for name in names if name not in ("task", "seed")]
    settings: list[dict[str, Any]] = []
    for cell in cells.records:
        setting = {name: cell["options"].get(name) for name in names}
        if setting not in settings:
            settings.append(setting)

    def told(option: Any) -> Any:
        return ", ".join(f"{name} {value}" for name, value in option.items()) if isinstance(option, Mapping) else option

    rows = [
        (*map(told, setting.values()), *(cells.where(**setting).figure(str(one.key)) for one in measured))
        for setting in settings
    ]
    return Table("Statistics of private texts", (*names, *(statistic.name for statistic in measured)), rows)
