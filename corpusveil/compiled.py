"""How the innermost loops are compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np

from corpusveil.ownership import refuse_others

if numba.config.CACHE_DIR and Path(numba.config.CACHE_DIR).exists():
    # Compiled loops are loaded from here and run: as trusted as the code, so as closed to others (NUMBA_CACHE_DIR).
    refuse_others(Path(numba.config.CACHE_DIR), link=True)

compiled: Any = numba.njit(cache=True, nogil=True, _nrt=False, no_cfunc_wrapper=True)
"""Compile a function that makes no array. Other threads, of leases and signals, continue while it runs.

Without numba's reference counting: it counts every array that one compiled function hands to another, which took up to
three quarters of the time of loops that call small functions for each token.
"""

called: Any = numba.njit(cache=True, nogil=True, _nrt=False, no_cfunc_wrapper=True, no_cpython_wrapper=True)
"""Compile a function that only compiled functions call: called from Python, it crashes.

It has no entry from Python, which would take long to compile for each array argument, and to optimize again in every
caller. Arguments of the same type at every call save as much: ``np.int64(0)``, since a literal is a type.
"""

inlined: Any = numba.njit(
    cache=True, nogil=True, _nrt=False, forceinline=True, no_cfunc_wrapper=True, no_cpython_wrapper=True
)
"""Compile a function of a few instructions into its callers, which are compiled, too: where it runs for each word."""

u: Any = np.uint64
"""An index that is never negative: ``array[u(i)]``. Of a signed one numba first asks whether it counts from the end."""
