"""Readings of studies' figures: rising, above, learned at all, within chance."""

from __future__ import annotations

import math
from collections.abc import Iterable

from corpusveil_studies.cells import Results


def is_rising(values: Iterable[float | None], slack: float = 0.0) -> bool | None:
    """Say whether the last of some values is above the first by more than ``slack``; None if a value is missing."""
    known = list(values)
    if len(known) < 2 or known[0] is None or known[-1] is None:
        return None
    return known[-1] - known[0] > slack


def is_above(first: float | None, second: float | None, slack: float) -> bool | None:
    """Say whether one value is above the other; None if one is missing, or if they are within the slack."""
    if first is None or second is None or abs(first - second) <= slack:
        return None
    return first > second


def largest_error(texts: float) -> float:
    """Return the largest standard error of a difference of two accuracies, each over this many texts."""
    return math.sqrt(0.5 / texts)


def learns(known: Results, texts: float, prefix: str = "", measure: str = "accuracy") -> bool:
    """Say whether baselines are above the constant classifier by more than chance over this many texts.

    If they are not, noise cannot reduce them, and a comparison of the results has no meaning.
    """
    floors = {"accuracy": "floor", "macro_f1": "floor_macro_f1"}
    whole, floor = (known.mean(f"{prefix}original-original:{score}") for score in (measure, floors[measure]))
    return is_above(whole, floor, largest_error(texts)) is True


def side_by_side(values: Iterable[float | None], digits: int = 2) -> str:
    """Write figures side by side, as reference values are written."""
    return " ".join("-" if value is None else f"{value:.{digits}f}" for value in values)
