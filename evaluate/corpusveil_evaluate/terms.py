"""The words of sets of texts as numbers, by corpusveil's own tokenizer: word class, lower case.

A mask in a release (``[word]``, ``[number]`` ...) is not a word: it is read as one symbol.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from corpusveil.collocations.word_counts import counted, most_frequent, summed
from corpusveil.errors import SettingError
from corpusveil.spaces import Space
from corpusveil.spaces.vocabulary import Vocabulary
from corpusveil.text.classes import WORD
from corpusveil.text.policy import MASKS
from corpusveil.text.tokens import Tokenizer, Tokens
from corpusveil.text.word_table import WordTable

BATCH = 1 << 14
"""Texts that are tokenized at once."""
_MASK = re.compile("|".join(re.escape(mask) for mask in MASKS))
_SYMBOL = " □ "


@dataclass(frozen=True, slots=True)
class Terms:
    """D texts as numbers.

    ``ids`` int32 [T] has all tokens, -1 for tokens that are not words; ``offsets`` int64 [D + 1] separates texts.
    """

    ids: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return self.offsets.size - 1

    def texts(self) -> npt.NDArray[np.int64]:
        """Return the text that each token is of; int64 [T]."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def words(self) -> Terms:
        """Return the same without the tokens that are not words."""
        return self.only(self.ids >= 0)

    def only(self, kept: npt.NDArray[np.bool_]) -> Terms:
        """Return the same with some tokens only; bool [T]."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept, dtype=np.int64)])
        return Terms(self.ids[kept], before[self.offsets])

    def pairs(self, words: int) -> npt.NDArray[np.int64]:
        """Return the different (text, word) pairs as ``text * words + word``, sorted; int64."""
        kept = self.words()
        keys = kept.texts() * words + kept.ids
        keys.sort()  # np.unique hashes integers, and takes a hundred times as long
        return keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if keys.size else keys


def check_texts(texts: Sequence[str], name: str = "texts") -> Sequence[str]:
    """Return the texts. Raises UserError for a single text, or if a value is not text."""
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise SettingError(
            f"{name}: give a list of texts with a string for each, and an empty string for a missing text."
        )
    return texts


def check_pairs(originals: Sequence[str], privates: Sequence[str]) -> None:
    """Raise UserError unless there is one private text for each original one, and one at all."""
    check_texts(originals, "originals")
    check_texts(privates, "privates")
    if len(originals) != len(privates) or not len(originals):
        raise SettingError(
            f"{len(originals):,} originals and {len(privates):,} private texts; give a private text for each original."
        )


def batches(texts: Sequence[str], tokenizer: Tokenizer) -> Iterator[Tokens]:
    """Tokenize texts, some thousands at a time, masks as symbols."""
    for start in range(0, len(texts), BATCH):
        yield tokenizer.tokenize([_MASK.sub(_SYMBOL, text) for text in texts[start : start + BATCH]])


def count_words(*sets: Sequence[str], min_count: int = 1) -> tuple[Vocabulary, int]:
    """Return the words that occur ``min_count`` times in all texts together, with counts, and the number of all tokens.

    Most frequent first, ties in the order of the alphabet (of code points).
    """
    plain = Tokenizer.of_words([])
    table = summed(counted(tokens) for texts in sets for tokens in batches(texts, plain))
    total = int(pc.sum(table["count"]).as_py() or 0)
    table = most_frequent(table.filter(pc.greater_equal(table["count"], min_count)))
    return Vocabulary.from_words(table["word"].to_pylist(), table["count"].to_numpy()), total


def tokenizer_of(vocabulary: Vocabulary) -> Tokenizer:
    """Return a tokenizer that gives the words of a vocabulary their ids."""
    return Tokenizer(WordTable.build(vocabulary.text, vocabulary.offsets))


def tokenizer_of_space(space: Space) -> Tokenizer:
    """Return a tokenizer that reads as a space does, and gives its words their ids."""
    table = WordTable.build(space.vocabulary.text, space.vocabulary.offsets.astype(np.int64))
    return Tokenizer(table, space.hyphens or "split", space.language)


def terms_of(texts: Sequence[str], tokenizer: Tokenizer) -> Terms:
    """Return texts as numbers; words that the tokenizer's vocabulary lacks are -1, like other tokens."""
    ids, lengths = [np.empty(0, np.int32)], [np.zeros(1, np.int64)]
    for tokens in batches(texts, tokenizer):
        ids.append(np.where(tokens.classes == WORD, tokens.ids, -1).astype(np.int32))
        lengths.append(np.diff(tokens.offsets))
    return Terms(np.concatenate(ids), np.cumsum(np.concatenate(lengths)))


def joint_terms(*sets: Sequence[str]) -> tuple[Vocabulary, list[Terms]]:
    """Return the words of all sets together, and each set as numbers of these words."""
    vocabulary, _ = count_words(*sets)
    tokenizer = tokenizer_of(vocabulary)
    return vocabulary, [terms_of(texts, tokenizer) for texts in sets]
