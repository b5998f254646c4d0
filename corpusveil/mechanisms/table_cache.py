"""Complete tables of rows, kept in the user's cache by content hash and mapped into memory by all processes.

``corpusveil compile`` keeps a table with the rows of *all* words. A table that is built during a run has the rows of
the words that occurred, which a cache must not disclose.

Anyone who could change a table would decide what a mechanism writes, whatever guarantee is printed. So a table is used
only if no other user may write to it (``storage/home.py``), and only under the user's own signature: BLAKE2b of its
name and its arrays under a secret outside the cache. Any other table is ignored, and its rows are computed again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from corpusveil.arrays import Float64, UInt64
from corpusveil.errors import SecretError, StoreError
from corpusveil.ownership import refuse_others
from corpusveil.storage.artifacts import ARTIFACT
from corpusveil.storage.failures import BROKEN_ARRAY
from corpusveil.storage.files import PRIVATE_MODE
from corpusveil.storage.home import cache_folder, cache_path, cache_secret
from corpusveil.storage.records import Record

VERSION = 1
"""Increased whenever the same law would give other integers."""
NAMES = ("own", "scales", "totals")


class Signed(Record):
    """The signature of a table in the cache."""

    kind: str = "rows"
    signature: str


RowArrays = tuple[UInt64, Float64, UInt64]


def key_of(**what: Any) -> str:
    """Return the name of a table: a digest of everything that decides its integers."""
    return hashlib.sha256(json.dumps({"version": VERSION, **what}, sort_keys=True).encode()).hexdigest()[:32]


def _folder(key: str) -> Path:
    return cache_path() / "tables" / key


def read_table(key: str) -> RowArrays | None:
    """Return the arrays of a kept table, read-only and mapped; None if this user signed no such table.

    Raises UserError if others may write to it.
    """
    try:
        folder = _folder(key)
        if not folder.is_dir():
            return None
        refuse_others(cache_path(), link=True)
        for path in (folder.parent, folder, *folder.iterdir()):
            refuse_others(path)
        signed = Signed.of((folder / ARTIFACT).read_bytes())
        arrays = [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False).view(np.ndarray) for name in NAMES]
    except BROKEN_ARRAY:  # no home, no file, no array
        return None
    secret = cache_secret()
    if secret is None or signed is None:
        return None
    if not hmac.compare_digest(signed.signature.encode(), _signature(secret, key, arrays).encode()):
        return None
    own, scales, totals = arrays
    return own, scales, totals


def save_table(key: str, arrays: RowArrays) -> Path:
    """Keep a table, completely or not at all; return its address.

    Raises UserError if others may write to the cache, WorkError if it cannot be written.
    """
    tables = cache_folder("tables")
    secret = cache_secret(make=True)
    if secret is None:
        raise SecretError(
            "The table cannot be signed, since its secret cannot be read; set XDG_CONFIG_HOME to a folder of yours."
        )
    folder = _folder(key)
    signed = Signed(kind="rows", signature=_signature(secret, key, arrays))
    try:
        made = Path(tempfile.mkdtemp(prefix=".making-", dir=tables))
        try:
            for name, array in zip(NAMES, arrays, strict=True):
                np.save(made / f"{name}.npy", array, allow_pickle=False)
            (made / ARTIFACT).write_bytes(signed.data() + b"\n")
            for path in made.iterdir():
                path.chmod(PRIVATE_MODE)
            if folder.exists():
                shutil.rmtree(folder)  # an incomplete table
            os.replace(made, folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        if read_table(key) is None:  # another process may have kept it just now
            raise StoreError(f"{folder}: the table could not be cached ({error.strerror}).") from None
    return folder


def _signature(secret: bytes, key: str, arrays: Any) -> str:
    """Return the signature of these arrays as the table of that name."""
    state = hashlib.blake2b(key.encode() + b"\0", key=secret, person=b"rows of a table")
    for array in arrays:
        state.update(f"{array.dtype.str} {array.shape}\0".encode())
        state.update(np.ascontiguousarray(array).view(np.uint8).data)
    return state.hexdigest()
