"""Lists of words that texts are looked up in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from corpusveil.evaluation.terms import tokenizer_of
from corpusveil.spaces import Space, Vocabulary
from corpusveil.spaces.vocabulary import read_words
from corpusveil.text.tokens import Tokenizer


@dataclass(frozen=True, slots=True)
class WordList:
    """A list of words, and the ``label`` that a figure by it carries: the share means nothing without it."""

    label: str
    tokenizer: Tokenizer

    @classmethod
    def of_words(cls, words: Sequence[str], label: str) -> Self:
        """Take given words; a word's case does not matter."""
        return cls(f"{label}, {len(words):,} words", tokenizer_of(Vocabulary.from_words(list(dict.fromkeys(words)))))

    @classmethod
    def of_file(cls, url: str) -> Self:
        """Read a list with one word a line; its name is the label, without its folder."""
        return cls.of_words(read_words(url), f"list {url.rsplit('/', 1)[-1]}")

    @classmethod
    def of_space(cls, space: Space) -> Self:
        """Take the words of a space. What a mechanism over the same space writes is in it by construction."""
        return cls.of_words(space.vocabulary.words, f"space {space.digest[:12]}")
