"""gensim's own form of ``KeyedVectors`` (``kv.save``): a pickle, with large arrays in ``.npy`` files beside it.

A pickle can run any code, so it is not given to gensim: only the few names that a ``KeyedVectors`` needs are resolved,
the class itself to an empty shell, and anything else is refused.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.errors import UserError
from corpusveil.spaces.formats.table import BROKEN_ARRAY, Table
from corpusveil.storage import files


class _Shell:
    """Stands for ``gensim.models.keyedvectors.KeyedVectors``: takes its attributes, does nothing."""


_ARRAYS = {"_reconstruct", "_frombuffer", "scalar"}  # numpy's functions that rebuild an array or a number
_ARRAY_MODULES = {
    "numpy._core.multiarray",
    "numpy.core.multiarray",
    "numpy._core.numeric",
    "numpy.core.numeric",
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("gensim.models.keyedvectors", "KeyedVectors"):
            return _Shell
        if (module, name) == ("numpy", "ndarray") or (module in _ARRAY_MODULES and name in _ARRAYS):
            return super().find_class(module, name)
        if module == "numpy" and name in {"dtype", "float16", "float32", "float64", "int32", "int64", "uint32"}:
            return super().find_class(module, name)
        if (module, name) == ("_codecs", "encode"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name}")


def read(url: str) -> Table:
    """Read this format; what is wrong with a file is a ``UserError`` that names it."""
    with files.open_read(url) as file:
        try:
            saved = _Unpickler(file).load()
        except pickle.UnpicklingError as error:
            raise UserError(
                f"{url}: not a plain KeyedVectors file ({error} is not opened); "
                "of a whole model save its vectors: model.wv.save(...)."
            ) from None
        except (
            LookupError,
            ArithmeticError,
            ValueError,
            TypeError,
            AttributeError,
            ImportError,
            EOFError,
            MemoryError,
        ):
            raise UserError(f"{url}: not a sound gensim KeyedVectors file; save it again with kv.save(...).") from None
    attributes = vars(saved) if isinstance(saved, _Shell) else {}
    words = attributes.get("index_to_key")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise UserError(
            f"{url}: holds no gensim KeyedVectors of words (gensim 4 form); save it again with kv.save(...)."
        )
    return Table(words, _vectors(url, attributes))


def _vectors(url: str, attributes: dict[str, Any]) -> npt.NDArray[Any]:
    vectors = attributes.get("vectors")
    if vectors is None and "vectors" in attributes.get("__numpys", []):
        beside = f"{url}.vectors.npy"
        with files.open_read(beside) as file:
            try:
                vectors = np.load(file, allow_pickle=False)
            except BROKEN_ARRAY:
                raise UserError(f"{beside}: not a sound NumPy array; save the KeyedVectors again.") from None
    if not isinstance(vectors, np.ndarray):
        raise UserError(f"{url}: holds no array of vectors; save it again with kv.save(...).")
    return vectors
