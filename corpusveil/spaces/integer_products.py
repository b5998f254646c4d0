"""Products of vectors in integers of eight bits: several times as fast as float32, and exact.

A vector x becomes s q, with q int8 in -127 ... 127 and s = max |x_j| / 127. By the inequality of Cauchy and Schwarz

    |<x, y> - s t <q, r>|  <=  |x - s q| |y| + |s q| |y - t r|,

and the lengths of the rounding errors are computed, not estimated. The product <q, r> is a sum of integers: it has no
rounding and no order. On a processor with AVX-512 VNNI our own loop computes it (``byte_products.py``); elsewhere
NumPy's float32 products are faster, and are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.arrays import Float32, Float64, Int8, UInt8
from corpusveil.compiled import njit
from corpusveil.spaces.byte_products import COLUMNS, TOGETHER, pack_all

LARGEST = 127
MULTIPLE = 32
"""Dimensions are filled up to a multiple of this."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantized:
    """Vectors as ``scales * values``.

    Attributes: values: int8 [n, d'], d' the dimensions filled up with zeros to a multiple of 32. scales: float32 [n].
        lost: float64 [n], at least the length of the rounding error.
    """

    values: Int8
    scales: Float32
    lost: Float64

    @classmethod
    def of(cls, vectors: npt.NDArray[Any], offset: Float64) -> Quantized:
        """Quantize vectors less ``offset``: float32 or float64 [n, d], float64 [d]."""
        n, d = vectors.shape
        values = np.zeros((n, -(-d // MULTIPLE) * MULTIPLE), np.int8)
        scales, lost = np.empty(n, np.float32), np.empty(n)
        _quantize(vectors, offset, values, scales, lost)
        return cls(values, scales, lost * (1 + 2.0**-40))


@njit(nogil=True, cache=True)
def _quantize(vectors: Any, offset: Any, values: Any, scales: Any, lost: Any) -> None:
    for i in range(vectors.shape[0]):
        largest = 0.0
        for j in range(vectors.shape[1]):
            largest = max(largest, abs(vectors[i, j] - offset[j]))
        scale = np.float64(np.float32(largest / LARGEST))
        scales[i] = scale
        total = 0.0
        for j in range(vectors.shape[1]):
            value = vectors[i, j] - offset[j]
            whole = min(max(np.rint(value / scale), -LARGEST), LARGEST) if scale > 0 else 0.0
            values[i, j] = np.int8(whole)
            gap = value - scale * whole
            total += gap * gap
        lost[i] = math.sqrt(total)


def packed(words: Int8) -> UInt8:
    """Lay words, int8 [V, d'], out for ``byte_products``: uint8 [V / 64 rounded up, d' / 4, 64, 4]."""
    n, d = words.shape
    panels = np.empty((-(-n // COLUMNS), d // TOGETHER, COLUMNS, TOGETHER), np.uint8)
    pack_all(words, panels)
    return panels
