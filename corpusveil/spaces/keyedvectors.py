"""gensim's format of ``KeyedVectors`` (``kv.save``): a pickle, with large arrays in ``.npy`` files beside it.

A pickle can run any code, so it is not given to gensim, nor to NumPy's functions: a pickled ``dtype`` may declare that
the bytes of an array are pointers. The few names that a ``KeyedVectors`` needs resolve to recorded calls, created anew
for each file; the only array that is needed is then read from its bytes.

It is not given to the unpickler in C either, since a few bytes can make that take all memory, or overflow its stack.
"""

from __future__ import annotations

import functools
import math
import pickle
import re
from collections.abc import Callable
from typing import IO, Any, ClassVar

import numpy as np
import numpy.typing as npt

from corpusveil.errors import BadFileError, FormatError
from corpusveil.spaces.vector_formats import VectorTable
from corpusveil.storage import files
from corpusveil.storage.failures import BROKEN_ARRAY

_MODULES = {"numpy._core.multiarray", "numpy.core.multiarray", "numpy._core.numeric", "numpy.core.numeric"}
_SHOWN = re.compile(r"(gensim|numpy)\.[A-Za-z0-9_.]{1,80}")
_NUMBERS = {"f2", "f4", "f8"}
_SCALARS = {"float16", "float32", "float64", "int32", "int64", "uint32"}
_InPython: Any = pickle._Unpickler  # noqa: SLF001 - the one whose steps can be watched


class _RefusedError(pickle.UnpicklingError):
    """A name that no vectors need."""


class _Note:
    """A call in a pickle, and the state that the pickle gave it."""

    def __init__(self, *arguments: Any) -> None:
        self.given = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _encode(text: str, encoding: str) -> bytes:
    """Return bytes in the encoding of protocol 2."""
    if encoding != "latin1":
        raise _RefusedError("another encoding")
    return text.encode(encoding)


class _Whole:
    """A file whose reads never exceed its remaining size, so that memory is allocated only for existing bytes."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._left = file, size

    def read(self, size: int) -> bytes:
        if size > self._left:
            raise EOFError
        self._left -= size
        return self._file.read(size)

    def readline(self) -> bytes:
        line = self._file.readline()
        self._left -= len(line)
        return line


def _with_plain(code: bytes, keys: slice) -> Callable[[Any], None]:
    """Return a step that refuses keys that are not plain: the hash of a tuple goes as deep as the tuple."""
    step = _InPython.dispatch[code[0]]

    def checked(unpickler: Any) -> None:
        if not all(type(key) is str or type(key) is int for key in unpickler.stack[keys]):
            raise pickle.UnpicklingError
        step(unpickler)

    return checked


class _Unpickler(_InPython):
    """Resolves names to its own classes, so that a file cannot affect the next one."""

    dispatch: ClassVar[dict[int, Any]] = dict(_InPython.dispatch)

    def __init__(self, file: IO[bytes], size: int) -> None:
        super().__init__(_Whole(file, size))
        self.keyed = type("KeyedVectors", (), {})
        self.array = type("Array", (_Note,), {})
        self.dtype = type("DType", (_Note,), {})
        self.other = type("Other", (_Note,), {})
        self.encode = functools.partial(_encode)

    def get_extension(self, code: int) -> None:
        """Refuse persistent objects, which only this process could have registered."""
        raise pickle.UnpicklingError(code)

    def _bytearray(self) -> None:
        self.append(bytearray(self.read(int.from_bytes(self.read(8), "little"))))

    dispatch |= {
        pickle.SETITEM[0]: _with_plain(pickle.SETITEM, slice(-2, -1)),
        pickle.SETITEMS[0]: _with_plain(pickle.SETITEMS, slice(None, None, 2)),
        pickle.DICT[0]: _with_plain(pickle.DICT, slice(None, None, 2)),
        pickle.ADDITEMS[0]: _with_plain(pickle.ADDITEMS, slice(None)),
        pickle.FROZENSET[0]: _with_plain(pickle.FROZENSET, slice(None)),
        pickle.BYTEARRAY8[0]: _bytearray,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("gensim.models.keyedvectors", "KeyedVectors"):
            return self.keyed
        if (module, name) == ("numpy", "dtype"):
            return self.dtype
        if module in _MODULES and name in {"_reconstruct", "_frombuffer"}:
            return self.array
        if (module, name) == ("numpy", "ndarray") or (module in _MODULES and name == "scalar"):
            return self.other
        if module == "numpy" and name in _SCALARS:
            return self.other
        if (module, name) == ("_codecs", "encode"):
            return self.encode
        requested = f"{module}.{name}"
        raise _RefusedError(requested if _SHOWN.fullmatch(requested) else "a name of another package")

    def numbers(self, note: Any) -> npt.NDArray[Any] | None:
        """Return the array of plain numbers of a recorded call; None if it is not one."""
        if not isinstance(note, _Note) or type(note) is not self.array:
            return None
        if note.state is None:  # protocol 5: _frombuffer(data, dtype, shape, order)
            data, kind, shape, order = note.given
            fortran = order == "F"
        else:
            _, shape, kind, fortran, data = note.state
        if (
            not isinstance(kind, _Note)
            or type(kind) is not self.dtype
            or kind.given[0] not in _NUMBERS
            or not isinstance(data, (bytes, bytearray))
        ):
            return None
        order = kind.state[1] if kind.state is not None else "<"
        dtype = np.dtype(kind.given[0]).newbyteorder(">" if order == ">" else "<")
        if len(shape) != 2 or math.prod(shape) * dtype.itemsize != len(data):
            return None
        return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran is True else "C")


def read(url: str) -> VectorTable:
    """Read this format. Raises UserError, which names the file, for a faulty file."""
    size = files.size(url) or 0
    with files.open_read(url) as file:
        unpickler = _Unpickler(file, size)
        try:
            saved = unpickler.load()
        except _RefusedError as error:
            raise FormatError(
                f"{url}: this is not a plain KeyedVectors file ({error} is not opened); for a whole model, save its "
                "vectors: model.wv.save(...)."
            ) from None
        except Exception:  # noqa: BLE001 - a damaged pickle raises what it likes
            raise BadFileError(
                f"{url}: this is not a valid gensim KeyedVectors file; save it again with kv.save(...)."
            ) from None
    attributes = vars(saved) if isinstance(saved, unpickler.keyed) else {}
    words = attributes.get("index_to_key")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise FormatError(
            f"{url}: this has no gensim KeyedVectors of words (gensim 4 format); save it again with kv.save(...)."
        )
    return VectorTable(words, _vectors(url, unpickler, attributes))


def _vectors(url: str, unpickler: _Unpickler, attributes: dict[str, Any]) -> npt.NDArray[Any]:
    note = attributes.get("vectors")
    beside = attributes.get("__numpys", [])
    if note is None and isinstance(beside, list) and "vectors" in beside:
        address = f"{url}.vectors.npy"
        with files.open_read(address) as file:
            try:
                array: npt.NDArray[Any] = np.load(file, allow_pickle=False)
            except BROKEN_ARRAY:
                raise BadFileError(
                    f"{address}: this is not a valid NumPy array; save the KeyedVectors again."
                ) from None
            return array
    try:
        vectors = unpickler.numbers(note)
    except (LookupError, TypeError, ValueError, AttributeError):
        vectors = None
    if vectors is None:
        raise FormatError(f"{url}: this has no array of vectors; save it again with kv.save(...).")
    return vectors
