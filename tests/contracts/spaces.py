"""Small spaces, given rather than built, for tests that look at every pair of words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from corpusveil.spaces import Space, Vocabulary
from corpusveil.spaces.space import KIND, VERSION, content_digest

DIMENSIONS = 4


def words_of(size: int) -> list[str]:
    """Return ``size`` different lower-case words."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(letters[k // 26**place % 26] for place in (3, 2, 1, 0)) for k in range(size)]


def small_space(
    size: int = 0,
    *,
    words: Sequence[str] | None = None,
    lists: int = 1,
    counts: Sequence[int] | None = None,
    seed: int = 5,
    vectors: npt.NDArray[np.float32] | None = None,
) -> Space:
    """Return a space with random vectors, or those given, and random lists."""
    words = words_of(size) if words is None else list(words)
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(len(words), DIMENSIONS)).astype(np.float32) if vectors is None else vectors
    orders = [random.permutation(len(words)).astype(np.int32) for _ in range(lists)]
    rows = np.array(orders, dtype=np.int32).reshape(lists, len(words))
    vocabulary = Vocabulary.from_words(words, None if counts is None else np.array(counts, dtype=np.int64))
    digest = content_digest(vocabulary, vectors, rows)
    info = {"kind": KIND, "version": VERSION, "digest": digest}
    info |= {"words": len(words), "dimensions": vectors.shape[1], "lists": lists}
    return Space(vocabulary, vectors, rows, digest, None, info)


def ring_distances(space: Space) -> npt.NDArray[np.float64]:
    """Return the steps between any two words on the ring, the most of all lists; float64 [V, V]. Slow and plain."""
    size = len(space)
    out = np.zeros((size, size))
    for order in space.lists.tolist():
        for a in range(size):
            for b in range(size):
                steps = abs(order.index(a) - order.index(b))
                out[a, b] = max(out[a, b], min(steps, size - steps))
    return out
