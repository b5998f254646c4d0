"""Orders of lists: greedy is Algorithm 1 exactly, improved is no longer; what balance and grammar change in them."""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.search import neighbors, slices
from corpusveil.search.nearest_words import NearestSearch
from corpusveil.search.neighbors import nominate
from corpusveil.spaces import Vocabulary
from corpusveil.spaces.build import build_space
from corpusveil.spaces.grammar import Neighbors
from corpusveil.spaces.list_orders import greedy_orders, improved_orders
from corpusveil.spaces.public_counts import read_counts, read_neighbors
from corpusveil.spaces.vectors import Vectors
from tests.calls import succeeds
from tests.mechanisms.spaces import normal

Floats = npt.NDArray[np.float32]


def brute_force(vectors: np.ndarray, start: int) -> np.ndarray:
    """Algorithm 1 word by word in float64, ties by id."""
    points = vectors.astype(np.float64)
    used = np.zeros(len(points), bool)
    tour = [start]
    used[start] = True
    while len(tour) < len(points):
        squared = np.zeros(len(points))
        for k in range(points.shape[1]):
            squared += (points[:, k] - points[tour[-1], k]) ** 2
        squared[used] = np.inf
        tour.append(int(squared.argmin()))
        used[tour[-1]] = True
    return np.array(tour, np.int32)


@functools.cache
def cases() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)
    normal = rng.normal
    clusters = normal(size=(5, 20))[rng.integers(0, 5, 300)]
    return {
        "one dimension": normal(size=(450, 1)),
        "gaussian": normal(size=(350, 60)),
        "grid with exact ties": rng.integers(0, 25, (450, 2)),
        "corners of a cube": rng.integers(0, 2, (400, 9)),
        "duplicates": np.r_[normal(size=(80, 7))[rng.integers(0, 80, 250)], np.zeros((150, 7)), -np.zeros((9, 7))],
        "all equal": np.ones((150, 3)),
        "clusters": normal(size=(300, 20)) * 1e-3 + clusters * 1e3,
        "large common offset": normal(size=(300, 30)) + 1e5,
        "two far clusters, beyond float32 products": normal(size=(300, 10)) + rng.choice([-1e6, 1e6], (300, 1)),
        "one far word": np.r_[normal(size=(300, 10)), np.full((1, 10), 1e30)],
        "tiny": normal(size=(300, 8)) * 1e-41,
        "huge": normal(size=(300, 8)) * 5e37,
        "all magnitudes": normal(size=(300, 12)) * 10.0 ** rng.integers(-15, 15, (300, 12)),
    }


def wrong_floors(vectors: Floats) -> int:
    """Count the words with a floor above the squared distance to a word that they do not nominate."""
    found = nominate(vectors, 8)
    assert (np.diff(np.sort(found.rows, axis=1)) > 0).all(), "a word is nominated twice"
    points = vectors.astype(np.float64)
    count = 0
    for i in range(0, len(points), 7):
        squared = ((points - points[i]) ** 2).sum(axis=1)
        squared[found.rows[i]] = np.inf
        count += squared.min() * (1 + 1e-13) < found.floors[i]
    return count


@pytest.mark.parametrize("name", cases())
def test_blocks_and_threads_change_neither_floors_nor_tour(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = cases()[name].astype(np.float32)
    monkeypatch.setattr(neighbors, "TILE_ROWS", 130)
    monkeypatch.setattr(slices, "_threads", lambda: 3)
    assert wrong_floors(vectors) == 0
    assert np.array_equal(greedy_orders(vectors, [3])[0], brute_force(vectors, 3))


def test_floors_of_fewer_words_than_were_compared_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a search that leaves a word out nominates others, whose floors are too high."""
    vectors = cases()["gaussian"].astype(np.float32)
    several = NearestSearch.several
    monkeypatch.setattr(NearestSearch, "several", lambda self, points, k: several(self, points, k + 1)[:, 1:])
    assert wrong_floors(vectors) > 0


def length(vectors: Floats, tour: npt.NDArray[Any]) -> float:
    """Return the length of a list that is closed into a ring."""
    ring = vectors[np.append(tour, tour[0])].astype(np.float64)
    return float(np.linalg.norm(np.diff(ring, axis=0), axis=1).sum())


@pytest.mark.parametrize(("size", "dimensions"), [(n, d) for n in (1, 2, 3, 6, 700) for d in (1, 30)])
def test_a_list_of_every_word_that_is_no_longer(size: int, dimensions: int) -> None:
    """Every list is a permutation, and as a ring no longer than the greedy one it began with."""
    vectors = normal(size, dimensions)
    starts = list(range(min(3, size)))
    greedy, improved = greedy_orders(vectors, starts), improved_orders(vectors, starts)
    for before, after in zip(greedy, improved, strict=True):
        assert sorted(after.tolist()) == list(range(size))
        assert length(vectors, after) <= length(vectors, before) * (1 + 1e-9)


def test_equal_vectors_stand_together() -> None:
    """Thousands of equal vectors cost no time, and stand side by side."""
    vectors = np.concatenate([normal(100, 4), np.zeros((3000, 4), np.float32)])
    order = improved_orders(vectors, [5])[0]
    places = np.flatnonzero(order >= 100)
    assert sorted(order.tolist()) == list(range(3100))
    assert np.ptp(places) == 2999


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
    counted = build_space(dataclasses.replace(embedding(), counts=COUNTS, where=None), balance=None)
    assert "public counts, here those of the vectors" in counted.info["made"]["balance_note"]
    greedy = build_space(embedding(), counts=COUNTS, balance=None, order="greedy")
    np.testing.assert_array_equal(
        greedy.lists, build_space(embedding(), counts=COUNTS, balance=1, order="greedy").lists
    )


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


CLASSES, EACH = 4, 60
WORDS = [f"{'nvap'[number % CLASSES]}{number // CLASSES}" for number in range(CLASSES * EACH)]
WORDS = [word.translate(str.maketrans("0123456789", "qwertyuiop")) for word in WORDS]
RNG = np.random.default_rng(7)
MEANING = RNG.standard_normal((EACH, 12))
"""One meaning for a word of each class, as *refund* and *refunded*: only use tells their classes apart."""
VECTORS = np.float32(np.repeat(MEANING, CLASSES, axis=0) + 0.1 * RNG.standard_normal((CLASSES * EACH, 12)))


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Counts of sentences in which the classes follow one another in turn."""
    folder = tmp_path_factory.mktemp("grammar")
    chosen = RNG.integers(0, EACH, (14_000, CLASSES))
    lines = [" ".join(WORDS[CLASSES * word + at] for at, word in enumerate(row)) for row in chosen.tolist()]
    (folder / "in.jsonl").write_text("".join(json.dumps({"text": f"{line}."}) + "\n" for line in lines))
    succeeds("count", folder / "in.jsonl", "--output", folder / "counts", "--max-n", 2, "--min-count", 1)
    return folder / "counts"


def near_share(order: np.ndarray) -> float:
    """The share of neighbors on the list that are of one class."""
    return float((order % CLASSES == np.roll(order, 1) % CLASSES).mean())


@pytest.fixture(scope="module")
def pairs(counts: Path) -> Neighbors:
    vocabulary = Vocabulary.from_words(WORDS)
    return read_neighbors(str(counts), Vocabulary.from_words(WORDS, read_counts(str(counts), vocabulary)))


def test_neighbors_on_the_list_are_used_alike_and_vectors_are_unchanged(pairs: Neighbors) -> None:
    vectors = Vectors(WORDS, VECTORS)
    plain = build_space(vectors, order="improved")
    asked = build_space(vectors, order="improved", neighbors=pairs, grammar=1.0)
    assert near_share(plain.lists[0]) < 0.4
    assert near_share(asked.lists[0]) > 0.7
    assert np.array_equal(asked.vectors, VECTORS)
    assert asked.info["made"]["grammar"] == 1.0
    assert build_space(vectors, order="improved", neighbors=pairs, grammar=0.0) == plain
    assert build_space(vectors, order="improved", neighbors=pairs) == asked, "1 is the default where there are pairs"
