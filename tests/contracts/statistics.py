"""Chi-squared tests that can reject, and the level at which the suites use them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

from corpusveil.audits.guarantee_audit import LEAST, fit_p_value

__all__ = ["LEVEL", "fit_p_value", "independence_p_value"]

LEVEL = 1e-12
"""A sound sampler is rejected once in 10^12 keys; the tests' keys are fixed, so a pass is a pass for good."""


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
