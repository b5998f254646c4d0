"""Obfuscated queries: several private variants of each, and how far they are from it.

A variant is a release: r variants of one query are r releases of the same words, whose guarantee together is r epsilon
a word. Each has its own noise under one key, since each is a separate document.

The law of several is the product of their laws, so of words u_1 ... u_r at one place the original is w in proportion to

    p(w | words before it) P[w, u_1] ... P[w, u_r]

A reader only needs to know that the variants belong to one query, which the engine sees. Laws are known for the
likeliest originals of each released word; any other word is assumed to have half of the smallest of these.
"""

from __future__ import annotations

import itertools
import string
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.errors import SettingError
from corpusveil.text.tokens import string_buffers
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.table import privatize
from corpusveil_evaluate.attacks.attribute_inference import Readable
from corpusveil_evaluate.readers.ngrams.channel import Candidates
from corpusveil_evaluate.readers.ngrams.denoise import Denoiser, reader_of
from corpusveil_evaluate.statistics.encoders import Encoder
from corpusveil_evaluate.statistics.shared_words import jaccard
from corpusveil_evaluate.statistics.similarity import cosine
from corpusveil_evaluate.terms import check_texts


def prepared(query: str) -> str:
    """Return a query as in the study: lower case, no punctuation, no term with a digit, one blank between terms.

    Punctuation marks (Unicode category P, and ASCII's such as ``|``) are removed, so "e-mail" is "email".
    """
    plain = "".join(mark for mark in query.lower() if not _is_punctuation(mark))
    return " ".join(term for term in plain.split() if not any(mark.isdigit() for mark in term))


def _is_punctuation(mark: str) -> bool:
    return mark in string.punctuation or unicodedata.category(mark).startswith("P")


KNOWN = 64
"""The number of originals of each released word whose law is used."""
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Variants:
    """``texts`` has the variants of each of Q queries, all of them equally many; ``epsilon`` is that of one variant."""

    queries: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    epsilon: float

    @property
    def count(self) -> int:
        """The number r of variants of a query."""
        return len(self.texts[0])

    @property
    def total(self) -> float:
        """The epsilon of all variants of a query together, r epsilon, by sequential composition."""
        return self.count * self.epsilon

    def flat(self) -> tuple[list[str], list[str]]:
        """Return queries and variants side by side, Q r of each."""
        pairs = [
            (query, variant) for query, variants in zip(self.queries, self.texts, strict=True) for variant in variants
        ]
        return [query for query, _ in pairs], [variant for _, variant in pairs]


def obfuscate(queries: Sequence[str], release: Release, variants: int, source: str = "queries") -> Variants:
    """Return private variants of queries, which must be ``prepared`` first to follow the study.

    Every variant is a document with an identity of its own: ``source``, its number and that of its query. Raises
    UserError for a release that gives equal texts equal noise or leaves copies out.
    """
    check_texts(queries, "queries")
    if release.duplicates != "independent":
        raise SettingError(
            f"duplicates = {release.duplicates!r}: each variant of a query needs its own noise; choose independent."
        )
    names = [(f"{source} variant {number}", row) for row in range(len(queries)) for number in range(variants)]
    texts = privatize([query for query in queries for _ in range(variants)], release, names)
    rows = tuple(tuple(texts[start : start + variants]) for start in range(0, len(texts), variants))
    return Variants(tuple(queries), rows, release.budget.epsilon)


def denoised(variants: Variants, readable: Readable) -> Variants:
    """Return the variants after an engine's denoising, before it searches with them.

    ``readable`` is that of a ``Denoiser`` of their release. It is a function of the data that the engine received, and
    of public data, so nothing more is spent; ``query_similarity`` of the result is what the engine learns about the
    queries. Each variant is read separately; ``together`` combines those of a query.
    """
    texts = readable([variant for some in variants.texts for variant in some])
    rows = tuple(tuple(texts[start : start + variants.count]) for start in range(0, len(texts), variants.count))
    return replace(variants, texts=rows)


def query_similarity(variants: Variants, encoder: Encoder) -> dict[str, float]:
    """Compare every variant with its query: means of ``jaccard`` of their words, and of ``cosine`` by an encoder.

    Each different pair is encoded once.
    """
    pairs = list(zip(*variants.flat(), strict=True))
    once = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
    often = np.bincount([once[pair] for pair in pairs])
    originals, privates = [query for query, _ in once], [one for _, one in once]
    shared, near = jaccard(originals, privates), cosine(originals, privates, encoder)
    return {"jaccard": float(shared @ often) / len(pairs), "cosine": float(near @ often) / len(pairs)}


@dataclass(slots=True)
class Combined:
    """The likeliest originals of several released words: ``words`` int32 [R, k], -1 after the last, ``emissions``."""

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
        raise SettingError("The variants of a query differ in their number of tokens, so their words cannot be paired.")
    ids = np.array([np.where(replaced, other.ids, -1) for other, replaced, _ in reads])
    replaced = np.asarray((ids >= 0).any(axis=0))
    out = np.maximum(ids.max(axis=0), 0).astype(np.int32)
    law = Candidates(denoiser.mechanism, reader.shares, min(KNOWN, len(denoiser.mechanism.space)))
    rows = np.full(len(tokens), -1, np.int64)
    rows[replaced] = np.arange(replaced.sum())
    kept = reads[0][2] & ~replaced
    with reader.lock:
        combined = combine(law, denoiser.budget.epsilon, ids[:, replaced].T, denoiser.search.breadth)
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
        rows = law.candidate_rows(epsilon, ids[ids >= 0])
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
