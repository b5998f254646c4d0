"""CS: the cosine similarity of an original text and its private one, by an encoder (``encoders.py``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from corpusveil_evaluate.matching import spread
from corpusveil_evaluate.statistics.encoders import Encoder
from corpusveil_evaluate.statistics.statistic import Evidence, Reading, register
from corpusveil_evaluate.terms import check_pairs

BATCH = 4096
"""Texts that are encoded at once."""
CROSSED = 1000
"""The number of documents compared with the private text of another document."""


def cosine(originals: Sequence[str], privates: Sequence[str], encoder: Encoder) -> npt.NDArray[np.float64]:
    """Return the cosine of each original with its private text, -1 to 1; float64 [D], never NaN.

    Equal texts have 1, whatever their content. Other pairs have 0 if either text has nothing to encode (no word of the
    space, no text). Raises UserError unless each original has its private text.
    """
    check_pairs(originals, privates)
    cosines = np.empty(len(originals))
    for start in range(0, len(originals), BATCH):
        some = slice(start, start + BATCH)
        first = encoder.encode(originals[some]).astype(np.float64)
        second = encoder.encode(privates[some]).astype(np.float64)
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        products = np.einsum("ij,ij->i", first, second)
        cosines[some] = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        cosines[some][
            [original == private for original, private in zip(originals[some], privates[some], strict=True)]
        ] = 1.0
    return np.clip(cosines, -1.0, 1.0, out=cosines)


def _compute(evidence: Evidence) -> Iterator[Reading]:
    if evidence.encoder is not None:
        near = float(np.mean(cosine(evidence.originals, evidence.privates, evidence.encoder)))
        yield Reading(near, evidence.encoder.label, "floor: with the private text of another document")


def _floor(evidence: Evidence) -> float:
    """Return the mean similarity of originals to private texts of other documents."""
    before, after, encoder = evidence.originals, evidence.privates, evidence.encoder
    assert encoder is not None  # noqa: S101 - asked only where there is a reading
    rows = [row for row in spread(len(before), CROSSED) if before[row] != before[row - 1]]
    if not rows:
        return 1.0
    return float(np.mean(cosine([before[row] for row in rows], [after[row - 1] for row in rows], encoder)))


CS = register("similarity of meaning", group="utility", key="cs", tile=True,
    floor="the private text of another document", floor_of=_floor, compute=_compute)  # fmt: skip
