"""How the innermost loops are compiled."""

from __future__ import annotations

from typing import Any

import numba

compiled: Any = numba.njit(cache=True, nogil=True, _nrt=False)
"""Compile a function that makes no array. Other threads go on while it runs: those of leases and signals.

Without numba's reference counting: it counts every array that one compiled function hands to another, which took up to
three quarters of the time of loops that call small functions for each token.
"""
