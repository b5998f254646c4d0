"""What comes back: content words of an original that stand anywhere in its private text, and negations that do not.

Both pair texts, not tokens, so they compare releases by words with releases by passages.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Container, Iterator, Sequence

import numpy as np

from corpusveil.text.languages import function_words
from corpusveil_evaluate.readers.content_words import content_weights
from corpusveil_evaluate.statistics.statistic import Evidence, Reading, register
from corpusveil_evaluate.terms import check_pairs, count_words, joint_terms

NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|nor|neither|nowhere|without|cannot|\w+n['’]t)\b", re.IGNORECASE
)


def words_back(originals: Sequence[str], privates: Sequence[str], among: Container[str]) -> tuple[float, int]:
    """Return the share (0 to 1) of word tokens ``among`` some whose private text has the word, and how many these are.

    Wherever the word stands there, and however often. Raises UserError unless each original has its private text.
    """
    check_pairs(originals, privates)
    vocabulary, (before, after) = joint_terms(originals, privates)
    wanted, size = np.array([word in among for word in vocabulary.words], np.bool_), max(1, len(vocabulary))
    words = before.words()
    words = words.only(wanted[words.ids])
    back = np.isin(words.texts() * size + words.ids, after.pairs(size))
    return (float(back.mean()) if back.size else 0.0), int(back.size)


def flipped(originals: Sequence[str], privates: Sequence[str]) -> float:
    """Return the share of texts where either the original or its private text has an English negation, not both."""
    check_pairs(originals, privates)
    pairs = zip(originals, privates, strict=True)
    return sum((NEGATION.search(a) is None) != (NEGATION.search(b) is None) for a, b in pairs) / len(originals)


def _content(evidence: Evidence) -> Container[str]:
    space = evidence.space
    if space is None:
        return frozenset(count_words(evidence.originals)[0].words) - function_words(None)
    return frozenset(itertools.compress(space.vocabulary.words, content_weights(space)))


def _back(evidence: Evidence) -> Iterator[Reading]:
    share, words = words_back(evidence.originals, evidence.privates, evidence.once(_content))
    if words:
        by_chance = "" if evidence.random is None else "; floor: in public pieces that are drawn at random"
        yield Reading(share, note=f"of {words:,} content words, anywhere in the private text{by_chance}")


def _floor(evidence: Evidence) -> float | None:
    if evidence.random is None:
        return None
    return words_back(evidence.originals, evidence.random, evidence.once(_content))[0]


def _flips(evidence: Evidence) -> Iterator[Reading]:
    if evidence.space is None or evidence.space.read_in(None) in (None, "en"):
        yield Reading(flipped(evidence.originals, evidence.privates), note="as by not, never or nothing, in English")


def _crossed(evidence: Evidence) -> float:
    after = [*evidence.privates[-1:], *evidence.privates[:-1]]
    return flipped(evidence.originals, after)


BACK = register("content words that come back", group="privacy", key="back", tile=True, floor_of=_floor, compute=_back)
register("negation gained or lost", group="utility", floor="the private text of another document",
    floor_of=_crossed, compute=_flips)  # fmt: skip
