"""stub for wt-core; the recognizers' branch has the real one."""

from __future__ import annotations

from typing import Any

from corpusveil.text.spans import OfFunction


def make(name: Any, space: Any) -> Any:
    if callable(name):
        return OfFunction(f"{name.__module__}:{name.__qualname__}", name)
    import importlib

    module, _, function = name.partition(":")
    return OfFunction(name, getattr(importlib.import_module(module), function))


def identity(name: Any) -> str:
    return name if isinstance(name, str) else f"{name.__module__}:{name.__qualname__}"


def terms(name: Any) -> bytes | None:
    return None
