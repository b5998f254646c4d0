"""All readers that are fuzzed, by name: each file here that has a function ``readers``."""

from __future__ import annotations

import base64
import functools
import importlib
import json
import pkgutil
import zlib
from pathlib import Path

import fuzz
from fuzz.invariant import Reader

_PROGRAMS = ("__main__", "worker", "readers")

READERS: dict[str, Reader] = {
    reader.name: reader
    for module in pkgutil.iter_modules(fuzz.__path__)
    if module.name not in _PROGRAMS
    for reader in getattr(importlib.import_module(f"fuzz.{module.name}"), "readers", list)()
}


@functools.cache
def found() -> tuple[tuple[str, bytes, str], ...]:
    """Return every finding: ``found.json`` has the inputs, compressed, as base64, and says what each is."""
    kept = json.loads(Path(__file__).with_name("found.json").read_text())
    return tuple((row["reader"], zlib.decompress(base64.b64decode(row["data"])), row["said"]) for row in kept)
