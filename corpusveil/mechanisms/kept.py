"""Complete tables of rows, kept in the user's cache by content hash and mapped into memory by all processes.

A table is kept when ``corpusveil compile`` asks for it, with the rows of *all* words: tables that are built on the way
have the rows of the words that occurred, which a cache must not give away.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.errors import WorkError
from corpusveil.spaces.formats.table import BROKEN_ARRAY
from corpusveil.storage.files import cache_folder, cache_path
from corpusveil.storage.shapes import fits

VERSION = 1
"""Goes up whenever the same law would give other integers."""
NAMES = ("own", "scales", "totals")

Arrays = tuple[npt.NDArray[np.uint64], npt.NDArray[np.float64], npt.NDArray[np.uint64]]


def key_of(**what: Any) -> str:
    """Return the name of a table: a digest of everything that decides its integers."""
    return hashlib.sha256(json.dumps({"version": VERSION, **what}, sort_keys=True).encode()).hexdigest()[:32]


def _folder(key: str) -> Path:
    return cache_path() / "tables" / key


def find(key: str) -> Arrays | None:
    """Return the arrays of a kept table, read-only and mapped; None when there is none, or none that is whole."""
    folder = _folder(key)
    try:
        told = json.loads((folder / "_artifact.json").read_text())
        arrays = [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False).view(np.ndarray) for name in NAMES]
    except BROKEN_ARRAY:  # no home, no file, no array
        return None
    if not fits(told, {"digest": str}) or told["digest"] != _digest(arrays):
        return None
    own, scales, totals = arrays
    return own, scales, totals


def keep(key: str, arrays: Arrays) -> Path:
    """Keep a table; return where. Whole or not at all. Raises WorkError where it can't be written."""
    cache_folder()
    folder = _folder(key)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
        try:
            for name, array in zip(NAMES, arrays, strict=True):
                np.save(made / f"{name}.npy", array, allow_pickle=False)
            (made / "_artifact.json").write_text(json.dumps({"kind": "rows", "digest": _digest(arrays)}) + "\n")
            if folder.exists():
                shutil.rmtree(folder)  # one that is not whole
            os.replace(made, folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        if find(key) is None:  # another process may have kept it just now
            raise WorkError(f"{folder}: the table could not be kept ({error.strerror}).") from None
    return folder


def _digest(arrays: Any) -> str:
    state = hashlib.blake2b(digest_size=16)
    for array in arrays:
        state.update(np.ascontiguousarray(array).view(np.uint8).data)
    return state.hexdigest()
