"""All readers that are fuzzed, by name: each file here that has a function ``readers``."""

from __future__ import annotations

import importlib
import pkgutil

import fuzz
from fuzz.invariant import Reader

_PROGRAMS = ("__main__", "found", "worker", "readers")

READERS: dict[str, Reader] = {
    reader.name: reader
    for module in pkgutil.iter_modules(fuzz.__path__)
    if module.name not in _PROGRAMS
    for reader in getattr(importlib.import_module(f"fuzz.{module.name}"), "readers", list)()
}
