"""Tokens joined to collocations before they are privatized: from then on, a unit is a token like any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.collocations.collocation_table import Collocations
from corpusveil.collocations.tokenizers import Method, units
from corpusveil.compiled import compiled
from corpusveil.spaces import Space
from corpusveil.text.classes import UNKNOWN
from corpusveil.text.tokens import Tokens


@compiled
def _join(
    starts: Any, ends: Any, classes: Any, ids: Any, offsets: Any, lengths: Any, entries: Any, of_entry: Any,
    new_starts: Any, new_ends: Any, new_classes: Any, new_ids: Any, new_offsets: Any,
) -> int:  # fmt: skip
    """Write one token for each unit; return their number."""
    n = 0
    for document in range(offsets.size - 1):
        new_offsets[document] = n
        t = offsets[document]
        while t < offsets[document + 1]:
            length = max(lengths[t], 1)
            new_starts[n] = starts[t]
            new_ends[n] = ends[t + length - 1]
            new_classes[n] = classes[t]
            new_ids[n] = of_entry[entries[t]] if entries[t] >= 0 else ids[t]
            n += 1
            t += length
    new_offsets[offsets.size - 1] = n
    return n


@dataclass(frozen=True, slots=True)
class Joiner:
    """Joins tokens to the collocations that a space has.

    ``of_word`` int32 maps ids of the tokenizer to word ids of the table, -1 where it has none; ``of_entry`` int32 its
    collocations to ids of the space; ``known`` is the number of tokenizer ids that exist without the table.
    """

    collocations: Collocations
    method: Method
    of_word: npt.NDArray[np.int32]
    of_entry: npt.NDArray[np.int32]
    known: int

    @classmethod
    def of(
        cls, collocations: Collocations, method: Method, space: Space, ids: npt.NDArray[np.int32], known: int, size: int
    ) -> Joiner:
        """Prepare for a tokenizer of ``size`` words, of which the first ``known`` exist without the table.

        ``ids`` int32 [W] are the tokenizer's ids of the table's words.
        """
        of_word = np.full(size, UNKNOWN, dtype=np.int32)
        of_word[ids] = np.arange(ids.size)
        of_entry = np.array([space.id(token) for token in collocations.tokens], dtype=np.int32)
        return cls(collocations, method, of_word, of_entry, known)

    def __call__(self, tokens: Tokens) -> Tokens:
        """Return the same text in units."""
        words = np.where(tokens.ids >= 0, self.of_word[tokens.ids], UNKNOWN).astype(np.int32)
        joined, _ = units(tokens, words, self.collocations, self.method)
        ids = np.where(tokens.ids < self.known, tokens.ids, UNKNOWN).astype(np.int32)
        count = len(tokens)
        starts, ends, new_ids = (np.empty(count, dtype=np.int32) for _ in range(3))
        classes, offsets = np.empty(count, dtype=np.uint8), np.empty(tokens.offsets.size, dtype=np.int64)
        size = _join(
            tokens.starts, tokens.ends, tokens.classes, ids, tokens.offsets, joined.lengths, joined.entries,
            self.of_entry, starts, ends, classes, new_ids, offsets,
        )  # fmt: skip
        return Tokens(
            tokens.data, tokens.documents, starts[:size], ends[:size], classes[:size], new_ids[:size], offsets
        )
