"""Words of public text that may tell of somebody: pieces are plenty, so a store refuses a sentence on suspicion.

Suspect is

* a capitalized word within a sentence that the space does not know, or that public lists know as a name, but for days,
  months and some nations and places (``NEUTRAL``); at the beginning of a sentence, one that is nothing but a name, or
  a rare one;
* any unknown or listed word of a sentence that begins with a small letter: who writes so capitalizes no name;
* an unknown word with a letter that no word of the space has (*another script*);
* an unknown word that has an excluded word in it, in whatever letters: without accents, in letters that look alike,
  glued to others, or with an ending (``'ll``).
"""

from __future__ import annotations

import gzip
import re
import unicodedata
from collections.abc import Iterable
from importlib import resources

import numpy as np

from corpusveil.arrays import Bool, Int8, Int64
from corpusveil.spaces import Space
from corpusveil.text import classes
from corpusveil.text.tokens import Tokens

KINDS = ("name", "another script", "excluded word")
_NAME, _SCRIPT, _EXCLUDED = range(1, len(KINDS) + 1)
_NEUTRAL = """
monday tuesday wednesday thursday friday saturday sunday january february march july august september october november
december christmas easter english french german greek indian irish welsh scottish american british europe asia africa
america england germany france spain italy india china brazil mexico canada london vienna rome berlin west east south
north council nations states parliament
"""
NEUTRAL = frozenset(_NEUTRAL.split())
"""Listed names that are nearly always days, months, nations and places when they are capitalized within a sentence."""
MONTHS = frozenset({"april", "may", "june"})
"""Neutral after one of ``BEFORE_MONTHS`` alone."""
_BEFORE_MONTHS = "in of since until by from to early late mid last next this every each during and or"
BEFORE_MONTHS = frozenset(_BEFORE_MONTHS.split())
_ENDING = re.compile(r"['’](?:s|d|m|t|ll|ve|re)?$", re.IGNORECASE)
_ALIKE = str.maketrans("аеорсухѕіјԁһԛԝвкмнтαεορυικντɑɡıłøđ", "aeopcyxsijdhqwbkmhtaeopuikvtagilod")
"""Letters of other scripts, and Latin ones without a decomposition, that look like a Latin letter."""
RARE = 30
"""A listed name with fewer occurrences in a million public words is suspect as the first word, too."""
_GLUED = 6
"""An excluded word of at least this many letters is found within an unknown word."""


def bare(word: str) -> str:
    """Return a word in small letters without accents, in Latin letters where others look like them."""
    apart = unicodedata.normalize("NFKD", word.casefold())
    return "".join(letter for letter in apart if not unicodedata.combining(letter)).translate(_ALIKE)


def listed_names() -> tuple[frozenset[str], frozenset[str]]:
    """Return words of public lists that are names and nothing else (*sarah*), and those that are also others (*mark*).

    ``scripts/name_lists.py`` wrote them.
    """
    raw = gzip.decompress(resources.files(__package__).joinpath("names.txt.gz").read_bytes()).decode()
    only, also = (frozenset(line.split(" ")) for line in raw.split("\n"))
    return only, also


class Suspicions:
    """What finds suspect words, by the words of a space and those that are excluded."""

    __slots__ = ("_bare", "_glued", "_ids", "_letters", "_listed", "_size")

    def __init__(self, space: Space, excluded: Iterable[str]) -> None:
        words = space.vocabulary.words
        only, also = listed_names()
        counts = [RARE] * len(words) if space.counts is None else (space.counts * 1e6).tolist()
        rare = RARE * (1 if space.counts is None else int(space.counts.sum()))
        listed = [word in only or (word in also and word not in NEUTRAL) for word in words]
        own = [listed[at] + int(word in only or (listed[at] and counts[at] < rare)) for at, word in enumerate(words)]
        self._size, self._listed = len(words), np.array(own, np.int8)
        self._ids = {word: number for number, word in enumerate(words)}
        self._letters = frozenset("".join(words)).union("-'’0123456789²")
        self._bare = {bare(word) for word in excluded}
        glued = "|".join(re.escape(form) for form in sorted(self._bare) if len(form) >= _GLUED)
        self._glued = re.compile(glued or r"(?!)")

    def marks(self, tokens: Tokens, sentences: Int64) -> Int8:
        """Return which tokens are suspect, int8 [T]: 0, or one and the place in ``KINDS``; ``sentences`` are bounds."""
        is_word, size = tokens.classes == classes.WORD, self._size
        leads, careless = self._leads(tokens, is_word, sentences)
        known = is_word & (tokens.ids >= 0) & (tokens.ids < size)
        listed = np.where(known, self._listed[np.where(known, tokens.ids, 0)], 0)
        first = tokens.data[np.minimum(tokens.starts, max(tokens.data.size - 1, 0))] if len(tokens) else tokens.starts
        capital = ((first >= 0x41) & (first <= 0x5A)) | (first >= 0x80)
        marks = np.zeros(len(tokens), np.int8)
        for t in np.flatnonzero(is_word & (~known | ((listed > 0) & (capital | careless)))).tolist():
            marks[t] = self._mark(tokens, t, lead=bool(leads[t]), careless=bool(careless[t]))
        return marks

    def _leads(self, tokens: Tokens, is_word: Bool, sentences: Int64) -> tuple[Bool, Bool]:
        """Return which tokens are the first words of sentences, and which are in one with a small letter first."""
        leads, careless = np.zeros(len(tokens), np.bool_), np.zeros(len(tokens), np.bool_)
        words = np.flatnonzero(is_word)
        places = np.searchsorted(words, sentences)
        for start, stop in zip(sentences[:-1][np.diff(places) > 0], sentences[1:][np.diff(places) > 0], strict=True):
            lead = words[np.searchsorted(words, start)]
            leads[lead] = True
            careless[start:stop] = tokens.text(int(lead))[0].islower()
        return leads, careless

    def _mark(self, tokens: Tokens, t: int, *, lead: bool, careless: bool) -> int:
        word = tokens.text(t)
        stem = _ENDING.sub("", word) or word
        number = self._ids.get(stem.lower())
        if number is None:
            form = bare(stem)
            if form in self._bare or self._glued.search(form):
                return _EXCLUDED
            if not self._letters.issuperset(stem.lower()):
                return _SCRIPT
            return _NAME if careless or any(map(str.isupper, word)) else 0
        listed = int(self._listed[number])
        if listed == 1 and stem.lower() in MONTHS and t and tokens.text(t - 1).lower() in BEFORE_MONTHS:
            return 0
        inside = word[0].isupper() and (not lead or listed == 2)
        return _NAME if listed and (inside or (careless and listed == 2)) else 0
