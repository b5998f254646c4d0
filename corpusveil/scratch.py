"""Arrays to work in that are kept from call to call: of fresh memory every 4 KiB that are written cost a page fault."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_KEPT = 64 << 20
"""The largest array that is kept, in bytes; one for an unusually long text is not."""


class Scratch(threading.local):
    """Arrays by name, of each thread its own. What is in one is lost when its name is asked for again."""

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
