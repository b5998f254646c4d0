"""The greedy order is Algorithm 1 exactly, however hard float32 is on the numbers."""

from __future__ import annotations

import functools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from corpusveil.spaces.list_orders import greedy_orders


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


@settings(max_examples=80, deadline=None)
@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 40), st.integers(1, 5)),
        elements=st.one_of(st.integers(-3, 3).map(float), st.floats(allow_nan=False, allow_infinity=False, width=32)),
    ),
    st.data(),
)
def test_any_small_input_gives_the_brute_force_tour(vectors: np.ndarray, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(vectors) - 1))
    np.testing.assert_array_equal(greedy_orders(vectors, [start])[0], brute_force(vectors, start))
