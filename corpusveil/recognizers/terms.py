"""A file of terms, one a line, ``KIND<TAB>TERM`` or just ``TERM`` (of kind ``name``): found in any case, as words.

The form is strict, since a list in another form would mask nothing, or write what it has as kinds into the release: no
line has more than one tab, quotes, brackets, semicolons or commas but before a blank, and there are few kinds.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Self

from corpusveil.errors import DataError, PackageError
from corpusveil.storage.forms import unmarked
from corpusveil.text.folding import composed_text, folded
from corpusveil.text.languages import UNSPACED
from corpusveil.text.spans import KIND

MOST_KINDS = 20
_OF_OTHER_FORMS = re.compile(r"[\x00-\x1f\"“”«»;|{}\[\]<>=]|,(?! )|^,|,$")
"""What no term has: a mark of CSV, JSON or markup."""
_BARE: dict[int, str | None] = {
    code: unicodedata.normalize("NFD", chr(code))[0] for code in (*range(0xC0, 0x530), *range(0x1E00, 0x2000))
}
_BARE |= dict.fromkeys(range(0x300, 0x370))  # accents that are characters of their own, as in the fold of ΐ
_BARE |= {ord(letter): plain for letter, plain in zip("øłđ", "old", strict=True)}
"""A letter of Latin, Greek or Cyrillic without accents, which Greek capitals never have."""
_GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})


def _is_word(letter: str) -> bool:
    """Say whether a character belongs to a word of a script that has blanks."""
    return letter.isalnum() and not UNSPACED.match(letter) and letter < "\u2e80"


def _inside_a_word(text: str, at: int) -> bool:
    """Say whether a word of a script with blanks goes on at a place of a text."""
    return 0 < at < len(text) and _is_word(text[at - 1]) and _is_word(text[at])


def _has_ending(text: str, start: int, end: int, first: str) -> bool:
    """Say whether a genitive or plural ends a word of four letters and more: *Meyers*, but not *This* after *Thi*."""
    is_name = first.isupper() and end - start > 3 and text[end - 1].isalpha()
    return is_name and text[end] == "s" and not _inside_a_word(text, end + 1)


def _same(term: str) -> str:
    return folded(composed_text(term))[0].strip()


def _forms(term: str) -> set[str]:
    """Return how people write a term: as it is; one of four letters and more without accents, or as in German, too."""
    same = _same(term)
    return {same, *(form.translate(_BARE) for form in (same, same.translate(_GERMAN)) if len(form) > 3)}


class ListedTerms:
    """Finds terms, each a (kind, term), between characters that are no letters or digits."""

    def __init__(self, terms: tuple[tuple[str, str], ...]) -> None:
        try:
            from ahocorasick_rs import AhoCorasick
        except ImportError:
            raise PackageError("A file of terms needs a package: pip install 'corpusveil[spans]'.") from None
        forms = [(kind, form) for kind, term in terms for form in sorted(_forms(term))]
        self.terms, self._kinds = terms, [kind for kind, _ in forms]
        self._automaton = AhoCorasick([form for _, form in forms])

    @classmethod
    @functools.lru_cache(maxsize=4)
    def of_bytes(cls, raw: bytes, url: str) -> Self:
        """Return the terms of a file. Raises UserError, which quotes nothing, naming the row that cannot be used."""
        terms: dict[tuple[str, str], None] = {}
        for row, line in enumerate(unmarked(raw, url).splitlines(), 1):
            try:
                kind, tab, term = line.decode().rpartition("\t")
            except UnicodeDecodeError:
                raise DataError(f"{url}, row {row}: this is not valid UTF-8; convert the file to UTF-8.") from None
            kind, term = kind if tab else "name", term.strip()
            is_term = not term or (_same(term) and not _OF_OTHER_FORMS.search(term))
            if (tab and not term) or not KIND.fullmatch(kind) or not is_term:
                raise DataError(
                    f"{url}, row {row}: give a term, or a kind such as 'name', a tab and a term; without quotes, "
                    "brackets, semicolons and other columns."
                )
            if term:
                terms[kind, term] = None
        if not terms:
            raise DataError(f"{url}: there are no terms in this file; give one a line.")
        if (number := len({kind for kind, _ in terms})) > MOST_KINDS:
            raise DataError(
                f"{url}: {number:,} different kinds stand before the tabs, and a release shows them; give at most "
                f"{MOST_KINDS}, such as 'name', or terms alone."
            )
        return cls(tuple(terms))

    @property
    def summary(self) -> str:
        """Say how many terms there are, and their kinds, which a release shows."""
        return f"{len(self.terms):,} terms, masked by their kind: {', '.join(sorted({kind for kind, _ in self.terms}))}"

    def __call__(self, texts: list[str]) -> list[list[tuple[int, int, str]]]:
        return [self._found(text) for text in texts]

    def _found(self, text: str) -> list[tuple[int, int, str]]:
        same, places = folded(text)
        spans = {
            (places[start], places[end - 1] + 1, self._kinds[form])
            for letters in {same, same.translate(_BARE)}
            for form, start, end in self._automaton.find_matches_as_indexes(letters, overlapping=True)
            if not _inside_a_word(same, start)
            and (not _inside_a_word(same, end) or _has_ending(same, start, end, text[places[start]]))
        }
        return sorted(spans)
