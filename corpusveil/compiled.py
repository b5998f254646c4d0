"""How the innermost loops are compiled, kept, and found again."""

from __future__ import annotations

import atexit
import fcntl
import functools
import gc
import hashlib
import inspect
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite.binding
import llvmlite.ir
import numba
import numpy as np
import numpy.typing as npt
from numba.core import event
from numba.core.caching import IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock

import corpusveil.waiting  # not "from": no loop depends on it, so a change of it compiles none again
from corpusveil.errors import InstallationError
from corpusveil.ownership import refuse_others

if numba.config.DISABLE_JIT:
    raise InstallationError("NUMBA_DISABLE_JIT is set, and loops of corpusveil only run compiled; unset it.")
if numba.config.CACHE_DIR and Path(numba.config.CACHE_DIR).exists():
    # Compiled loops are loaded from here and run: as trusted as the code, so as closed to others (NUMBA_CACHE_DIR).
    refuse_others(Path(numba.config.CACHE_DIR), link=True)


class _Compiling(event.Listener):
    """Report that loops are being compiled; loading from a cache is not reported."""

    since = 0.0

    def on_start(self, _: Any) -> None:
        self._count()
        corpusveil.waiting.compiling += 1

    def on_end(self, _: Any) -> None:
        self._count()
        corpusveil.waiting.compiling -= 1

    def _count(self) -> None:
        """Count the time since the last event, if something compiled in it: compilations lie within each other."""
        now = time.monotonic()
        if corpusveil.waiting.compiling:
            corpusveil.waiting.compiled(now - self.since)
        self.since = now


event.register("numba:compile", _Compiling())
PACKAGE = Path(__file__).parent
PORTABLE = "x86-64-v3" if platform.machine() == "x86_64" else ""
"""The processor that the machine code of a wheel is for, as LLVM calls it: most of AMD's and Intel's since 2015. Loops
are as fast as those for the very processor. Empty where there is no such common one."""
_INSTRUCTIONS = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_PATIENCE = 120.0
"""Seconds to wait in all for other processes that compile, before doing it as well."""
_TICK = 0.05
LOCK = "compiling.lock"
"""In the folder of compiled loops, the file that a process locks in its turn."""


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


_imported: dict[str, tuple[int, int]] = {}
"""The state of each file when its loops were imported."""


def _state(path: str) -> tuple[int, int]:
    now = os.stat(path)
    return now.st_mtime_ns, now.st_size


@functools.cache
def _file_digest(path: str) -> str:
    if _imported.get(path, now := _state(path)) != now:  # by an upgrade: what was imported is no longer there to read
        return os.urandom(16).hex()  # so that nothing is taken for it, and it for nothing
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


class _Turn:
    """The turn of this process to compile: others with the same cache wait, and load what was made.

    It lasts from the first function that no cache has until that one and all that it calls are kept. No garbage is
    collected meanwhile, which would take a tenth of the time to find little.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.lasts = False
        self.file = -1  # that is locked; none where locks are impossible
        self.collects = True
        self.patience = _PATIENCE

    def begin(self, look: Callable[[], Any], lock: Path) -> Any:
        """Wait for the turn; return what ``look`` finds in a cache meanwhile, None if this process has to compile."""
        if self.lasts:
            return None
        self.lasts, self.collects = True, gc.isenabled()
        gc.disable()
        corpusveil.waiting.compiling += 1
        try:
            entry = look()
            while entry is None and not self._locked(lock) and self.patience > 0:
                time.sleep(_TICK)
                self.patience -= _TICK
                entry = look()
            return look() if entry is None else entry
        finally:
            corpusveil.waiting.compiling -= 1

    def _locked(self, lock: Path) -> bool:
        try:
            if self.file < 0:  # closed to other accounts, who could hold it
                lock.parent.mkdir(parents=True, exist_ok=True)
                self.file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # no right to write there, or a file system without locks: each process compiles for itself
            return True
        return True

    def end(self) -> None:
        if self.lasts:
            self.lasts = False
            if self.collects:
                gc.enable()
        if self.file >= 0:
            os.close(self.file)  # which lets the next one in
            self.file = -1

    def forget(self) -> None:
        """Leave the turn to the process that this one is a fork of."""
        self.depth = 0
        self.end()


_turn = _Turn()
os.register_at_fork(after_in_child=_turn.forget)


class _Portable:
    """Stands for numba's code generator where an entry of machine code for ``PORTABLE`` is looked up."""

    def __init__(self, codegen: Any) -> None:
        self.codegen = codegen

    def magic_tuple(self) -> tuple[str, str, str]:
        return self.codegen.magic_tuple()[0], PORTABLE, ""


@functools.cache
def _runs_portable() -> bool:
    features = llvmlite.binding.get_host_cpu_features()
    return bool(PORTABLE) and all(features.get(name) for name in _INSTRUCTIONS)


def _find_and_take_turns(dispatcher: Any) -> None:
    """Let numba look in the wheel's machine code after its own cache, and compile in turn with other processes."""
    cache, find, make = dispatcher._cache, dispatcher._cache._load_overload, dispatcher.compile  # noqa: SLF001
    beside, own = Path(dispatcher.py_func.__code__.co_filename).parent / "__pycache__", Path(cache.cache_path)
    folder = PACKAGE / own.name if own.is_relative_to(PACKAGE) else own if own == beside else own.parent
    lock = folder / LOCK
    shipped = IndexDataCacheFile(str(beside), cache._impl.filename_base, cache._cache_file._source_stamp)  # noqa: SLF001

    def look(signature: Any, context: Any) -> Any:
        if (entry := find(signature, context)) is None and _runs_portable():
            kept = shipped.load(cache._index_key(signature, _Portable(context.codegen())))  # noqa: SLF001
            entry = None if kept is None else cache._impl.rebuild(context, kept)  # noqa: SLF001
        return entry

    def load(signature: Any, context: Any) -> Any:
        entry = look(signature, context)
        return entry if entry is not None else _turn.begin(lambda: look(signature, context), lock)

    def compile_in_turn(signature: Any) -> Any:
        with global_compiler_lock:
            _turn.depth += 1
            try:
                return make(signature)
            finally:
                _turn.depth -= 1
                if _turn.depth <= 0:
                    _turn.end()

    cache._load_overload, dispatcher.compile = load, compile_in_turn  # noqa: SLF001


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile as ``numba.njit`` does, and compile again when anything changed that the machine code is made from."""
    numba_s = numba.njit(**options)

    def make(function: Callable[..., Any]) -> Any:
        try:
            made = numba_s(function)
        except RuntimeError:  # neither the package nor a home can be written: loops are kept for this process
            numba.config.CACHE_DIR = tempfile.mkdtemp(prefix="corpusveil-loops-")
            atexit.register(shutil.rmtree, numba.config.CACHE_DIR, ignore_errors=True)
            made = numba_s(function)
        file = function.__code__.co_filename
        if options.get("cache") and Path(file).is_file():
            _imported.setdefault(file, _state(file))
            made._cache._cache_file._source_stamp = Stamp(made)  # noqa: SLF001 - numba has no setting for it
            _find_and_take_turns(made)
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


class _Memory:
    """What numpy makes an array of, and what keeps its memory."""

    def __init__(self, data: npt.NDArray[Any]) -> None:
        self.data = data
        self.__array_interface__ = {**data.__array_interface__, "data": (data.ctypes.data, False)}


def for_loops(data: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the same memory as an array that counts as writable, for loops that only read it.

    An array that does not is of another type, for which all that it goes through would be compiled once more.
    """
    return data if data.flags.writeable else np.asarray(_Memory(data))


u: Any = np.uint64
"""An index that is never negative: ``array[u(i)]``. Of a signed one numba first asks whether it counts from the end."""
