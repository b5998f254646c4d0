"""A vectors artefact: a folder with ``vectors.npy`` [V, d] and ``vocabulary.parquet`` (``id, token, words, count``)."""

from __future__ import annotations

import numpy as np

from corpusveil.choices import HYPHENS, Hyphens
from corpusveil.errors import UserError
from corpusveil.spaces.formats.table import BROKEN_ARRAY, Table
from corpusveil.spaces.vocabulary import read_vocabulary
from corpusveil.storage import files
from corpusveil.storage.shapes import parsed


def read(url: str) -> Table:
    """Read this format; what is wrong with a file is a ``UserError`` that names it."""
    matrix = files.join(url, "vectors.npy")
    with files.open_read(matrix) as file:
        try:
            vectors = np.load(file, allow_pickle=False)
        except BROKEN_ARRAY:
            raise UserError(f"{matrix}: not a sound NumPy array of numbers; write the artefact again.") from None
    vocabulary = read_vocabulary(files.join(url, "vocabulary.parquet"))
    return Table(list(vocabulary.words), vectors, 1, vocabulary.counts, _hyphens(url))


def _hyphens(url: str) -> Hyphens | None:
    """Return how the description of the artefact says that text was read; None where it does not."""
    address = files.join(url, "_artifact.json")
    told = parsed(files.read_if_there(address) or b"{}")
    found = told.get("hyphens") if isinstance(told, dict) else None
    if found is not None and found not in HYPHENS:
        raise UserError(f"{address}: hyphens = {found!r}: it may be {' or '.join(HYPHENS)}; train again.")
    return found
