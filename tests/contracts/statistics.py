"""Chi-squared tests that can reject, and the level at which the suites use them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

LEVEL = 1e-12
"""A sound sampler is rejected once in 10^12 keys; the tests' keys are fixed, so a pass is a pass for good."""
LEAST = 5.0
"""The least expected count of a value that is compared on its own."""


def independence_p_value(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer], cells: int) -> float:
    """Return the p-value of "these two are independent"; each in 0 .. cells - 1, rare values counted as one."""
    table = np.zeros((cells, cells))
    np.add.at(table, (first, second), 1)
    keep = table.sum(axis=0) + table.sum(axis=1) >= 2 * np.sqrt(LEAST * first.size)
    if keep.sum() < 2:
        keep[np.argsort(-(table.sum(axis=0) + table.sum(axis=1)))[:1]] = True
    merged = np.vstack([table[keep], table[~keep].sum(axis=0)])
    merged = np.hstack([merged[:, keep], merged[:, ~keep].sum(axis=1, keepdims=True)])
    merged = merged[merged.sum(axis=1) > 0][:, merged.sum(axis=0) > 0]
    if min(merged.shape) < 2:
        return 1.0
    return float(stats.chi2_contingency(merged, correction=False).pvalue)


def fit_p_value(samples: npt.NDArray[np.integer], law: npt.NDArray[np.float64]) -> float:
    """Return the p-value of samples, ids below V, under a law, float64 [V]; rare outputs are counted as one."""
    counts = np.bincount(samples, minlength=law.size).astype(np.float64)
    expected = law / law.sum() * samples.size
    often = expected >= LEAST
    rare, seen = float(expected[~often].sum()), float(counts[~often].sum())
    if (counts[law == 0] > 0).any():
        return 0.0
    if rare < LEAST:
        tail = float(stats.poisson.sf(seen - 1, max(rare, 1e-300)))
        if often.sum() < 2:
            return tail
        scaled = expected[often] * (counts[often].sum() / expected[often].sum())
        return min(1.0, 2 * min(tail, float(stats.chisquare(counts[often], scaled).pvalue)))
    whole = np.append(counts[often], seen), np.append(expected[often], rare)
    return float(stats.chisquare(*whole).pvalue) if often.any() else 1.0
