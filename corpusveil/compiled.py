"""The options that the innermost loops are compiled with, by numba, which keeps machine code next to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from corpusveil.errors import PackageError
from corpusveil.ownership import refuse_others

if numba.config.DISABLE_JIT:
    raise PackageError("NUMBA_DISABLE_JIT is set, and loops of corpusveil only run compiled; unset it.")
if numba.config.CACHE_DIR and Path(numba.config.CACHE_DIR).exists():
    # Compiled loops are loaded from here and run: as trusted as the code, so as closed to others (NUMBA_CACHE_DIR).
    refuse_others(Path(numba.config.CACHE_DIR), link=True)


def _can_keep() -> bool:
    try:
        numba.njit(cache=True)(_can_keep)
    except RuntimeError:  # neither the package nor a home can be written
        return False
    return True


KEEPS = _can_keep()
"""Whether numba can keep machine code. Where it cannot, each process compiles for itself."""


def njit(**options: Any) -> Any:
    """Compile as ``numba.njit`` does; keep the machine code where that is possible, and let other threads run."""
    return numba.njit(cache=KEEPS, nogil=True, **options)


compiled: Any = njit(_nrt=False, no_cfunc_wrapper=True)
"""Compile a function that makes no array.

Without numba's reference counting: it counts every array that one compiled function hands to another, which took up to
three quarters of the time of loops that call small functions for each token.
"""

called: Any = njit(_nrt=False, no_cfunc_wrapper=True, no_cpython_wrapper=True)
"""Compile a function that only compiled functions call: called from Python, it crashes.

It has no entry from Python, which would take long to compile for each array argument, and to optimize again in every
caller. Arguments of the same type at every call save as much: ``np.int64(0)``, since a literal is a type.
"""

inlined: Any = njit(_nrt=False, forceinline=True, no_cfunc_wrapper=True, no_cpython_wrapper=True)
"""Compile a function of a few instructions into its callers, which are compiled, too: where it runs for each word."""


class _Memory:
    """Memory that numpy can make an array of, and its owner."""

    def __init__(self, data: npt.NDArray[Any]) -> None:
        self.data = data
        self.__array_interface__ = {**data.__array_interface__, "data": (data.ctypes.data, False)}


def for_loops(data: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the same memory as writable, so that loops that only read it are not compiled for another type."""
    return data if data.flags.writeable else np.asarray(_Memory(data))


u: Any = np.uint64
"""An index that is never negative: ``array[u(i)]``. Of a signed one numba first asks whether it counts from the end."""
