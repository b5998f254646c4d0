"""Seventeen small geometries of vectors, each of which has broken a published proof or a plausible implementation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from corpusveil.spaces import Space, Vocabulary
from corpusveil.spaces.space import KIND, VERSION, content_digest
from tests.contracts.spaces import words_of

Vectors = npt.NDArray[np.float64]


def _cluster_and_far(random: np.random.Generator) -> Vectors:
    return np.vstack([0.01 * random.normal(size=(23, 3)), [[40.0, 0, 0]]])


def _ring(count: int) -> Vectors:
    angle = 2 * np.pi * np.arange(count) / count
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _tree(depth: int) -> Vectors:
    """Return the leaves of a binary tree: words that share a prefix are near."""
    leaves = (np.arange(1 << depth)[:, None] >> np.arange(depth)) & 1
    return leaves * 2.0 ** np.arange(depth)


def _duplicates(random: np.random.Generator) -> Vectors:
    points = random.normal(size=(20, 5))
    points[10:] = points[:10]
    return points


def _near_duplicates(random: np.random.Generator) -> Vectors:
    points = random.normal(size=(20, 5))
    points[10:] = points[:10] + 1e-6 * random.normal(size=(10, 5))
    return points


def geometries() -> dict[str, Vectors]:
    """Return the vectors of each geometry by name; float64 [V, d]."""
    random = np.random.default_rng(20261121)
    spectrum = np.arange(1, 51) ** -1.0
    simplex = np.eye(30)
    return {
        "two words": np.array([[0.0], [1.0]]),
        "three words on a line": np.array([[0.0], [1.0], [1.5]]),
        "line, equal steps": np.arange(31.0)[:, None],
        "line, growing steps": (1.3 ** np.arange(25.0))[:, None],
        "grid": np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), axis=-1).reshape(-1, 2),
        "circle": _ring(24),
        "simplex: all pairs alike": simplex,
        "simplex and one far word": np.vstack([simplex, np.full((1, 30), 2.0)]),
        "star: a center and rays": np.vstack([np.zeros((1, 24)), np.eye(24), 3 * np.eye(24)[:8]]),
        "dense cluster and one far word": _cluster_and_far(random),
        "hypercube": _tree(5) / 2.0 ** np.arange(5),
        "binary tree": _tree(5),
        "Gaussian, 50 dimensions": random.normal(size=(40, 50)),
        "power-law spectrum": random.normal(size=(40, 50)) * spectrum,
        "exact duplicates": _duplicates(random),
        "near duplicates": _near_duplicates(random),
        "large and tiny norms": random.normal(size=(24, 4)) * 10.0 ** random.uniform(-6, 6, size=(24, 1)),
    }


def space_of(vectors: Vectors, lists: int = 2, seed: int = 7) -> Space:
    """Return a space of these vectors, with random lists and counts by Zipf's law."""
    random = np.random.default_rng(seed)
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    size = len(rows)
    counts = (1_000_000 // np.arange(1, size + 1)).astype(np.int64)
    vocabulary = Vocabulary.from_words(words_of(size), counts)
    orders = np.array([random.permutation(size) for _ in range(lists)], dtype=np.int32).reshape(lists, size)
    digest = content_digest(vocabulary, rows, orders)
    return Space(vocabulary, rows, orders, digest, None, {"kind": KIND, "version": VERSION, "digest": digest})


def as_run(name: str) -> bool:
    """Say whether a mechanism is what an author's code did: attacked, too, but few words may not tell its controls."""
    return name.endswith("-as-run")
