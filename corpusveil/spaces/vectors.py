"""Word vectors as trained or downloaded: read from any known format, checked, never changed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.arrays import Float32, Int64
from corpusveil.choices import Hyphens
from corpusveil.errors import DataError, SettingError
from corpusveil.spaces import vector_formats
from corpusveil.spaces.vocabulary import BLOCK
from corpusveil.storage import files
from corpusveil.storage.artifacts import description_of, is_artifact
from corpusveil.text import languages

READERS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    ".npz": vector_formats.read_npz,
    ".bin": vector_formats.read_binary,
}
"""Reader by suffix (``.gz`` and ``.zst`` aside); a folder is a vectors artifact, everything else is text."""
_NO_WORD = re.compile(r"\A\Z|[\s\0\ud800-\udfff]")
"""Nothing, any white space of Unicode, a zero, or half of a character."""


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Words and their vectors. Raises UserError that names the source and the row of an unusable word or vector.

    Attributes:
        words: V >= 2 different words, none empty, none with a blank.
        vectors: float32 [V, d], finite, exactly as given (float64 is rounded to float32, nothing is normalized).
        source: the file's name, without folders.
        counts: int64 [V], if the source has them.
        hyphens: whether hyphens joined words in the training text; None if unknown.
        language: the language of the training text; None if unknown.
        where: the name of the source in errors.
        first_row: the row of the first word in the source.

    >>> import numpy as np
    >>> vectors = cv.Vectors(["river", "lake", "bread"], np.array([[0.1, 0.2], [0.1, 0.3], [0.9, 0.4]]))
    >>> len(cv.build_space(vectors))
    3
    """

    words: list[str]
    vectors: Float32
    source: str = "memory"
    counts: Int64 | None = None
    hyphens: Hyphens | None = None
    language: str | None = None

    where: InitVar[str | None] = None
    first_row: InitVar[int] = 1

    def __post_init__(self, where: str | None, first_row: int) -> None:
        where = where or self.source
        object.__setattr__(self, "vectors", _checked_matrix(self.vectors, len(self.words), where, first_row))
        _check_words(self.words, where, first_row)
        if self.counts is not None and (self.counts.shape != (len(self),) or self.counts.min() < 0):
            raise SettingError(
                f"{where}: the counts are not whole numbers of 0 or more, one for each word; correct them."
            )

    def __len__(self) -> int:
        return len(self.words)


PAIRS = 1 << 14


def median_distance(vectors: Float32) -> float:
    """Return the median Euclidean distance of 16,384 random pairs of words, the same in every run; vectors [V, d].

    A mechanism on vectors spends epsilon times a distance, so vectors twice as long are as an epsilon twice as large.
    """
    raw = np.random.PCG64(0).random_raw(2 * PAIRS)  # whose values NumPy never changes
    words = np.uint64(len(vectors))
    first = raw[::2] % words
    other = (first + 1 + raw[1::2] % (words - np.uint64(1))) % words
    gaps = vectors[first].astype(np.float64) - vectors[other]
    return float(np.median(np.sqrt((gaps**2).sum(axis=1))))


def scaled(vectors: Float32, scale: float) -> Float32:
    """Return vectors scaled to the median distance ``scale``. Raises UserError for a scale that cannot be."""
    own = median_distance(vectors)
    if not 0 < scale < np.inf or not own:
        raise SettingError(f"scale {scale:g}: give a median distance above 0, for vectors that differ.")
    # Six digits, so that machines that sum in another order have the same vectors.
    return np.ascontiguousarray(vectors * np.float32(f"{scale / own:.6g}"))


def read_vectors(url: str | os.PathLike[str], language: str | None = None) -> Vectors:
    """Read word vectors: word2vec or GloVe text (also ``.gz``, ``.zst``), ``.bin``, ``.npz``, or a folder, at any URL.

    A folder is what ``train_vectors`` wrote; ``.npz`` has ``vocab`` and ``vectors``. ``language`` is that of the words,
    by code or English name. Raises UserError that names the file and the row that cannot be used.

    >>> cv.read_vectors("glove.txt").vectors.dtype
    dtype('float32')
    """
    url = files.as_text(url)
    table = reader(url)(url)
    table["language"] = languages.agreed(language, table.get("language"), url)
    return Vectors(source=files.resolve(url)[1].rstrip("/").rsplit("/", 1)[-1], where=url, **table)


def reader(url: str) -> Callable[[str], dict[str, Any]]:
    """Return the reader of ``url`` by its suffix, or by its being a folder."""
    name = url.rstrip("/").rsplit("/", 1)[-1].lower().removesuffix(".gz").removesuffix(".zst")
    if name.endswith((".kv", ".model")):
        raise DataError(
            f"{url}: this is a pickle, which could run code; in gensim, save the vectors by "
            "kv.save_word2vec_format('vectors.bin', binary=True)."
        )
    if name.endswith(".parquet"):
        raise DataError(f"{url}: no vectors are read of Parquet; write 'vocab' and 'vectors' with numpy.savez.")
    for suffix, read in READERS.items():
        if name.endswith(suffix):
            return read
    if files.exists(files.join(url, "vectors.npy")):
        return vector_formats.read_artifact
    if is_artifact(url):
        description_of(url, "vectors")  # refuses one of another kind, such as tokens
    return vector_formats.read_text


def _checked_matrix(values: npt.NDArray[Any], words: int, where: str, first_row: int) -> Float32:
    """Return the vectors as contiguous float32 [V, d]. Raises UserError for invalid vectors."""
    if values.dtype.kind not in "fiu" or values.ndim != 2 or values.shape[1] == 0:
        raise SettingError(f"{where}: the vectors are {values.dtype} {values.shape}; give numbers [words, dimensions].")
    if len(values) != words:
        raise SettingError(f"{where}: there are {words} words and {len(values)} vectors; give a vector for each word.")
    if words < 2:
        raise DataError(f"{where}: there are {words} words; give at least two.")
    with np.errstate(over="ignore"):
        vectors = np.ascontiguousarray(values, np.float32)
    for i in range(0, words, BLOCK):
        bad = np.flatnonzero(~np.isfinite(vectors[i : i + BLOCK]).all(axis=1))
        if len(bad):
            row = first_row + i + int(bad[0])
            raise DataError(
                f"{where}, row {row}: a number is not finite (NaN, infinite or beyond float32); correct or delete "
                "this row."
            )
    return vectors


def _check_words(words: list[str], where: str, first_row: int) -> None:
    seen: dict[str, int] = {}
    for row, word in enumerate(words, first_row):
        if _NO_WORD.search(word):
            raise DataError(
                f"{where}, row {row}: the word is empty, has a blank or is not valid Unicode; correct or delete it."
            )
        if (earlier := seen.setdefault(word, row)) != row:
            raise DataError(f"{where}, row {row}: this word is also in row {earlier}; delete either row.")
