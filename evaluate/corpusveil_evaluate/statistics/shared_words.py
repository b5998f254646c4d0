"""Jaccard: which words an original and its private version have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from corpusveil_evaluate.statistics.statistic import Evidence, Reading, register
from corpusveil_evaluate.terms import check_pairs, joint_terms


def jaccard(originals: Sequence[str], privates: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return for each pair of texts the Jaccard index of their sets of words, 0 to 1; float64 [D]. 1 if both are empty.

    Raises UserError unless each original has its private text.
    """
    check_pairs(originals, privates)
    vocabulary, (before, after) = joint_terms(originals, privates)
    size = max(1, len(vocabulary))
    first, second = before.pairs(size), after.pairs(size)

    def per_text(pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.bincount(pairs // size, minlength=len(originals))

    both = per_text(np.intersect1d(first, second, assume_unique=True))
    union = per_text(first) + per_text(second) - both
    return np.where(union == 0, 1.0, both / np.maximum(union, 1))


def _compute(evidence: Evidence) -> Iterator[Reading]:
    yield Reading(float(np.mean(jaccard(evidence.originals, evidence.privates))))


register("shared words (Jaccard)", group="privacy", key="jaccard", compute=_compute)
