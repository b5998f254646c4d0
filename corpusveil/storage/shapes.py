"""What JSON that was written down has to look like when it is read again: files are changed, cut and mixed up."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Shape = Any
"""A type; None; a dictionary of names that have to be there; a list of one shape; a tuple of alternatives; a test."""


@dataclass(frozen=True, slots=True)
class Each:
    """An object of any names, whose values are all of one shape."""

    shape: Shape


def parsed(data: bytes) -> Any:
    """Return what a JSON text says; None where it is no JSON, or nested so deep that nothing of ours can be in it."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def fits(value: Any, shape: Shape) -> bool:
    """Say whether a value is of a shape."""
    if shape is None or shape is float or shape is int:
        return value is None if shape is None else type(value) is int or (shape is float and type(value) is float)
    if isinstance(shape, type):
        return isinstance(value, shape)
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(name in value and fits(value[name], one) for name, one in shape.items())
    if isinstance(shape, Each):
        return isinstance(value, dict) and all(fits(one, shape.shape) for one in value.values())
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(one, shape[0]) for one in value)
    if isinstance(shape, tuple):
        return any(fits(value, one) for one in shape)
    test: Callable[[Any], bool] = shape
    return test(value)


def row(*shapes: Shape) -> Callable[[Any], bool]:
    """Return the test of a list that has exactly these, one after the other."""

    def test(value: Any) -> bool:
        return isinstance(value, list) and len(value) == len(shapes) and all(map(fits, value, shapes))

    return test


def line(value: Any) -> bool:
    """Say whether a value is text that can be shown on one line."""
    return isinstance(value, str) and value.isprintable()
