"""English share: how many of a text's words a list of words has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corpusveil.errors import DataError
from corpusveil_evaluate.statistics.statistic import Reading, register
from corpusveil_evaluate.terms import WordList, check_texts, count_words, terms_of


def english_share(texts: Sequence[str], words: WordList) -> float:
    """Return the share (0 to 1) of word tokens that a list of words has. Raises UserError where texts have no words."""
    _, total = count_words(check_texts(texts))
    if not total:
        raise DataError("The texts have no words, so no share of them can be in a list; give texts with words.")
    return terms_of(texts, words.tokenizer).words().ids.size / total


def _read(texts: Sequence[str], words: WordList | None) -> Iterator[Reading]:
    if words is not None and count_words(texts)[1]:
        yield Reading(english_share(texts, words), words.label)


register("words of the list, original", group="language",
    compute=lambda evidence: _read(evidence.originals, evidence.words))  # fmt: skip
register("words of the list, private", group="language", key="english",
    compute=lambda evidence: _read(evidence.privates, evidence.words))  # fmt: skip
