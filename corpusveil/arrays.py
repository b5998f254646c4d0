"""Arrays by the type of their values, as annotations name them (docstrings give shapes, as int32 [V, d]); scratch."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

Bool = npt.NDArray[np.bool_]
Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]
UInt64 = npt.NDArray[np.uint64]
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]

MOST_KEPT = 64 << 20
"""The largest array that is kept, in bytes; one for an unusually long text is not."""


class Scratch(threading.local):
    """Arrays to work in, by name, one set per thread, lost when a name is asked for again."""

    def __init__(self) -> None:
        self._kept: dict[str, npt.NDArray[Any]] = {}

    def array(self, name: str, size: int, kind: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array [size] of a type, of any content."""
        kept = self._kept.get(name)
        if kept is None or kept.size < size or kept.dtype != kind:
            kept = np.empty(size, dtype=kind)
            if kept.nbytes <= MOST_KEPT:
                self._kept[name] = kept
        return kept[:size]
