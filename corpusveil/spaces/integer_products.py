"""Products of vectors in integers of eight bits: several times as fast as float32, and exact.

A vector x becomes s q, with q int8 in -127 ... 127 and s = max |x_j| / 127. By the inequality of Cauchy and Schwarz

    |<x, y> - s t <q, r>|  <=  |x - s q| |y| + |s q| |y - t r|,

and the lengths of the rounding errors are computed, not estimated. The product <q, r> is a sum of integers: it has no
rounding and no order, so a check of it has no tolerance. On a processor with AVX-512 VNNI our own loop computes it
(``byte_products.py``). PyTorch (the extra ``fast``) computes it on a GPU, and on processors with AMX. The fastest on
this machine is used; if none is faster than NumPy's float32 products, these are used.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import njit
from corpusveil.errors import InstallationError
from corpusveil.spaces import byte_products

VARIABLE = "CORPUSVEIL_TORCH"
"""``no``: PyTorch computes no products, although it is installed."""
LARGEST = 127
MULTIPLE = 32
"""Numbers of rows and of dimensions that GPUs want are multiples of 8 and above 16."""
FASTER = 1.2
"""In multiples of float32's speed on this machine; below this, float32 is used."""
TRIED = (1024, 4096, 320)
CHECKED = 64
"""One strip in this many is checked, including the first."""

Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]


class Multiply(Protocol):
    """Writes the products of some rows with words from ``first`` on: int8 [T, d], int -> int32 [T, W].

    Safe in several threads.
    """

    def __call__(self, left: Int8, first: int, out: Int32) -> None: ...


Maker = Callable[[Int8], Multiply]
"""From the words, int8 [V, d]: they are prepared once, and may stay on a GPU."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantized:
    """Vectors as ``scales * values``.

    Attributes: values: int8 [n, d'], d' the dimensions filled up with zeros to a multiple of 32. scales: float32 [n].
        lost: float64 [n], at least the length of the rounding error.
    """

    values: Int8
    scales: npt.NDArray[np.float32]
    lost: npt.NDArray[np.float64]

    @classmethod
    def of(cls, vectors: npt.NDArray[Any], offset: npt.NDArray[np.float64]) -> Quantized:
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


@functools.cache
def fastest() -> Maker | None:
    """Return a product that is faster than float32 on this machine, or None.

    The choice changes the time of a search, never its result.
    """
    makers: list[Maker] = [by_processor] if byte_products.FAST else []
    if os.environ.get(VARIABLE) != "no" and importlib.util.find_spec("torch") is not None:
        makers.append(by_torch)
    if not makers:
        return None
    rng = np.random.default_rng(0)
    rows, columns, d = TRIED
    left, right = (rng.integers(-LARGEST, LARGEST + 1, (n, d), dtype=np.int8) for n in (rows, columns))
    whole, floats = np.empty((rows, columns), np.int32), np.empty((rows, columns), np.float32)
    a, b = left.astype(np.float32), right.astype(np.float32)
    took: dict[Maker | None, float] = {None: _seconds(lambda: np.matmul(a, b.T, out=floats)) / FASTER}
    for make in makers:
        with contextlib.suppress(AttributeError, ImportError, NotImplementedError, RuntimeError):
            took[make] = _seconds(functools.partial(make(right), left, 0, whole))
    return min(took, key=lambda make: took[make])


def _seconds(work: Callable[[], object]) -> float:
    took = []
    for _ in range(4):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return min(took)


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """Our own product: fast if the processor has the instruction, and correct everywhere.

    Attributes:
        panels: uint8 [V / 64 rounded up, d' / 4, 64, 4], the words laid out for it.
    """

    panels: npt.NDArray[np.uint8]

    def __call__(self, left: Int8, first: int, out: Int32) -> None:
        """Multiply, see `Multiply`. A search instead uses products where they are computed (`offer_packed`)."""
        byte_products.multiply_packed(left, left.sum(axis=1, dtype=np.int32), self.panels, first, out)


def by_processor(words: Int8) -> Packed:
    """Return our own product with the words."""
    n, d = words.shape
    shape = -(-n // byte_products.COLUMNS), d // byte_products.TOGETHER, byte_products.COLUMNS, byte_products.TOGETHER
    panels = np.empty(shape, np.uint8)
    byte_products.pack_all(words, panels)
    return Packed(panels)


def by_torch(words: Int8) -> Multiply:
    """Return PyTorch's product with the words, on the GPU where there is one.

    PyTorch has no public name for int8 products with int32 results. Its own torchao relies on this function, which
    exists since 2.1; if it is removed, ``fastest`` notices. Raises RuntimeError if a GPU has too little memory.
    """
    import torch

    if torch.cuda.is_available():
        there = torch.from_numpy(_filled(words)).to("cuda")

        def on_gpu(left: Int8, first: int, out: Int32) -> None:
            last = min(first + -(-out.shape[1] // MULTIPLE) * MULTIPLE, len(there))
            whole = torch._int_mm(torch.from_numpy(_filled(left)).to("cuda"), there[first:last].T)  # noqa: SLF001
            torch.from_numpy(out).copy_(whole[: len(left), : out.shape[1]])

        return on_gpu

    def on_processor(left: Int8, first: int, out: Int32) -> None:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # the caller's threads share the work
        try:
            right = torch.from_numpy(words[first : first + out.shape[1]])
            torch._int_mm(torch.from_numpy(left), right.T, out=torch.from_numpy(out))  # noqa: SLF001
        finally:
            torch.set_num_threads(threads)

    return on_processor


def _filled(rows: Int8) -> Int8:
    """Return rows filled up to a multiple of 32."""
    return np.pad(rows, ((0, -len(rows) % MULTIPLE), (0, 0)))


def check(left: Int8, words: Int8, first: int, out: Int32, number: int) -> None:
    """Compare a product with one that NumPy computes, on sums under random signs (Freivalds 1979).

    A wrong product passes with probability 1/2 at most for each of the 20 draws of signs, which depend on ``number``.
    All sums are whole numbers below 2^53. Raises InstallationError.
    """
    signs = np.random.default_rng(number).integers(0, 2, (out.shape[1], 20)) * 2.0 - 1
    right = words[first : first + out.shape[1]].astype(np.float64)
    if not np.array_equal(out.astype(np.float64) @ signs, left.astype(np.float64) @ (right.T @ signs)):
        raise InstallationError(
            "Integers were multiplied wrongly on this machine, and nothing was written from the result. If PyTorch is "
            f"installed, set {VARIABLE}=no and run the command again; otherwise use another machine."
        )
