"""The combined evidence of a query's variants: releases of the same words under independent noise.

The law of several is the product of their laws, so of words u_1 ... u_r at one place the original is w in proportion to

    p(w | words before it) P[w, u_1] ... P[w, u_r]

A reader only needs to know that the variants belong to one query, which the engine sees. Laws are known for the
likeliest originals of each released word; any other word is assumed to have half of the smallest of these.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.errors import ConflictError
from corpusveil.text.tokens import string_buffers
from corpusveil.transforms.channel import Candidates
from corpusveil.transforms.denoise import Denoiser, reader_of
from corpusveil_studies.retrieval.obfuscated_queries import Variants

KNOWN = 64
"""The number of originals of each released word whose law is used."""
_TINY = 1e-300


@dataclass(slots=True)
class Combined:
    """The likeliest originals of several released words: ``words`` int32 [R, k], -1 behind the last, ``emissions``."""

    words: npt.NDArray[np.int32]
    emissions: npt.NDArray[np.float64]


def together(variants: Variants, denoiser: Denoiser) -> Variants:
    """Return one text for each query, which an engine makes of all its variants before it searches.

    Raises UserError if variants differ in their tokens, which a policy that drops tokens can cause.
    """
    return replace(variants, texts=tuple((text,) for text in read_together(denoiser, variants.texts)))


def read_together(denoiser: Denoiser, variants: Sequence[Sequence[str]]) -> list[str]:
    """Return the likeliest original of each of Q texts, from r variants of each, under a budget per token.

    Tokens that no variant replaced are as the first has them.
    """
    reader = reader_of(denoiser)
    reads = [denoiser.read(reader, *string_buffers(pa.array(texts))) for texts in zip(*variants, strict=True)]
    tokens = reads[0][0]
    if any(not np.array_equal(other.offsets, tokens.offsets) for other, _, _ in reads):
        raise ConflictError(
            "The variants of a query differ in their number of tokens, so their words cannot be paired."
        )
    ids = np.array([np.where(replaced, other.ids, -1) for other, replaced, _ in reads])
    replaced = np.asarray((ids >= 0).any(axis=0))
    out = np.maximum(ids.max(axis=0), 0).astype(np.int32)
    law = Candidates(denoiser.mechanism, reader.shares, min(KNOWN, len(denoiser.mechanism.space)))
    rows = np.full(len(tokens), -1, np.int64)
    rows[replaced] = np.arange(replaced.sum())
    kept = reads[0][2] & ~replaced
    with reader.lock:
        combined = combine(law, denoiser.budget.epsilon, ids[:, replaced].T, denoiser.search.candidates)
        denoiser.search_words(reader, tokens, replaced, kept, rows, combined, 0.0, out)
    data, word = tokens.data, denoiser.mechanism.space.word
    said = [
        word(int(out[t])) if replaced[t] else data[tokens.starts[t] : tokens.ends[t]].tobytes().decode()
        for t in range(len(tokens))
    ]
    return [" ".join(said[first:last]) for first, last in itertools.pairwise(tokens.offsets.tolist())]


def combine(law: Candidates, epsilon: float, released: npt.NDArray[np.int32], most: int) -> Combined:
    """Return the likeliest originals of places, by the released words of each, int32 [R, r], -1 where there is none."""
    words = np.full((len(released), min(most, law.count)), -1, np.int32)
    emissions = np.zeros(words.shape)
    for place, ids in enumerate(released):
        rows = law.rows(epsilon, ids[ids >= 0])
        listed, chances = law.words[rows], law.emissions[rows]
        candidates = np.unique(listed[listed >= 0])
        shares = law.shares[candidates]
        logs = np.zeros(candidates.size)
        for known, chance in zip(listed, chances, strict=True):
            there = known >= 0
            joint = chance[there] * law.shares[known[there]]
            each = np.minimum(chance[there].min(), joint.min() / shares) / 2
            each[np.searchsorted(candidates, known[there])] = chance[there]
            logs += np.log(np.maximum(each, _TINY))
        best = np.argsort(-(logs + np.log(shares)), kind="stable")[: words.shape[1]]
        words[place, : best.size] = candidates[best]
        emissions[place, : best.size] = np.maximum(np.exp(logs[best] - logs[best].max()), _TINY)
    return Combined(words, emissions)
