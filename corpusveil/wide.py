"""Sixteen and 64 bytes at a time, in compiled loops: unaligned loads and stores, which numba has no words for.

None of them looks at the size of the array: the caller knows that the bytes are there. Only under
``NUMBA_BOUNDSCHECK=1``, as numba's own loops do, they raise `IndexError` instead (tests/test_compiled.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba.types as nt
from llvmlite import ir
from numba.core import cgutils, config
from numba.extending import intrinsic

WIDTH, SPAN = 16, 64
"""The bytes that most of these read or write, and those that the others read."""

_BYTE, _EIGHT = ir.IntType(8), ir.IntType(64)
_VECTOR, _LONG = ir.VectorType(_BYTE, WIDTH), ir.VectorType(_BYTE, SPAN)


def place_of(context: Any, builder: Any, kind: Any, where: Any, width: Any) -> Any:
    """Return a pointer to ``array[at]``, ``where`` being these two, as to a value of this type."""
    array, at = where
    view = context.make_array(kind)(context, builder, array)
    if config.BOUNDSCHECK and width is not _BYTE:  # a prefetch may point anywhere
        last = builder.sub(view.nitems, ir.Constant(view.nitems.type, width.count))
        outside = builder.or_(builder.icmp_signed("<", at, ir.Constant(at.type, 0)), builder.icmp_signed(">", at, last))
        with builder.if_then(outside, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("outside of the array",))
    return builder.bitcast(builder.gep(view.data, [at], inbounds=True), width.as_pointer())


def _filled(byte: int, width: Any = _VECTOR) -> Any:
    return ir.Constant(width, [byte] * width.count)


def _within(builder: Any, vector: Any, first: int, many: int) -> Any:
    """Say of each byte whether it is one of the ``many`` values from ``first`` on."""
    width = vector.type
    return builder.icmp_unsigned("<", builder.sub(vector, _filled(first, width)), _filled(many, width))


@intrinsic
def lower_sixteen(_: Any, array: Any, at: Any, size: Any) -> Any:  # noqa: ARG001 - numba types by it
    """Return ``array[at:at + min(size, 16)]`` as two uint64, lowest byte first, in lower case; 16 bytes are read."""
    made = nt.UniTuple(nt.uint64, 2)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, at, size = arguments
        vector = builder.load(place_of(context, builder, signature.args[0], (array, at), _VECTOR), align=1)
        most = ir.Constant(size.type, WIDTH)
        size = builder.trunc(builder.select(builder.icmp_signed("<", size, most), size, most), _BYTE)
        number = ir.IntType(32)
        empty = ir.Constant(_VECTOR, ir.Undefined)
        sizes = builder.insert_element(empty, size, ir.Constant(number, 0))
        sizes = builder.shuffle_vector(sizes, empty, ir.Constant(ir.VectorType(number, WIDTH), [0] * WIDTH))
        inside = builder.icmp_unsigned("<", ir.Constant(_VECTOR, list(range(WIDTH))), sizes)
        vector = builder.select(inside, vector, _filled(0))
        small = builder.or_(vector, _filled(0x20))
        vector = builder.select(_within(builder, vector, 0x41, 26), small, vector)
        halves = builder.bitcast(vector, ir.VectorType(_EIGHT, 2))
        pair = [builder.extract_element(halves, ir.Constant(number, half)) for half in (0, 1)]
        return context.make_tuple(builder, made, pair)

    return made(array, nt.int64, nt.int64), generate


def _bits(wanted: Callable[[Any, Any], Any]) -> Any:
    """Return what tells which of the bytes ``array[at:at + 64]`` are wanted; uint64, the first byte's bit lowest."""

    @intrinsic
    def bits(_: Any, array: Any, at: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            vector = builder.load(place_of(context, builder, signature.args[0], arguments, _LONG), align=1)
            return builder.bitcast(wanted(builder, vector), _EIGHT)

        return nt.uint64(array, nt.int64), generate

    return bits


def _is_plain(builder: Any, vector: Any) -> Any:
    letter = _within(builder, builder.or_(vector, _filled(0x20, _LONG)), 0x61, 26)
    return builder.or_(letter, _within(builder, vector, 0x30, 10))


def _is_blank(builder: Any, vector: Any) -> Any:
    blank = builder.icmp_unsigned("==", vector, _filled(0x20, _LONG))
    return builder.or_(blank, _within(builder, vector, 0x09, 5))


blank_bits = _bits(_is_blank)
"""Say of 64 bytes which are white space of ASCII."""
plain_bits = _bits(_is_plain)
"""Say of 64 bytes which are ASCII letters or digits."""

high_bits = _bits(lambda builder, vector: builder.icmp_signed("<", vector, _filled(0, _LONG)))
"""Say of 64 bytes which are of characters beyond ASCII."""


@intrinsic
def zeros_below(_: Any, bits: Any) -> Any:  # noqa: ARG001
    """Return the number of zeros below the lowest set bit of a uint64; 64 if no bit is set."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return nt.int64(nt.uint64), generate


@intrinsic
def fetch(_: Any, array: Any, at: Any) -> Any:  # noqa: ARG001
    """Have ``array[at]`` brought into the cache, and go on meanwhile."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), number, number, number])
        instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        place = place_of(context, builder, signature.args[0], arguments, _BYTE)
        builder.call(instruction, [place, *(ir.Constant(number, hint) for hint in (0, 3, 1))])  # to read, keep, data
        return context.get_dummy_value()

    return nt.void(array, nt.int64), generate


@intrinsic
def copy_sixteen(_: Any, source: Any, start: Any, out: Any, at: Any) -> Any:  # noqa: ARG001
    """Write the 16 bytes ``source[start:start + 16]`` to ``out[at:at + 16]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, start, out, at = arguments
        value = builder.load(place_of(context, builder, signature.args[0], (source, start), _VECTOR), align=1)
        builder.store(value, place_of(context, builder, signature.args[2], (out, at), _VECTOR), align=1)
        return context.get_dummy_value()

    return nt.void(source, nt.int64, out, nt.int64), generate
