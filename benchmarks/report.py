"""Tables as in docs/figures.md, with the load of the machine during the measurement."""

import os
import platform
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any


class Skipped(Exception):
    """A requirement of a benchmark is not on this machine; the message names it."""


def load() -> str:
    """Return the load averages of the last 1 and 5 minutes."""
    one, five, _ = os.getloadavg()
    return f"{one:.1f}, {five:.1f}"


def machine() -> str:
    """Return the machine in words: cores, processor, system, and versions of what does the work."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    processor = next(named, platform.processor() or "an unnamed processor")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "numba", "pyarrow"))
    system = f"{platform.system()} {platform.machine()}"
    return f"{os.cpu_count()} cores of {processor}, {system}; Python {platform.python_version()}, {versions}"


@dataclass
class Table:
    """Figures by row, and sentences below them."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    load_before: str = field(default_factory=load)

    def __str__(self) -> str:
        cells = [self.columns, *(tuple(show(value) for value in row) for row in self.rows)]
        widths = [max(len(row[at]) for row in cells) for at in range(len(self.columns))]
        lines = [
            "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
            for row in cells
        ]
        lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        said = [*self.notes, f"Load average before {self.load_before}; after {load()} (1 and 5 minutes)."]
        return "\n".join([f"## {self.title}", "", *lines, "", *(f"* {sentence}" for sentence in said)])


def show(value: Any) -> str:
    """Return a figure with three or four significant digits."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return str(value)
    if value != value:  # noqa: PLR0124 - not a number: not measured
        return "–"
    if abs(value) >= 1e6:
        return f"{value / 1e6:.2f} M"
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1000 else f"{value:.3g}"
