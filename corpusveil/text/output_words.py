"""The words a release can write, as bytes: the vocabulary in each case form it needs, and the masks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corpusveil.text.policy import MASKS
from corpusveil.wide import WIDTH


def concatenate(words: list[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the words as one uint8 array and int64 [V + 1] offsets into it."""
    offsets = np.zeros(len(words) + 1, dtype=np.int64)
    np.cumsum([len(word) for word in words], out=offsets[1:])
    return np.frombuffer(b"".join(words), dtype=np.uint8), offsets


@dataclass(frozen=True, slots=True)
class Wording:
    """``words`` uint8 and ``offsets`` int64 [F·V + 1] in F case forms; ``longest`` int64 [V]; ``masks`` likewise.

    Both arrays of bytes end with ``WIDTH`` zeros, so that words can be copied so many bytes at a time.
    """

    words: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    longest: npt.NDArray[np.int64]
    masks: npt.NDArray[np.uint8]
    mask_offsets: npt.NDArray[np.int64]

    @classmethod
    def build(cls, words: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], *, capitals: bool) -> Wording:
        """Prepare a vocabulary; with ``capitals`` also every word capitalised and in capitals."""
        count = offsets.size - 1
        if capitals:
            raw = words.tobytes()
            plain = [raw[offsets[k] : offsets[k + 1]].decode() for k in range(count)]
            forms = plain + [word[:1].upper() + word[1:] for word in plain] + [word.upper() for word in plain]
            words, offsets = concatenate([word.encode() for word in forms])
        lengths = np.diff(offsets).reshape(-1, count)
        masks, mask_offsets = concatenate([mask.encode() for mask in MASKS])
        words, masks = (np.append(one, np.zeros(WIDTH, np.uint8)) for one in (words, masks))
        return cls(words, offsets.astype(np.int64), lengths.max(axis=0).astype(np.int64), masks, mask_offsets)
