"""Cells of a table of the documentation: tests record them, one line of JSON each, and a module prints the page."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
VARIABLE = "CORPUSVEIL_CELLS"


def note(cell: Any) -> None:
    """Add a cell, a dataclass, to the file that the environment names, if it does."""
    path = os.environ.get(VARIABLE)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(cell)) + "\n")


def read_cells(path: str, kind: Callable[..., T]) -> list[T]:
    """Return the cells of a file."""
    return [kind(**json.loads(line)) for line in Path(path).read_text(encoding="utf-8").splitlines()]
