"""The texts that replace spans: a mask, a function of the kind alone, or a word that is drawn at its position."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from corpusveil.kernel.prepared import Prepared
from corpusveil.sampling.draws import RESAMPLE, Draws
from corpusveil.text.output_words import concatenate
from corpusveil.text.spans import Covered, SpanPolicy
from corpusveil.text.text_writer import SpanTexts


def span_texts(
    policy: SpanPolicy, covered: Covered, which: npt.NDArray[np.int64], draws: Draws, prepared: Prepared
) -> SpanTexts:
    """Return the texts that replace the spans ``which`` int64 [N], with these draws."""
    kinds, wording = covered.kinds[which], prepared.wording
    masks = [f"[{name}]".encode() for name in covered.names]
    words = [masks[kind] for kind in kinds.tolist()]
    is_drawn = np.array([policy.treatment(name) == "resample" for name in covered.names], np.bool_)
    if (drawn := np.flatnonzero(is_drawn[kinds])).size:
        cells = prepared.public.cells(draws.for_tokens(drawn).uint64(RESAMPLE))
        for n, cell in zip(drawn.tolist(), cells.tolist(), strict=True):
            words[n] = wording.words[wording.offsets[cell] : wording.offsets[cell + 1]].tobytes()
    return SpanTexts(*concatenate(words))
