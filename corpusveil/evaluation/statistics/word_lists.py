"""Lists in which the words of texts are looked up."""

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
    """A list of words, and the ``label`` of its figures: a share has no meaning without it."""

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
        """Use the words of a space, which by construction contain the outputs of a mechanism over this space."""
        return cls.of_words(space.vocabulary.words, f"space {space.digest[:12]}")
