"""English share: the share of the words of a text that a space has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corpusveil.errors import DataError
from corpusveil.spaces import Space
from corpusveil_evaluate.statistics.statistic import Reading, register
from corpusveil_evaluate.terms import check_texts, count_words, terms_of, tokenizer_of


def english_share(texts: Sequence[str], space: Space) -> float:
    """Return the share (0 to 1) of word tokens that a space has. Raises UserError where texts have no words."""
    _, total = count_words(check_texts(texts))
    if not total:
        raise DataError("The texts have no words, so no share of them can be in a space; give texts with words.")
    return terms_of(texts, tokenizer_of(space.vocabulary)).words().ids.size / total


def _read(texts: Sequence[str], space: Space | None) -> Iterator[Reading]:
    if space is not None and count_words(texts)[1]:
        yield Reading(english_share(texts, space), f"space {space.digest[:12]}, {len(space):,} words")


register("words of the space, original", group="language",
    compute=lambda evidence: _read(evidence.originals, evidence.space))  # fmt: skip
register("words of the space, private", group="language", key="english",
    compute=lambda evidence: _read(evidence.privates, evidence.space))  # fmt: skip
