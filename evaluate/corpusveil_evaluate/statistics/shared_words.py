"""Which words an original and its private version have in common: Jaccard, LOW, and those that a space has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from corpusveil.errors import DataError, check_whole
from corpusveil.spaces import Space
from corpusveil_evaluate.statistics.statistic import Evidence, Reading, register
from corpusveil_evaluate.terms import check_pairs, check_texts, count_words, joint_terms, terms_of, tokenizer_of

RAREST = 1000


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


def _in_common(evidence: Evidence) -> Iterator[Reading]:
    yield Reading(float(np.mean(jaccard(evidence.originals, evidence.privates))))


register("shared words (Jaccard)", group="privacy", key="jaccard", compute=_in_common)


def surviving_rare(originals: Sequence[str], privates: Sequence[str], rarest: int = RAREST) -> float:
    """Return LOW: of the ``rarest`` least frequent words of the originals, the share (0 to 1) that the privates have.

    The alphabet (code points) breaks ties. With fewer different words, all are used. The texts need not be pairs.
    """
    check_texts(originals, "originals")
    check_texts(privates, "privates")
    check_whole("rarest", rarest)
    vocabulary, _ = count_words(originals)
    if not len(vocabulary):
        raise DataError("The originals have no words; give texts with words.")
    assert vocabulary.counts is not None  # noqa: S101 - for the types
    order = np.argsort(vocabulary.counts, kind="stable")[:rarest]  # ids of equal counts are in alphabetical order
    there = np.zeros(len(vocabulary), np.bool_)
    there[terms_of(privates, tokenizer_of(vocabulary)).words().ids] = True
    return float(there[order].mean())


def _surviving(evidence: Evidence) -> Iterator[Reading]:
    yield Reading(
        surviving_rare(evidence.originals, evidence.privates), note=f"of the {RAREST:,} rarest words of the original"
    )


LOW = register("rarest words that survive (LOW)", group="privacy", key="low", compute=_surviving)


def english_share(texts: Sequence[str], space: Space) -> float:
    """Return the share (0 to 1) of word tokens that a space has. Raises UserError where texts have no words."""
    _, total = count_words(check_texts(texts))
    if not total:
        raise DataError("The texts have no words, so no share of them can be in a space; give texts with words.")
    return terms_of(texts, tokenizer_of(space.vocabulary)).words().ids.size / total


def _english(texts: Sequence[str], space: Space | None) -> Iterator[Reading]:
    if space is not None and count_words(texts)[1]:
        yield Reading(english_share(texts, space), f"space {space.digest[:12]}, {len(space):,} words")


register("words of the space, original", group="language",
    compute=lambda evidence: _english(evidence.originals, evidence.space))  # fmt: skip
register("words of the space, private", group="language", key="english",
    compute=lambda evidence: _english(evidence.privates, evidence.space))  # fmt: skip
