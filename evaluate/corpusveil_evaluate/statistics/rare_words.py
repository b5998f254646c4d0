"""LOW: how many of the originals' rarest words survive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from corpusveil.errors import DataError, below_least
from corpusveil_evaluate.statistics.statistic import Evidence, Reading, register
from corpusveil_evaluate.terms import check_texts, count_words, terms_of, tokenizer_of

RAREST = 1000


def surviving_rare(originals: Sequence[str], privates: Sequence[str], rarest: int = RAREST) -> float:
    """Return LOW: of the ``rarest`` least frequent words of the originals, the share (0 to 1) that the privates have.

    The alphabet (code points) breaks ties. With fewer different words, all are used. The texts need not be pairs.
    """
    check_texts(originals, "originals")
    check_texts(privates, "privates")
    if rarest < 1:
        raise below_least("rarest", rarest, 1)
    vocabulary, _ = count_words(originals)
    if not len(vocabulary):
        raise DataError("The originals have no words; give texts with words.")
    assert vocabulary.counts is not None  # noqa: S101 - for the types
    order = np.argsort(vocabulary.counts, kind="stable")[:rarest]  # ids of equal counts are in alphabetical order
    there = np.zeros(len(vocabulary), np.bool_)
    there[terms_of(privates, tokenizer_of(vocabulary)).words().ids] = True
    return float(there[order].mean())


def _compute(evidence: Evidence) -> Iterator[Reading]:
    yield Reading(
        surviving_rare(evidence.originals, evidence.privates), note=f"of the {RAREST:,} rarest words of the original"
    )


LOW = register("rarest words that survive (LOW)", group="privacy", key="low", compute=_compute)
