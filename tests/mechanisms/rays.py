"""Oracles of mechanisms that add noise to vectors: exact laws along rays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from corpusveil.mechanisms import Mechanism
from tests.contracts.mechanism import draws_of
from tests.mechanisms.spaces import Floats


def draw(mechanism: Mechanism, word: int, epsilon: float, count: int, name: str = "a") -> npt.NDArray[np.int32]:
    """Return ``count`` replacements of a word."""
    return mechanism.privatize(np.full(count, word, np.int32), epsilon, draws_of(count, document=f"{name}{word}"))


# Oracles: the cell of u cuts a ray from w in one interval [low, high] of lengths (mechanisms.md §7)


def cuts(points: Floats, word: int, rays: Floats) -> tuple[Floats, Floats]:
    """Return where the cell of each word begins and ends on each ray from ``word``; float64 [R, V] each."""
    low = np.zeros((len(rays), len(points)))
    high = np.full((len(rays), len(points)), np.inf)
    away = ((points - points[word]) ** 2).sum(axis=1)
    for u in range(len(points)):
        for v in range(len(points)):
            if u == v:
                continue
            slope, gap = 2 * rays @ (points[v] - points[u]), away[v] - away[u]
            with np.errstate(divide="ignore", invalid="ignore"):
                at = gap / slope
            high[:, u] = np.where(slope > 0, np.minimum(high[:, u], at), high[:, u])
            low[:, u] = np.where(slope < 0, np.maximum(low[:, u], at), low[:, u])
            never = (slope == 0) & (gap < 0)
            high[never, u] = -1.0
    return low, np.maximum(high, low)


def masses(points: Floats, word: int, epsilon: float, rays: Floats) -> Floats:
    """Return each word's probability on each ray; float64 [R, V]. Their mean over directions is the law."""
    low, high = cuts(points, word, rays)
    k = points.shape[1]
    return special.gammainc(k, epsilon * high) - special.gammainc(k, epsilon * low)


def angles(count: int) -> Floats:
    theta = (np.arange(count) + 0.5) * 2 * np.pi / count
    return np.column_stack([np.cos(theta), np.sin(theta)])
