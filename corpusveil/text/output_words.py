"""The words a release can write, as bytes: the vocabulary in each case form it needs, single bytes, and the masks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corpusveil.text.characters import upper
from corpusveil.text.policy import MASKS
from corpusveil.wide import WIDTH

LONG = 255
"""The number of bytes in a record of a word that is too long for it."""


def concatenate(words: list[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the words as one uint8 array and int64 [V + 1] offsets into it."""
    offsets = np.zeros(len(words) + 1, dtype=np.int64)
    np.cumsum([len(word) for word in words], out=offsets[1:])
    return np.frombuffer(b"".join(words), dtype=np.uint8), offsets


class Wording(NamedTuple):
    """``words`` uint8 and ``offsets`` int64 [F·V + 1] in F case forms; ``longest`` int32 [V]; ``masks`` as the words.

    ``records`` uint8 [16 (F·V + 256)] has each word again, and after the words each byte: up to 15 bytes and their
    number, which is `LONG` for a longer word. So most words are had by one read. ``words`` and ``masks`` end with
    ``WIDTH`` zeros, so that they can be copied ``WIDTH`` bytes at a time.
    """

    words: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    records: npt.NDArray[np.uint8]
    longest: npt.NDArray[np.int32]
    masks: npt.NDArray[np.uint8]
    mask_offsets: npt.NDArray[np.int64]

    @classmethod
    def build(cls, words: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], *, capitals: bool) -> Wording:
        """Prepare a vocabulary; with ``capitals`` also every word capitalized and in capitals."""
        count = offsets.size - 1
        if capitals:
            raw = words.tobytes()
            plain = [raw[offsets[k] : offsets[k + 1]].decode() for k in range(count)]
            forms = plain + [upper(word[:1]) + word[1:] for word in plain] + [upper(word) for word in plain]
            words, offsets = concatenate([word.encode() for word in forms])
        offsets = offsets.astype(np.int64)
        lengths = np.diff(offsets)
        masks, mask_offsets = concatenate([mask.encode() for mask in MASKS])
        words, masks = (np.append(array, np.zeros(WIDTH, np.uint8)) for array in (words, masks))
        records = np.zeros((lengths.size + 256, WIDTH), np.uint8)
        for k in range(WIDTH - 1):
            here = lengths > k
            records[: lengths.size][here, k] = words[offsets[:-1][here] + k]
        records[: lengths.size, -1] = np.where(lengths < WIDTH, lengths, LONG)
        records[lengths.size :, 0], records[lengths.size :, -1] = np.arange(256), 1
        longest = lengths.reshape(-1, count).max(axis=0).astype(np.int32)
        return cls(words, offsets, records.reshape(-1), longest, masks, mask_offsets)
