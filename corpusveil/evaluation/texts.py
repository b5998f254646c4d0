"""What the texts of a release say beside the originals, without anything being tried: words, meaning, perplexity."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence

import numpy as np

from corpusveil.errors import UserError
from corpusveil.evaluation.causal import causal_perplexity
from corpusveil.evaluation.findings import Measure
from corpusveil.evaluation.language import KneserNey
from corpusveil.evaluation.matching import Matched
from corpusveil.evaluation.question import Question
from corpusveil.evaluation.similarity import Encoder, cosine
from corpusveil.evaluation.statistics import ChangedShare, changed_share, english_share, jaccard, surviving_rare
from corpusveil.evaluation.terms import count_words
from corpusveil.spaces import Space

CROSSED = 1000
"""Documents that the private text of another one is held against."""
CAUSAL_TEXTS = 200
"""Documents that a causal language model reads: a processor takes about a second for two."""


def of_texts(
    matched: Matched, question: Question, language: KneserNey, held_out: slice, promised: float | None = None
) -> Iterator[Measure]:
    """Yield what the texts alone say; perplexity is measured on the documents that are ``held_out``.

    ``promised`` is the share of the space's words that should come back unchanged, where that is known.
    """
    before, after = matched.originals, matched.privates
    told = changed(before, after)
    if told is not None:
        note = f"; of {told.left_out:,} documents the words can't be paired, so they are left out"
        note = f"of all {told.words:,} words, known and unknown{note if told.left_out else ''}"
        yield Measure("privacy", "words unchanged", 1 - told.share, note=note, of_input=True)
        if question.space is not None and told.words:
            yield from _known(before, after, question.space, told.words, promised)
        yield Measure("privacy", "words changed (PP)", told.share, of_input=True)
    rare = surviving_rare(before, after)
    yield Measure(
        "privacy", "rarest words that survive (LOW)", rare, note="of the 1,000 rarest of the original", of_input=True
    )
    yield Measure("privacy", "shared words (Jaccard)", float(np.nanmean(jaccard(before, after))), of_input=True)
    encoder = question.encoder_or_vectors()
    if encoder is not None:
        yield _similarity(before, after, encoder)
    words = question.word_list()
    for name, texts in (("original", before), ("private", after)):
        if words is not None and count_words(texts)[1]:
            share = english_share(texts, words)
            yield Measure("language", f"words of the list, {name}", share, model=words.label, of_input=True)
        if not count_words(texts[held_out])[1]:
            continue
        value = language.perplexity(texts[held_out]).value
        yield Measure("language", f"perplexity, {name}", value, "number", model="Kneser-Ney, 3 words", of_input=True)
    for folder in question.causal:
        yield from _causal(before, after, folder)


def _known(
    before: Sequence[str], after: Sequence[str], space: Space, words: int, promised: float | None
) -> Iterator[Measure]:
    """Yield what came back of the words that the space has, of which a mechanism promises, and how many it lacks."""
    told = changed_share(before, after, space.vocabulary)
    if told.words:
        note = "of the words that the space has" + ("" if promised is None else f"; {promised:.1%} were to be expected")
        yield Measure("privacy", "known words unchanged", 1 - told.share, note=note, of_input=True)
    note = "words that the space lacks; no mechanism replaces them"
    yield Measure("privacy", "unknown words", 1 - told.words / words, note=note, of_input=True)


def changed(before: Sequence[str], after: Sequence[str]) -> ChangedShare | None:
    """Return which words changed; None where no words can be laid side by side."""
    try:
        told = changed_share(before, after)
    except UserError:  # all are left out
        return None
    return told if told.words else None


def spread(rows: int, most: int) -> list[int]:
    """Return at most so many row numbers, evenly spread: a corpus can be sorted by its labels."""
    return [at * rows // min(rows, most) for at in range(min(rows, most))]


def _similarity(before: Sequence[str], after: Sequence[str], encoder: Encoder) -> Measure:
    close = float(np.mean(cosine(before, after, encoder)))
    some = [at for at in spread(len(before), CROSSED) if before[at] != before[at - 1]]
    crossed = cosine([before[at] for at in some], [after[at - 1] for at in some], encoder) if some else np.ones(1)
    return Measure(
        "utility", "similarity of meaning", close, model=encoder.label, floor=float(np.mean(crossed)),
        note="floor: with the private text of another document", of_input=True,
    )  # fmt: skip


def _causal(before: Sequence[str], after: Sequence[str], folder: str) -> Iterator[Measure]:
    rows = spread(len(before), CAUSAL_TEXTS)
    model = os.path.basename(os.path.normpath(folder))
    for name, texts in (("original", before), ("private", after)):
        some = [texts[row] for row in rows if texts[row].strip()]
        if not some:
            continue
        told = causal_perplexity(some, folder)
        if math.isfinite(told.mean):
            note = f"mean of {told.texts - told.skipped:,} texts; of all their tokens together {told.pooled:,.4g}"
            yield Measure("language", f"perplexity, {name}", told.mean, "number", model=model, note=note, of_input=True)
