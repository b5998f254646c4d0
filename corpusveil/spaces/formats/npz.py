"""NumPy archives: ``vocab`` (strings [V]) and ``vectors`` ([V, d]); never unpickled."""

from __future__ import annotations

import zipfile
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.errors import BadFileError, FormatError
from corpusveil.spaces.formats.vector_table import BROKEN_ARRAY, VectorTable, decode
from corpusveil.storage import files

BROKEN_ZIP = (NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)


def read(url: str) -> VectorTable:
    """Read this format. Raises UserError, which names the file, for a faulty file."""
    with files.open_read(url) as file:
        try:
            archive = np.load(file, allow_pickle=False)
        except (*BROKEN_ARRAY, *BROKEN_ZIP):
            raise BadFileError(f"{url}: this is not a valid .npz archive; write it with numpy.savez.") from None
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise FormatError(f"{url}: this is a single array; write an .npz archive with 'vocab' and 'vectors'.")
        words = _member(archive, "vocab", url)
        vectors = _member(archive, "vectors", url)
    if words.ndim != 1 or words.dtype.kind not in "US":
        raise FormatError(f"{url}: 'vocab' is {words.dtype} {words.shape}; write a one-dimensional array of strings.")
    return VectorTable(_strings(words, url), vectors)


def _member(archive: Any, name: str, url: str) -> npt.NDArray[Any]:
    if name not in archive.files:
        raise FormatError(f"{url}: the array '{name}' is missing; write an archive with 'vocab' and 'vectors'.")
    try:
        array: npt.NDArray[Any] = archive[name]
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise BadFileError(f"{url}: '{name}' is damaged; write the archive again.") from None
        raise FormatError(
            f"{url}: '{name}' is an array of Python objects, which is not opened; save it with a plain dtype."
        ) from None
    except (*BROKEN_ARRAY, *BROKEN_ZIP):
        raise BadFileError(f"{url}: '{name}' is damaged; write the archive again.") from None
    if not isinstance(array, np.ndarray):
        raise FormatError(f"{url}: '{name}' is not a NumPy array; write the archive with numpy.savez.")
    return array


def _strings(words: npt.NDArray[Any], url: str) -> list[str]:
    if words.dtype.kind == "U":
        strings: list[str] = words.tolist()
        return strings
    return [decode(word, url, row) for row, word in enumerate(words.tolist(), 1)]
