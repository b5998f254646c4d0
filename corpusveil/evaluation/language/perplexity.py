"""Perplexity of texts, before and after: by a Kneser-Ney model, and by causal models where some are given."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence

from corpusveil.evaluation.language.causal_perplexity import causal_perplexity
from corpusveil.evaluation.matching import spread
from corpusveil.evaluation.statistics.registry import register
from corpusveil.evaluation.statistics.statistic import Evidence, Reading
from corpusveil.evaluation.terms import count_words

CAUSAL_TEXTS = 200
"""Documents that a causal language model reads: a processor takes about a second for two."""


def _read(texts: Sequence[str], evidence: Evidence) -> Iterator[Reading]:
    held_out = texts[evidence.held_out]
    if evidence.perplexity is not None and count_words(held_out)[1]:
        yield Reading(evidence.perplexity(held_out), "Kneser-Ney, 3 words")
    for folder in evidence.causal:
        some = [texts[row] for row in spread(len(texts), CAUSAL_TEXTS) if texts[row].strip()]
        measured = causal_perplexity(some, folder) if some else None
        if measured is not None and math.isfinite(measured.mean):
            counted = measured.texts - measured.skipped
            note = f"mean of {counted:,} texts; over all their tokens together {measured.pooled:,.4g}"
            yield Reading(measured.mean, os.path.basename(os.path.normpath(folder)), note)


register("perplexity, original", group="language", unit="number", place=90,
    compute=lambda evidence: _read(evidence.originals, evidence))  # fmt: skip
register("perplexity, private", group="language", key="perplexity", unit="number", place=110,
    compute=lambda evidence: _read(evidence.privates, evidence))  # fmt: skip
