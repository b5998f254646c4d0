"""Eight and sixteen bytes at a time, in compiled loops: unaligned loads and stores, which numba has no words for.

None of them looks at the size of the array: the caller knows that so many bytes are there. Only under
``NUMBA_BOUNDSCHECK=1``, as numba's own loops do, they raise `IndexError` instead (tests/text/test_bounds.py).
"""

from __future__ import annotations

import functools
from typing import Any

import numba.types as nt
from llvmlite import ir
from numba.core import cgutils, config
from numba.extending import intrinsic

WIDTH = 16
"""The most bytes that one of these reads or writes."""

_BYTE, _EIGHT = ir.IntType(8), ir.IntType(64)
_VECTOR = ir.VectorType(_BYTE, WIDTH)


def _place(context: Any, builder: Any, kind: Any, where: Any, width: Any) -> Any:
    """Return a pointer to ``array[at]``, ``where`` being these two, as to a value of this type."""
    array, at = where
    view = context.make_array(kind)(context, builder, array)
    if config.BOUNDSCHECK and width is not _BYTE:  # a prefetch may point anywhere
        size = width.count if width is _VECTOR else width.width // 8
        last = builder.sub(view.nitems, ir.Constant(view.nitems.type, size))
        outside = builder.or_(builder.icmp_signed("<", at, ir.Constant(at.type, 0)), builder.icmp_signed(">", at, last))
        with builder.if_then(outside, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("outside of the array",))
    return builder.bitcast(builder.gep(view.data, [at], inbounds=True), width.as_pointer())


def _filled(byte: int) -> Any:
    return ir.Constant(_VECTOR, [byte] * WIDTH)


@intrinsic
def load_eight(_: Any, array: Any, at: Any) -> Any:  # noqa: ARG001 - numba types by it
    """Return ``array[at:at + 8]`` of a uint8 array as one uint64, the first byte lowest."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_place(context, builder, signature.args[0], arguments, _EIGHT), align=1)

    return nt.uint64(array, nt.int64), generate


@intrinsic
def fetch(_: Any, array: Any, at: Any) -> Any:  # noqa: ARG001
    """Have ``array[at]`` brought into the cache, and go on meanwhile."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), number, number, number])
        instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        place = _place(context, builder, signature.args[0], arguments, _BYTE)
        builder.call(instruction, [place, *(ir.Constant(number, one) for one in (0, 3, 1))])  # to read, keep, data
        return context.get_dummy_value()

    return nt.void(array, nt.int64), generate


@intrinsic
def copy_sixteen(_: Any, source: Any, start: Any, out: Any, at: Any) -> Any:  # noqa: ARG001
    """Write ``source[start:start + 16]`` to ``out[at:at + 16]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, start, out, at = arguments
        value = builder.load(_place(context, builder, signature.args[0], (source, start), _VECTOR), align=1)
        builder.store(value, _place(context, builder, signature.args[2], (out, at), _VECTOR), align=1)
        return context.get_dummy_value()

    return nt.void(source, nt.int64, out, nt.int64), generate


def _before(builder: Any, wanted: Any) -> Any:
    """Return how many of sixteen bits stand before the first that is not set."""
    others = builder.zext(builder.not_(builder.bitcast(wanted, ir.IntType(WIDTH))), _EIGHT)
    stop = builder.or_(others, ir.Constant(_EIGHT, 1 << WIDTH))
    return builder.cttz(stop, ir.Constant(ir.IntType(1), 1))


@intrinsic
def plain_run(_: Any, array: Any, at: Any) -> Any:  # noqa: ARG001
    """Return how many of the bytes ``array[at:at + 16]`` come before the first that is no ASCII letter or digit."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = builder.load(_place(context, builder, signature.args[0], arguments, _VECTOR), align=1)
        letter = builder.sub(builder.or_(found, _filled(0x20)), _filled(0x61))
        digit = builder.sub(found, _filled(0x30))
        is_letter = builder.icmp_unsigned("<", letter, _filled(26))
        return _before(builder, builder.or_(is_letter, builder.icmp_unsigned("<", digit, _filled(10))))

    return nt.int64(array, nt.int64), generate


def _but_for(builder: Any, found: Any, marks: str) -> Any:
    """Say of each byte whether it is none of these marks."""
    others = (builder.icmp_unsigned("!=", found, _filled(ord(mark))) for mark in marks)
    return functools.reduce(builder.and_, others)


@intrinsic
def quoted_run(_: Any, array: Any, at: Any) -> Any:  # noqa: ARG001
    """Return how many of the bytes ``array[at:at + 16]`` come before the first that JSON escapes in a string."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = builder.load(_place(context, builder, signature.args[0], arguments, _VECTOR), align=1)
        printed = builder.icmp_unsigned(">=", found, _filled(0x20))
        return _before(builder, builder.and_(printed, _but_for(builder, found, '"\\')))

    return nt.int64(array, nt.int64), generate


@intrinsic
def cell_run(_: Any, array: Any, at: Any) -> Any:  # noqa: ARG001
    """Return how many of the bytes ``array[at:at + 16]`` come before the first that puts a cell of CSV in quotes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = builder.load(_place(context, builder, signature.args[0], arguments, _VECTOR), align=1)
        return _before(builder, _but_for(builder, found, '",\r\n'))

    return nt.int64(array, nt.int64), generate
