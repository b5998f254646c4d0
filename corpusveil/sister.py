"""The way from this package to ``corpusveil-evaluate``, a distribution of its own: modules are imported by name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from corpusveil.errors import PackageError

if TYPE_CHECKING:
    from types import ModuleType

EVALUATE = "corpusveil_evaluate"
MISSING = (
    "Evaluation is a package of its own: in a clone pip install . ./evaluate, and from an index pip install "
    "'corpusveil[evaluate]'."
)


def imported(module: str) -> ModuleType:
    """Import a module of either package. Raises PackageError if it is of the other one, which is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != EVALUATE:
            raise
        raise PackageError(MISSING) from None
