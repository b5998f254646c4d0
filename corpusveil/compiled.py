"""How the innermost loops are compiled."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile

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
_IMPORT = re.compile(r"^ *from (corpusveil[.a-z_0-9]*) import (\([^)]*\)|.*)", re.MULTILINE)


@functools.cache
def _imports(file: Path) -> tuple[bytes, frozenset[Path]]:
    """Return the digest of a module of the package, and the modules of the package that it imports."""
    text = file.read_text()
    modules = set()
    for module, names in _IMPORT.findall(text):
        place = PACKAGE.joinpath(*module.split(".")[1:])
        modules |= {place / f"{name}.py" for name in re.findall(r"\w+", names)}
        modules |= {place.with_suffix(".py"), place / "__init__.py"}
    return hashlib.sha256(text.encode()).digest(), frozenset(filter(Path.is_file, modules))


@functools.cache
def sources_digest(file: str) -> bytes:
    """Return a digest of a module of the package and of all its modules that it imports, directly or not."""
    seen: set[Path] = set()
    left = {Path(file)}
    while left:
        seen |= left
        left = {imported for module in left for imported in _imports(module)[1]} - seen
    return hashlib.sha256(b"".join(_imports(module)[0] for module in sorted(seen))).digest()


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile as ``numba.njit`` does, and compile again where any module that the function's own one imports changed.

    A function's machine code contains that of the functions that it calls, and the values of global constants. But
    numba reuses it as long as the function's own file is the same, also after an upgrade of the package in place.
    """
    numba_s = numba.njit(**options)

    def make(function: Callable[..., Any]) -> Any:
        made = numba_s(function)
        file = Path(function.__code__.co_filename)
        if file.is_file() and isinstance(made._cache, FunctionCache):  # noqa: SLF001 - numba has no setting for it
            cache, stamp = made._cache, (made._cache._cache_file._source_stamp, sources_digest(str(file)))  # noqa: SLF001
            cache._cache_file = IndexDataCacheFile(cache.cache_path, cache._impl.filename_base, stamp)  # noqa: SLF001
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
