"""How the innermost loops are compiled."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite.ir
import numba
import numpy as np
from numba.core import event

import corpusveil.waiting  # not "from": no loop depends on it, so a change of it compiles none again
from corpusveil.ownership import refuse_others

if numba.config.CACHE_DIR and Path(numba.config.CACHE_DIR).exists():
    # Compiled loops are loaded from here and run: as trusted as the code, so as closed to others (NUMBA_CACHE_DIR).
    refuse_others(Path(numba.config.CACHE_DIR), link=True)


class _Compiling(event.Listener):
    """Lets whoever waits know that loops are being compiled; what is loaded from a cache is no such event."""

    def on_start(self, _: Any) -> None:
        corpusveil.waiting.compiling += 1

    def on_end(self, _: Any) -> None:
        corpusveil.waiting.compiling -= 1


event.register("numba:compile", _Compiling())
PACKAGE = Path(__file__).parent


class Stamp:
    """What the machine code of a function is made from; numba compiles again when the stamp in its cache differs.

    numba stamps a function with the content of its own file alone. But machine code also contains the functions that
    it calls and the values of global constants, so this stamp covers their files and values. A module that contributes
    neither, such as the one with the sentences of errors, can change and nothing is compiled.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher

    @functools.cached_property
    def digest(self) -> str:
        """A digest of the parts, in hex. First asked for at the first call, when all modules are complete."""
        parts: dict[str, str] = {}
        roots = frozenset({PACKAGE.name, _root(self.dispatcher.py_func.__module__)})
        _visit("", self.dispatcher, (), parts, roots)
        return hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self.digest == other

    def __reduce__(self) -> tuple[object, ...]:
        return str, (self.digest,)


@functools.cache
def _file_digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _names(code: CodeType) -> set[str]:
    """Return the names that code reads, and the functions inside it."""
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _root(module: str) -> str:
    """Return the package of a module: this one, or another whose loops are compiled as ours are."""
    return module.partition(".")[0]


def _visit(name: str, value: Any, names: Iterable[str], parts: dict[str, str], roots: frozenset[str]) -> None:
    """Enter in ``parts`` what a global ``value`` contributes to machine code; of a module, its members in ``names``.

    Only functions and modules of the packages ``roots`` are looked at.
    """
    options = getattr(value, "targetoptions", None)  # a compiled function has these, an intrinsic a __wrapped__
    function = getattr(value, "py_func", getattr(value, "__wrapped__", value))
    match function:
        case FunctionType() if _root(function.__module__) in roots:
            # Closures of one function differ in what they hold, so the place that names one tells it apart.
            key = name if function.__closure__ else f"{function.__module__}.{function.__qualname__}"
            if key in parts:
                return
            # The order of a set, such as fastmath's, is another in each process.
            parts[key] = repr([(k, sorted(v) if isinstance(v, set) else v) for k, v in sorted((options or {}).items())])
            file = function.__code__.co_filename
            parts[file.removeprefix(str(PACKAGE))] = _file_digest(file)
            read = _names(function.__code__)
            scope = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
            for each in sorted(read.union(function.__code__.co_freevars).intersection(scope)):
                _visit(f"{key}:{each}", scope[each], read, parts, roots)
        case ModuleType() if _root(function.__name__) in roots:
            for each in sorted(set(names).intersection(vars(function))):
                _visit(f"{function.__name__}.{each}", vars(function)[each], names, parts, roots)
        case np.ndarray():
            content = hashlib.sha256(np.ascontiguousarray(function).tobytes()).hexdigest()
            parts[name] = f"{function.dtype.str} {function.shape} {content}"
        case bool() | int() | float() | str() | bytes() | tuple() | np.generic() | type() | None:
            parts[name] = repr(function)
        case llvmlite.ir.Type():
            parts[name] = str(function)
        case _:
            parts[name] = type(function).__qualname__


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile as ``numba.njit`` does, and compile again when anything changed that the machine code is made from."""
    numba_s = numba.njit(**options)

    def make(function: Callable[..., Any]) -> Any:
        made = numba_s(function)
        if options.get("cache") and Path(function.__code__.co_filename).is_file():
            made._cache._cache_file._source_stamp = Stamp(made)  # noqa: SLF001 - numba has no setting for it
        return made

    return make


compiled: Any = njit(cache=True, nogil=True, _nrt=False, no_cfunc_wrapper=True)
"""Compile a function that makes no array. Other threads, of leases and signals, continue while it runs.

Without numba's reference counting: it counts every array that one compiled function hands to another, which took up to
three quarters of the time of loops that call small functions for each token.
"""

called: Any = njit(cache=True, nogil=True, _nrt=False, no_cfunc_wrapper=True, no_cpython_wrapper=True)
"""Compile a function that only compiled functions call: called from Python, it crashes.

It has no entry from Python, which would take long to compile for each array argument, and to optimize again in every
caller. Arguments of the same type at every call save as much: ``np.int64(0)``, since a literal is a type.
"""

inlined: Any = njit(
    cache=True, nogil=True, _nrt=False, forceinline=True, no_cfunc_wrapper=True, no_cpython_wrapper=True
)
"""Compile a function of a few instructions into its callers, which are compiled, too: where it runs for each word."""

u: Any = np.uint64
"""An index that is never negative: ``array[u(i)]``. Of a signed one numba first asks whether it counts from the end."""
