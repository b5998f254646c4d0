"""Keyed BLAKE2b-128 of many short messages: four at a time, one in each lane of a vector (RFC 7693).

hashlib takes one message at a time, in three calls from Python.
"""

from __future__ import annotations

from typing import Any

import numba.types as nt
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from corpusveil.arrays import Int64, UInt8, UInt64
from corpusveil.compiled import called, compiled, for_loops, u
from corpusveil.wide import WIDTH, copy_sixteen, place_of

LANES, BLOCK, DIGEST_BYTES, MOST_KEY_BYTES = 4, 128, 16, 64
_LANES_BYTES = 8 * LANES
_LENGTH, _FINAL = 8, 9
"""Rows of a state: 0 to 7 are the chain; then the bytes taken in so far, and all ones for the last block."""
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_START = (
    0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
    0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
)  # fmt: skip
_ORDERS = (
    "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
    "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
)  # fmt: skip
_QUARTERS = ("048c", "159d", "26ae", "37bf", "05af", "16bc", "278d", "349e")
_LANES = ir.VectorType(ir.IntType(64), LANES)


def _all(value: int) -> Any:
    return ir.Constant(_LANES, [value] * LANES)


def _turned(builder: Any, value: Any, bits: int) -> Any:
    return builder.or_(builder.lshr(value, _all(bits)), builder.shl(value, _all(64 - bits)))


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Return the columns of four vectors of four."""

    def shuffle(a: Any, b: Any, *order: int) -> Any:
        return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), LANES), order))

    a, b, c, d = rows
    pairs = shuffle(a, b, 0, 4, 2, 6), shuffle(a, b, 1, 5, 3, 7), shuffle(c, d, 0, 4, 2, 6), shuffle(c, d, 1, 5, 3, 7)
    return [shuffle(pairs[k % 2], pairs[k % 2 + 2], *((0, 1, 4, 5) if k < 2 else (2, 3, 6, 7))) for k in range(LANES)]


def _mix(builder: Any, v: list[Any], m: list[Any]) -> None:
    """Mix the words of a block into ``v`` in twelve rounds (RFC 7693, 3.1 and 3.2)."""
    for round in range(12):
        order = [int(digit, 16) for digit in _ORDERS[round % len(_ORDERS)]]
        for quarter, places in enumerate(_QUARTERS):
            a, b, c, d = (int(place, 16) for place in places)
            for word, (first, second) in zip(order[2 * quarter : 2 * quarter + 2], ((32, 24), (16, 63)), strict=True):
                v[a] = builder.add(builder.add(v[a], v[b]), m[word])
                v[d] = _turned(builder, builder.xor(v[d], v[a]), first)
                v[c] = builder.add(v[c], v[d])
                v[b] = _turned(builder, builder.xor(v[b], v[c]), second)


@intrinsic
def _compress(_: Any, state: Any, blocks: Any) -> Any:
    """Take a block of 128 bytes, uint8 [512], into each lane of a state, uint64 [40], lanes interleaved."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def place(array: int, index: int) -> Any:
            where = arguments[array], ir.Constant(ir.IntType(64), index)
            width = _LANES if array == 0 else ir.VectorType(ir.IntType(8), _LANES_BYTES)
            return builder.bitcast(place_of(context, builder, signature.args[array], where, width), _LANES.as_pointer())

        def words(array: int, index: int) -> Any:
            return builder.load(place(array, index), align=8 if array == 0 else 1)

        m: list[Any] = []
        for four in range(BLOCK // _LANES_BYTES):
            m += _transposed(builder, [words(1, BLOCK * lane + _LANES_BYTES * four) for lane in range(LANES)])
        h = [words(0, LANES * row) for row in range(8)]
        v = [*h, *map(_all, _START)]
        v[12] = builder.xor(v[12], words(0, LANES * _LENGTH))
        v[14] = builder.xor(v[14], words(0, LANES * _FINAL))
        _mix(builder, v, m)
        for row in range(8):
            builder.store(builder.xor(h[row], builder.xor(v[row], v[row + 8])), place(0, LANES * row), align=8)
        return context.get_dummy_value()

    return nt.void(state, blocks), generate


@called
def _compressed(state: Any, blocks: Any) -> None:
    _compress(state, blocks)


@compiled
def _digests(
    start: Any, heads: Any, bounds: Any, data: Any, documents: Any, state: Any, blocks: Any, lanes: Any, out: Any
) -> None:
    """Take in the key, which the blocks hold, and hash each head with its document, in whichever lane is free."""
    _compressed(state, blocks)
    for k in range(state.size):
        start[k] = state[k]
    following, busy = np.int64(0), np.int64(0)
    for lane in range(LANES):
        lanes[u(lane)] = -1
    while True:
        for lane in range(LANES):
            if lanes[u(lane)] < 0:
                if following == documents.size - 1:
                    continue
                lanes[u(lane)] = following
                following += 1
                busy += 1
                for row in range(_FINAL):
                    state[u(LANES * row + lane)] = start[u(LANES * row)]
            document = lanes[u(lane)]
            of_head, of_text = bounds[u(document)], documents[u(document)]
            head = bounds[u(document + 1)] - of_head
            size = head + documents[u(document + 1)] - of_text
            done = np.int64(state[u(LANES * _LENGTH + lane)] - start[u(LANES * _LENGTH)])
            taken = min(size - done, np.int64(BLOCK))
            if done >= head and taken == BLOCK:
                for k in range(0, BLOCK, WIDTH):
                    copy_sixteen(data, of_text + done - head + k, blocks, BLOCK * lane + k)
            else:
                of_text -= head
                for k in range(BLOCK):
                    byte = np.uint8(0)
                    if k < taken:
                        at = done + k
                        byte = heads[u(of_head + at)] if at < head else data[u(of_text + at)]
                    blocks[u(BLOCK * lane + k)] = byte
            state[u(LANES * _LENGTH + lane)] += u(taken)
            state[u(LANES * _FINAL + lane)] = _ONES if done + taken == size else u(0)
        if busy == 0:
            return
        _compressed(state, blocks)
        for lane in range(LANES):
            document = lanes[u(lane)]
            if document >= 0 and state[u(LANES * _FINAL + lane)] == _ONES:
                out[u(2 * document)] = state[u(lane)]
                out[u(2 * document + 1)] = state[u(LANES + lane)]
                lanes[u(lane)] = -1
                busy -= 1


def keyed_digests(key: bytes, heads: UInt8, bounds: Int64, data: UInt8, documents: Int64) -> UInt64:
    """Return BLAKE2b-128 under a key of 1 to 64 bytes of D messages; uint64 [D, 2], low half first.

    Message d is ``heads[bounds[d]:bounds[d + 1]]``, which has a byte at least, and after it
    ``data[documents[d]:documents[d + 1]]``; ``bounds`` and ``documents`` int64 [D + 1], ascending. Raises ValueError
    for a key of another length, and for documents beyond the data.
    """
    if not 1 <= len(key) <= MOST_KEY_BYTES:
        raise ValueError(f"a key of {len(key)} bytes")
    if documents[0] < 0 or documents[-1] > data.size:
        raise ValueError(f"documents from {documents[0]} to {documents[-1]} of {data.size} bytes")
    state, blocks = np.zeros(10 * LANES, dtype=np.uint64), np.zeros(BLOCK * LANES, dtype=np.uint8)
    chain = state.reshape(10, LANES)
    chain[:8] = np.array(_START, dtype=np.uint64)[:, None]
    chain[0] ^= u(0x01010000 ^ len(key) << 8 ^ DIGEST_BYTES)  # one node of a tree: fan-out and depth are 1
    chain[_LENGTH] = BLOCK
    blocks.reshape(LANES, BLOCK)[:, : len(key)] = np.frombuffer(key, dtype=np.uint8)
    out, lanes = np.empty(2 * (documents.size - 1), dtype=np.uint64), np.empty(LANES, dtype=np.int64)
    data = for_loops(np.ascontiguousarray(data))
    _digests(np.empty_like(state), heads, bounds, data, documents, state, blocks, lanes, out)
    return out.reshape(-1, 2)
