"""A vectors artefact: a folder with ``vectors.npy`` [V, d] and ``vocabulary.parquet`` (``id, token, words, count``)."""

from __future__ import annotations

import numpy as np

from corpusveil.choices import HYPHENS, Hyphens
from corpusveil.errors import ArtefactError
from corpusveil.spaces.formats.vector_table import BROKEN_ARRAY, VectorTable
from corpusveil.spaces.vocabulary import read_vocabulary
from corpusveil.storage import files
from corpusveil.storage.artifacts import described


def read(url: str) -> VectorTable:
    """Read this format. Raises UserError, which names the file, for a faulty file."""
    matrix = files.join(url, "vectors.npy")
    with files.open_read(matrix) as file:
        try:
            vectors = np.load(file, allow_pickle=False)
        except BROKEN_ARRAY:
            raise ArtefactError(
                f"{matrix}: this is not a valid NumPy array of numbers; write the artefact again."
            ) from None
    vocabulary = read_vocabulary(files.join(url, "vocabulary.parquet"))
    return VectorTable(list(vocabulary.words), vectors, 1, vocabulary.counts, _hyphens(url))


def _hyphens(url: str) -> Hyphens | None:
    """Return how text was read, by the description of the artefact; None if it does not say so."""
    description = described(url)
    hyphens = None if description is None else description.as_dict().get("hyphens")
    if hyphens is not None and hyphens not in HYPHENS:
        raise ArtefactError(f"{url}: hyphens = {hyphens!r}: only {' or '.join(HYPHENS)} is valid; train again.")
    return hyphens
