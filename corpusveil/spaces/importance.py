"""Importance through the metric: public factors by which words' vectors are scaled, instead of budgets by word.

Budgets that depend on the words disclose them (``mechanisms.md`` §12); distances between public vectors disclose
nothing, and every guarantee holds in the scaled space as in any other.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from corpusveil.errors import BadFileError, BadRowError, DataError, FormatError
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage import files

LARGEST = 1024.0


def read_importance(url: str) -> dict[str, float]:
    """Read words and factors, ``word<TAB>factor`` a line. Raises UserError that names the file and the line."""
    try:
        lines = files.read_bytes(url).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise BadFileError(
            f"{url}: this file is not valid UTF-8; write a word, a tab and a number on each line."
        ) from None
    factors: dict[str, float] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        word, tab, text = line.partition("\t")
        try:
            factor = float(text)
        except ValueError:
            factor = math.nan
        if not tab or not word.strip() or not 1 / LARGEST <= factor <= LARGEST:
            raise BadRowError(
                f"{url}, line {number}: write a word, a tab and a number from 1/{LARGEST:g} to {LARGEST:g}."
            )
        if word.strip() in factors:
            raise BadRowError(f"{url}, line {number}: this word already has a factor; delete either line.")
        factors[word.strip()] = factor
    if not factors:
        raise FormatError(f"{url}: this file has no words; write a word, a tab and a number on each line.")
    return factors


def scaled(vectors: Vectors, importance: Mapping[str, float]) -> Vectors:
    """Return the embedding with each word's vector times its factor, 1 for words without a factor.

    Raises UserError if none of the words is in it.
    """
    factors = np.array([importance.get(word, 1.0) for word in vectors.words])
    if not any(word in importance for word in vectors.words):
        raise DataError(
            f"{vectors.source}: none of the words with a factor is among these words; check their spelling."
        )
    return dataclasses.replace(vectors, vectors=(vectors.vectors * factors[:, None]).astype(np.float32))
