"""A balanced space weighs public frequency beside meaning, and says so; without a balance nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors

SIZE = 120
COUNTS = np.random.default_rng(5).integers(0, 100_000, SIZE)


def embedding(seed: int = 0) -> Vectors:
    words = [f"w{i}" for i in range(SIZE)]
    return Vectors(words, np.random.default_rng(seed).normal(size=(SIZE, 6)).astype(np.float32) + 3, f"toy{seed}")


def test_by_default_lists_are_balanced_and_vectors_are_as_given() -> None:
    """Mechanisms on lists gain by it; those on vectors, which lose by it, keep what they had."""
    space = build_space(embedding(), counts=COUNTS, balance=None)
    np.testing.assert_array_equal(space.vectors, embedding().vectors)
    whole = build_space(embedding(), counts=COUNTS, balance=1, order="improved")
    np.testing.assert_array_equal(space.lists, whole.lists)
    assert space.digest not in (whole.digest, build_space(embedding(), counts=COUNTS).digest)
    assert "Balance 1 in the order of the lists alone (improved order)" in space.info["made"]["balance_note"]
    greedy = build_space(embedding(), counts=COUNTS, balance=None, order="greedy")
    np.testing.assert_array_equal(
        greedy.lists, build_space(embedding(), counts=COUNTS, balance=1, order="greedy").lists
    )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "no public counts"),
        ({"counts": COUNTS, "lists": 0}, "no lists"),
        ({"counts": np.full(SIZE, 7)}, "the same public count"),
    ],
)
def test_what_cannot_be_balanced_is_as_before_by_default(arguments: dict[str, Any], why: str) -> None:
    plain, chosen = (build_space(embedding(), balance=balance, **arguments) for balance in (0, None))
    assert chosen.digest == plain.digest
    assert why in chosen.info["made"]["balance_note"]
    assert ("scales" in chosen.info["made"]) is False


def test_the_coordinate_is_the_formula() -> None:
    """Against the formula in plain NumPy, with every distance of every pair."""
    space = build_space(embedding(), counts=COUNTS, balance=0.7)
    vectors, logs = embedding().vectors.astype(np.float64), np.log(COUNTS + 0.5)
    distances = np.linalg.norm(vectors[:, None] - vectors, axis=2)
    np.fill_diagonal(distances, np.inf)
    s = np.median(distances.min(axis=1)) / logs.std()
    np.testing.assert_array_equal(space.vectors[:, :-1], embedding().vectors)
    np.testing.assert_allclose(space.vectors[:, -1], 0.7 * s * (logs - logs.mean()), rtol=1e-5, atol=1e-6)
    assert space.info["made"]["balance"] == 0.7
    assert space.info["made"]["scales"] == pytest.approx([s])
