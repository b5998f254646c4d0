"""Eight-bit integer products of words: of all words with all words, keeping the nearest, or of points and words.

A vector x becomes s q, with q int8 in -127 ... 127 and s = max |x_j| / 127. By the inequality of Cauchy and Schwarz

    |<x, y> - s t <q, r>|  <=  |x - s q| |y| + |s q| |y - t r|,

and the lengths of the rounding errors are computed, not estimated.

On a processor with the instruction (AVX-512 VNNI: Intel's servers since 2019, AMD's since 2022), a tile of 6 words by
64 takes a sixth of the time of float32, and its results are used while they are in the cache. Sums of integers have no
rounding and no order, so the results are equal on every machine.

LLVM does not use this instruction for a loop in Python, so the tile is written in its intermediate language; on other
processors a plain loop computes the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from corpusveil.arrays import Float32, Float64, Int8, Int32, Int64, UInt8
from corpusveil.compiled import called, njit

ROWS, COLUMNS = 6, 64
"""Words on the sides of a tile: 24 registers of sums, 4 of columns, 1 of a row."""
TOGETHER = 4
"""Dimensions that one instruction takes."""
SHIFT = 128
"""The instruction needs one unsigned side."""
WIDEST = 1 << 16
"""The most dimensions for which a sum fits into 32 bits."""

LARGEST = 127
"""Of a rounded value: the sums of products are symmetric."""

FAST = "+avx512vnni" in cpu_target.target_context.codegen().magic_tuple()[2].split(",")
"""Whether code is compiled for a processor with the instruction."""


@intrinsic
def _tile(_typing: Any, left: Any, top: Any, bottom: Any, panel: Any, out: Any) -> Any:  # noqa: ARG001 - their types
    """Multiply ``ROWS`` words from ``top`` on, those from ``bottom`` on left out, with a panel: writes ``out``.

    int8 [n, d], int, int, uint8 [d / 4, 64, 4] -> int32 [6, 64].
    """
    vector, byte, whole = ir.VectorType(ir.IntType(32), 16), ir.IntType(8), ir.IntType(64)

    def number(value: int) -> Any:
        return ir.Constant(whole, value)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = {k: context.make_array(signature.args[k])(context, builder, value=arguments[k]) for k in (0, 3, 4)}
        data = {k: builder.bitcast(array.data, byte.as_pointer()) for k, array in arrays.items()}
        width = cgutils.unpack_tuple(builder, arrays[0].shape, 2)[1]
        last = builder.sub(arguments[2], number(1))
        rows = []
        for r in range(ROWS):
            row = builder.add(arguments[1], number(r))
            # A row beyond the last is the last again, so that no memory outside is read.
            row = builder.select(builder.icmp_signed("<", row, last), row, last)
            rows.append(builder.gep(data[0], [builder.mul(row, width)]))
        kind = ir.FunctionType(vector, [vector] * 3)
        multiply = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.vpdpbusd.512")
        before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
        builder.branch(loop)
        builder.position_at_end(loop)
        k = builder.phi(whole)
        k.add_incoming(number(0), before)
        sums = [[builder.phi(vector) for _ in range(COLUMNS // 16)] for _ in rows]
        columns = []
        for v in range(COLUMNS // 16):
            at = builder.gep(data[3], [builder.add(builder.mul(k, number(COLUMNS)), number(64 * v))])
            columns.append(builder.load(builder.bitcast(at, vector.as_pointer()), align=1))
        nothing = ir.Constant(vector, ir.Undefined)
        for row, held in zip(rows, sums, strict=True):
            four = builder.load(builder.bitcast(builder.gep(row, [k]), ir.IntType(32).as_pointer()), align=1)
            first = builder.insert_element(nothing, four, ir.Constant(ir.IntType(32), 0))
            same = builder.shuffle_vector(first, nothing, ir.Constant(vector, [0] * 16))
            for v, total in enumerate(held):
                total.add_incoming(ir.Constant(vector, [0] * 16), before)
                total.add_incoming(builder.call(multiply, [total, columns[v], same]), loop)
        following = builder.add(k, number(TOGETHER))
        k.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, width), loop, after)
        builder.position_at_end(after)
        for r, held in enumerate(sums):
            for v, total in enumerate(held):
                at = builder.gep(data[4], [number(4 * (COLUMNS * r + 16 * v))])
                builder.store(total.incomings[1][0], builder.bitcast(at, vector.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(left, types.int64, types.int64, panel, out), generate


@called
def _plain_tile(left: Int8, top: int, bottom: int, panel: UInt8, out: Int32) -> None:
    """Compute what ``_tile`` does."""
    for r in range(min(ROWS, bottom - top)):
        for c in range(COLUMNS):
            total = np.int32(0)
            for k in range(left.shape[1]):
                total += np.int32(left[top + r, k]) * np.int32(panel[k // TOGETHER, c, k % TOGETHER])
            out[r, c] = total


multiply = _tile if FAST else _plain_tile


@called
def _pack(values: Int8, first: int, last: int, panel: UInt8) -> None:
    """Lay words out as the columns of a tile."""
    for c in range(COLUMNS):
        for k in range(values.shape[1]):
            value = np.int32(values[first + c, k]) if first + c < last else np.int32(0)
            panel[k // TOGETHER, c, k % TOGETHER] = np.uint8(value + SHIFT)


@njit(nogil=True, cache=True)
def quantize(
    vectors: Any, offset: Float64, largest: int, values: Int8, scales: Float32, squares: Float64, lost: Float64
) -> None:
    """Round vectors less ``offset`` to ``scales * values``, each value from -largest to largest.

    Writes the squared lengths of the rounded vectors, and the lengths of the rounding errors; float64 [n].
    """
    for i in range(vectors.shape[0]):
        greatest = 0.0
        for k in range(vectors.shape[1]):
            greatest = max(greatest, abs(vectors[i, k] - offset[k]))
        scale = np.float64(np.float32(greatest / largest))
        scales[i] = scale
        inverse = 1.0 / scale if scale > 0 else 0.0
        square = 0.0
        gaps = 0.0
        for k in range(vectors.shape[1]):
            value = vectors[i, k] - offset[k]
            whole = min(max(np.rint(value * inverse), -largest), largest)
            values[i, k] = np.int8(whole)
            gap = value - scale * whole
            square += whole * whole
            gaps += gap * gap
        squares[i] = scale * scale * square
        lost[i] = np.sqrt(gaps)


def padded(n: int, dimensions: int) -> Int8:
    """Return room for n rounded vectors, int8 [n, d']; d' is d made up to a multiple of ``TOGETHER`` by zeros."""
    return np.zeros((n, -(-dimensions // TOGETHER) * TOGETHER), np.int8)


@njit(nogil=True, cache=True)
def packed(words: Int8) -> UInt8:
    """Lay words out as columns of tiles; int8 [V, d'] -> uint8 [V / 64 rounded up, d' / 4, 64, 4]."""
    n, d = words.shape
    panels = np.empty((-(-n // COLUMNS), d // TOGETHER, COLUMNS, TOGETHER), np.uint8)
    for number in range(len(panels)):
        _pack(words, COLUMNS * number, n, panels[number])
    return panels


@njit(nogil=True, cache=True)
def offer_pair(
    values: Int8, scales: Float32, weights: Float32, sums: Int32, left: int, right: int, size: int, kept: Any
) -> None:
    """Offer the words of two blocks to each other; within one block, each word to each.

    The key of j for i is ``weights[j] - 2 scales[i] scales[j] <values[i], values[j]>``.

    Args:
        values: int8 [n, d], d a multiple of 4.
        scales, weights: float32 [n].
        sums: int32 [n], of the values of each word.
        left, right: the first words of the blocks.
        size: of a block; the last one may be shorter.
        kept: the buffers of all words (``enter``).
    """
    n, d = values.shape
    panel = np.empty((d // TOGETHER, COLUMNS, TOGETHER), np.uint8)
    products = np.empty((ROWS, COLUMNS), np.int32)
    below = np.zeros(COLUMNS, np.uint8)
    groups = below.view(np.uint64)
    keys, rows, counts, limits = kept
    bottom, end = min(left + size, n), min(right + size, n)
    scale, weight, limit = np.empty(COLUMNS, np.float32), np.empty(COLUMNS, np.float32), np.empty(COLUMNS, np.float32)
    for first in range(right, end, COLUMNS):
        _pack(values, first, end, panel)
        _take(weights, limits, first, end, left != right, weight, limit)
        for lane in range(COLUMNS):
            scale[lane] = scales[first + lane] if first + lane < end else np.float32(0)
        for top in range(left, bottom, ROWS):
            multiply(values, top, bottom, panel, products)
            for r in range(min(ROWS, bottom - top)):
                i = top + r
                twice = np.float32(2) * scales[i]
                own, bar = weights[i], limits[i]
                shift = np.int32(SHIFT) * sums[i]  # what the panel's unsigned values add to each product
                for c in range(COLUMNS):
                    product = np.float32(np.int32(products[r, c] - shift)) * (twice * scale[c])
                    below[c] = (weight[c] - product < bar) | (own - product < limit[c])
                for group in range(len(groups)):
                    if not groups[group]:
                        continue
                    for c in range(8 * group, 8 * group + 8):
                        if not below[c]:
                            continue
                        # Computed again, since keeping 64 of them for the few that are near takes longer.
                        product = np.float32(np.int32(products[r, c] - shift)) * (twice * scale[c])
                        if weight[c] - product < limits[i]:
                            enter(weight[c] - product, first + c, keys, rows, counts, limits, i)
                        if own - product < limit[c]:
                            enter(own - product, i, keys, rows, counts, limits, first + c)
                            limit[c] = limits[first + c]


@njit(nogil=True, cache=True)
def offer_tile(tile: Float32, weights: Float32, left: int, right: int, kept: Any) -> None:
    """Do the work of ``offer_pair`` for products in float32, ``tile`` [R, C] of two blocks."""
    end = right + tile.shape[1]
    below, line = np.zeros(COLUMNS, np.uint8), np.zeros(COLUMNS, np.float32)
    weight, limit = np.empty(COLUMNS, np.float32), np.empty(COLUMNS, np.float32)
    groups = below.view(np.uint64)
    keys, rows, counts, limits = kept
    for first in range(right, end, COLUMNS):
        _take(weights, limits, first, end, left != right, weight, limit)
        width = min(COLUMNS, end - first)
        for r in range(tile.shape[0]):
            i = left + r
            own, bar = weights[i], limits[i]
            for c in range(width):
                line[c] = np.float32(2) * tile[r, first - right + c]
            for c in range(COLUMNS):
                below[c] = (weight[c] - line[c] < bar) | (own - line[c] < limit[c])
            if not groups.any():
                continue
            for c in range(width):
                if below[c] and weight[c] - line[c] < limits[i]:
                    enter(weight[c] - line[c], first + c, keys, rows, counts, limits, i)
                if below[c] and own - line[c] < limit[c]:
                    enter(own - line[c], i, keys, rows, counts, limits, first + c)
                    limit[c] = limits[first + c]


@called
def _take(
    weights: Float32, limits: Float32, first: int, end: int, other: bool, weight: Float32, limit: Float32
) -> None:
    """Copy the weights and limits of the words of a tile's columns.

    Columns without a word are offered nothing and to no word, and those of the ``other`` block only are offered words:
    within a block, each word meets each as a row.
    """
    for lane in range(COLUMNS):
        there = first + lane < end
        weight[lane] = weights[first + lane] if there else np.float32(np.inf)
        limit[lane] = limits[first + lane] if there and other else np.float32(-np.inf)


@njit(nogil=True, cache=True)
def bounds(
    values: Int8, scales: Float32, weights: Float32, row: Int8, scale: float, weight: float, share: float, out: Float32
) -> None:
    """Write ``share`` times the key of each word for one, ``row`` int8 [d], and its weight; float32 [n]."""
    twice = np.float32(2) * np.float32(scale)
    for j in range(len(out)):
        total = np.int32(0)
        for k in range(values.shape[1]):
            total += np.int32(values[j, k]) * np.int32(row[k])
        out[j] = np.float32(share) * (np.float32(weight) + (weights[j] - np.float32(total) * (twice * scales[j])))


@called
def enter(key: float, word: int, keys: Float32, rows: Int32, counts: Int64, limits: Float32, r: int) -> None:
    """Enter a word into the buffer of r.

    A full buffer is cut to its K smallest keys, and the limit to the largest of these.
    """
    count = counts[r]
    keys[r, count] = key
    rows[r, count] = word
    count += 1
    k = keys.shape[1] // 2
    if count == 2 * k:
        limits[r] = _select(keys[r], rows[r], count, k)
        count = k
    counts[r] = count


@njit(nogil=True, cache=True)
def settle(keys: Float32, rows: Int32, counts: Int64, limits: Float32, k: int, low: int, high: int) -> None:
    """Cut every buffer to its K smallest keys; ``limits`` become the largest keys kept."""
    for r in range(low, high):
        limits[r] = _select(keys[r], rows[r], counts[r], k)


@called
def _select(keys: Float32, rows: Int32, n: int, k: int) -> np.float32:
    """Bring the least k of the first n keys, and their rows, to the front; return the k-th (Hoare's selection)."""
    low = 0
    high = n - 1
    while low < high:
        pivot = keys[(low + high) >> 1]
        i = low
        j = high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                rows[i], rows[j] = rows[j], rows[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    kth: np.float32 = keys[k - 1]
    return kth
