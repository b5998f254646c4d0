"""How the innermost loops are compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba

from corpusveil.ownership import refuse_others

if numba.config.CACHE_DIR and Path(numba.config.CACHE_DIR).exists():
    # Compiled loops are loaded from here and run: as trusted as the code, so as closed to others (NUMBA_CACHE_DIR).
    refuse_others(Path(numba.config.CACHE_DIR), link=True)

compiled: Any = numba.njit(cache=True, nogil=True, _nrt=False)
"""Compile a function that makes no array. Other threads go on while it runs: those of leases and signals.

Without numba's reference counting: it counts every array that one compiled function hands to another, which took up to
three quarters of the time of loops that call small functions for each token.
"""

inlined: Any = numba.njit(cache=True, nogil=True, _nrt=False, forceinline=True)
"""Compile a function of a few instructions into its callers, where it runs for each word."""
