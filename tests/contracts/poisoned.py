"""A process whose math libraries are wrong: what draws must not depend on them, since two machines have two."""

from __future__ import annotations

import ast
import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from corpusveil.mechanisms import exponential_rows

NAMES = ("exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "pow", "power", "float_power", "sin", "cos", "tan")
WRONG_BY = 0.01
"""Far more than the ulp by which libraries differ, so that some thousands of draws show it."""


def forget() -> None:
    """Forget every table that was made, so that it is made again."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("corpusveil.budget", "corpusveil.kernel", "corpusveil.mechanisms", "corpusveil.sampling")):
            for value in vars(module).values():
                clear = getattr(value, "cache_clear", None)
                if clear is not None and not name.endswith("registry"):
                    clear()
    exponential_rows._cache.clear()


def wrong(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is wrong by its argument: a factor of its result would cancel in a law."""
    return lambda first, *given, **named: function(first * (1 + WRONG_BY), *given, **named)


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """Let every function of ``math`` and numpy that rounds as it likes be wrong, and forget all tables, also after."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (math, np):
            for name in NAMES:
                if hasattr(module, name):
                    patch.setattr(module, name, wrong(getattr(module, name)))
        forget()
        yield
    forget()


def powers(source: str) -> list[int]:
    """Return the lines of a module with a power, but for squares and whole powers that are written there.

    ``math.e**x`` is C's ``pow``, which no lint rule sees and which nobody can patch.
    """
    return [
        node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.expr | ast.stmt) and _is_power(node)
    ]


def _is_power(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(_, ast.Pow(), ast.Constant(2)):
            return False
        case ast.BinOp(ast.Constant(2 | 2.0 | 10), ast.Pow(), exponent):
            exponent = exponent.operand if isinstance(exponent, ast.UnaryOp) else exponent
            return not (isinstance(exponent, ast.Constant) and isinstance(exponent.value, int))
        case ast.BinOp(_, ast.Pow(), _) | ast.AugAssign(_, ast.Pow(), _) | ast.Call(ast.Name("pow" | "complex")):
            return True
        case ast.Attribute(_, "__pow__" | "__rpow__" | "__ipow__"):
            return True
    return False
