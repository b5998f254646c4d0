"""The law of a mechanism on lists, word by word: what is within reach of an output, and the best guess of it."""

from __future__ import annotations

import numpy as np

from corpusveil.arrays import Bool, Float64, Int64, Integers
from corpusveil.mechanisms.on_lists import OnLists


def chances(mechanism: OnLists, inputs: Integers, outputs: Integers, epsilon: float) -> Float64:
    """Return ``P[input, output]`` of words, as in ``distribution``; broadcast."""
    positions = mechanism.space.positions
    total = sum(mechanism.cells(place[inputs], place[outputs], epsilon) for place in positions)
    return np.asarray(total / len(positions))


def outside(mechanism: OnLists, epsilon: float) -> Float64:
    """Return the probability that each word gives one particular cell out of reach; float64 [V]."""
    size, positions = len(mechanism.space), mechanism.space.positions
    total = sum(mechanism.cells(place, (place + size // 2) % size, epsilon) for place in positions)
    return np.asarray(total / len(positions))


def near(mechanism: OnLists, outputs: Integers, epsilon: float) -> Int64:
    """Return the words within reach of each output on any list, int64 [U, W]; -1 for padding and repeated words."""
    space, steps = mechanism.space, _steps(mechanism, epsilon)
    neighbors: list[Int64] = []
    for number, (order, place) in enumerate(zip(space.lists, space.positions, strict=True)):
        words = order[(place[outputs][:, None] + steps) % len(space)].astype(np.int64)
        neighbors.append(np.where(in_reach(mechanism, words, outputs[:, None], epsilon, number), -1, words))
    return np.concatenate(neighbors, axis=1)


def in_reach(mechanism: OnLists, inputs: Integers, outputs: Integers, epsilon: float, lists: int | None = None) -> Bool:
    """Say which words are within reach of outputs on any of the first lists, or of all; broadcast."""
    size = len(mechanism.space)
    reach = min(mechanism.reach(epsilon), size // 2)
    inside = np.zeros(np.broadcast_shapes(inputs.shape, outputs.shape), dtype=np.bool_)
    for place in mechanism.space.positions[:lists]:
        gaps = np.abs(place[inputs].astype(np.int64) - place[outputs])
        inside |= np.minimum(gaps, size - gaps) <= reach
    return inside


def _steps(mechanism: OnLists, epsilon: float) -> Int64:
    size = len(mechanism.space)
    reach = min(mechanism.reach(epsilon), size // 2)
    return np.arange(-reach, min(reach, size - reach - 1) + 1)


def guessed_on_a_list(mechanism: OnLists, epsilon: float, words: Int64, shares: Float64) -> tuple[Float64, Float64]:
    """Return what ``guessed_by_distances`` does, on a single list: nearer words are likelier."""
    (order,), (place,), at = mechanism.space.lists, mechanism.space.positions, np.arange(len(mechanism.space))
    counted = np.zeros((len(shares), at.size))
    counted[:, place[words]] = shares
    best, steps = np.zeros_like(counted), _steps(mechanism, epsilon).tolist()
    if len(steps) < at.size:
        best += (counted * outside(mechanism, epsilon)[order]).max(axis=1, keepdims=True)
    for step in steps:
        outputs = at[:1] if mechanism.shape == "ring" else at  # on a ring all have the same law
        law = mechanism.cells((outputs + step) % at.size, outputs, epsilon)
        np.maximum(best, np.roll(counted, -step, axis=1) * law, out=best)
    return best[:, place], mechanism.cells(at, at, epsilon)[place[words]]
