"""Obfuscated queries: several private variants of each, and how far they are from it.

A variant is a release: r variants of one query are r releases of the same words, whose guarantee together is r epsilon
a word. Each has its own noise under one key, since each is a separate document.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from corpusveil.errors import BadValueError
from corpusveil.evaluation.attacks.attribute_inference import Readable
from corpusveil.evaluation.statistics.encoders import Encoder
from corpusveil.evaluation.statistics.shared_words import jaccard
from corpusveil.evaluation.statistics.similarity import cosine
from corpusveil.evaluation.terms import check_texts
from corpusveil.transforms.release import Release
from corpusveil.transforms.table import privatize

VARIANTS = 20
"""Of each query, by our choice: the study does not state it."""


def prepared(query: str) -> str:
    """Return a query as in the study: lower case, no punctuation, no term with a digit, one blank between terms.

    Punctuation marks (Unicode category P, and ASCII's such as ``|``) are removed, so "e-mail" is "email".
    """
    plain = "".join(mark for mark in query.lower() if not _is_punctuation(mark))
    return " ".join(term for term in plain.split() if not any(mark.isdigit() for mark in term))


def _is_punctuation(mark: str) -> bool:
    return mark in string.punctuation or unicodedata.category(mark).startswith("P")


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


def obfuscate(queries: Sequence[str], release: Release, variants: int = VARIANTS, source: str = "queries") -> Variants:
    """Return private variants of queries, which must be ``prepared`` first to follow the study.

    Every variant is a document with an identity of its own: ``source``, its number and that of its query. Raises
    UserError without queries or variants, and for a release that gives equal texts equal noise or leaves copies out.
    """
    check_texts(queries, "queries")
    if isinstance(variants, bool) or variants < 1 or not len(queries):
        raise BadValueError(f"{len(queries):,} queries, {variants} variants of each: give at least one of both.")
    if release.duplicates != "independent":
        raise BadValueError(
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
