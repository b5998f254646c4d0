"""The results of a study in files: a page, JSON, and a CSV file per table."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from corpusveil import __version__
from corpusveil.evaluation.report.line_charts import legend, line_chart
from corpusveil.storage import files
from corpusveil.transforms.pages import environment
from corpusveil_studies.cells import Results, SeedMean, finite
from corpusveil_studies.study import Account, Check, Grid, Study, Table

TABLES = "tables"
BESIDE = "Beside the paper"
SAME = {True: "yes", False: "no", None: "not shown by this run"}


def write_account(
    account: Account, study: Study, grid: Grid, results: Results, folder: str, *, private: bool = False
) -> str:
    """Write ``study.html``, ``study.json`` and ``tables/*.csv`` into the study's folder; return the page's address.

    ``private`` files get mode 0600 on a local disk.
    """
    document = {
        "study": study.name,
        "paper": study.paper,
        "version": __version__,
        "grid": grid.model_dump(mode="json"),
        "tables": [dataclasses.asdict(table) for table in account.tables],
        "checks": [dataclasses.asdict(check) for check in account.checks],
        "notes": account.notes,
        "cells": list(results.records),
    }
    encoded = (json.dumps(finite(document), indent=1, default=str, allow_nan=False) + "\n").encode()
    files.write_bytes(files.join(folder, "study.json"), encoded, private=private)
    tables = (*account.tables, _of_checks(account.checks))
    for name, content in zip(file_names([table.title for table in tables]), tables, strict=True):
        files.write_bytes(files.join(folder, TABLES, name), as_csv(content), private=private)
    page = files.join(folder, "study.html")
    files.write_bytes(page, render(account, study).encode(), private=private)
    return page


def file_names(titles: Sequence[str]) -> list[str]:
    """Return a name for the file of each table; no two are the same, also where titles begin alike."""
    names: list[str] = []
    for title in titles:
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:100].rstrip("-")
        again = sum(earlier.removesuffix(".csv").split("--")[0] == name for earlier in names)
        names.append(f"{name}--{again + 1}.csv" if again else f"{name}.csv")
    return names


def render(account: Account, study: Study) -> str:
    """Return the page."""
    charts = []
    for chart in account.charts:
        lines = {name: [(x, mean) for x, mean, _ in points] for name, points in chart.lines.items() if len(points) > 1}
        spread = {name: [deviation for _, _, deviation in points] for name, points in chart.lines.items()}
        if lines:
            svg = line_chart(lines, chart.x, chart.y, top=chart.top, spread=spread)
            charts.append((chart.title, Markup(svg), Markup(legend(list(lines)))))  # noqa: S704 - escaped there
    template = environment("corpusveil_studies", "study.html").get_template("study.html")
    return template.render(account=account, study=study, charts=charts, same=SAME, shown=shown, number=is_number)


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


def as_csv(table: Table) -> bytes:
    """Return a table as CSV; a figure takes three columns: mean, deviation, number."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    wide = [any(isinstance(row[at], SeedMean) for row in table.rows) for at in range(len(table.columns))]
    head: list[str] = []
    for name, three in zip(table.columns, wide, strict=True):
        head += [name, f"{name}, deviation", f"{name}, number"] if three else [name]
    writer.writerow(head)
    for row in table.rows:
        line: list[Any] = []
        for value, three in zip(row, wide, strict=True):
            if isinstance(value, SeedMean):
                line += [value.mean, value.deviation, value.count]
            else:
                line += [value, None, None] if three else [value]
        writer.writerow(line)
    return out.getvalue().encode()


def lines(account: Account, width: int = 16) -> Iterator[str]:
    """Yield tables and checks as text."""
    for table in account.tables:
        yield f"\n{table.title}"
        rows = [[shown(value) for value in row] for row in table.rows]
        sizes = [max(len(row[at]) for row in [list(table.columns), *rows]) for at in range(len(table.columns))]
        for row in [list(table.columns), *rows]:
            yield (
                "  "
                + "  ".join(text.ljust(min(size, 4 * width)) for text, size in zip(row, sizes, strict=True)).rstrip()
            )
        yield from (f"  {note}" for note in table.notes)
    yield f"\n{BESIDE}"
    for check in account.checks:
        yield f"  {check.claim}: {SAME[check.same]}"
        yield f"    paper: {check.paper}; here: {check.seen}"
        yield f"    {check.differs}"


def _of_checks(checks: tuple[Check, ...]) -> Table:
    rows = [(check.claim, check.paper, check.seen, SAME[check.same], check.differs) for check in checks]
    columns = ("claim", "paper says", "we see", "same direction?", "what differs")
    return Table(BESIDE, columns, rows)
