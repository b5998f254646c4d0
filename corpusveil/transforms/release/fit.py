"""Whether a release suits its texts (markup, names, language): said of the first texts, before anything is drawn."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.errors import DataError, PackageError
from corpusveil.kernel.prepared import prepare
from corpusveil.text import languages
from corpusveil.text.classes import WORD
from corpusveil.text.markup import Texts, with_tags
from corpusveil.text.tokens import strings
from corpusveil.transforms.release.release import Release

MANY_UNKNOWN = 1 / 3
"""Above this share of words outside the vocabulary, text and space hardly match; prose in one language has a tenth."""
MANY_TEXTS = 0.1
"""From this share of texts in other words on, they are no accident of a few texts."""
TEXTS, CHARACTERS, WORDS, SHORT = 200, 2000, 100, 5
"""This many texts are looked at, and characters of each; fewer words than these, of all or of a text, show nothing."""
_PERSONAL = (
    r"(?i)\S@\w+\.\w|\+\d[\d ()./-]{7,}\d|"
    r"\b(this is|my name is|I am|hi|hello|dear|regards|sincerely|thanks|cheers|best|from:)(?-i)[\s,:]+[A-Z][a-z]+"
)
"""An e-mail address, a phone number, or a capitalized word where names stand."""
_WHAT_TO_DO = (
    "unknown words are replaced regardless of their meaning. Release texts with a space of their language and domain "
    "(docs/languages.md)."
)


def misfit(release: Release, texts: pa.Array) -> str | None:
    """Return a warning if the first of these texts hardly have the language of the space, otherwise None.

    It contains no figure, and no language but that of the space.
    """
    policy, space = release.policy, release.mechanism.space
    first = pc.utf8_slice_codeunits(strings(texts.slice(0, TEXTS)).drop_null(), 0, CHARACTERS)
    if first.nbytes < WORDS:
        return None
    read = Texts.read(first, policy)
    tokens = prepare(space, policy, release.collocations).tokenizer.tokens(read.data, read.documents)
    is_word = tokens.classes == WORD
    before = np.cumsum(np.pad([is_word, is_word & (tokens.ids < 0)], ((0, 0), (1, 0))), axis=1)
    words, unknown = np.diff(before[:, tokens.offsets])
    foreign = (2 * unknown > words)[words >= SHORT]
    fits = unknown.sum() <= MANY_UNKNOWN * words.sum() and foreign.sum() < MANY_TEXTS * foreign.size
    if words.sum() < WORDS or fits:
        return None
    with contextlib.suppress(DataError, PackageError):  # of a space without a language; without a detector
        spoken = policy.language or space.read_in(languages.DETECT)
        if languages.share_of_others(first.to_pylist(), str(spoken)) >= MANY_TEXTS:
            name = languages.rule(spoken, "name")
            return f"many of the first texts are in another language than the space, which is {name}; {_WHAT_TO_DO}"
    return f"many words of the first texts are not in the space; {_WHAT_TO_DO}"


def doubts(release: Release, texts: pa.Array) -> list[str]:
    """Return warnings about the first of these texts; they contain no figure."""
    first = pc.utf8_slice_codeunits(strings(texts.slice(0, TEXTS)).drop_null(), 0, CHARACTERS)
    many = MANY_TEXTS * max(1, len(first))
    sentences = []
    if release.policy.markup == "words" and with_tags(first) >= many:
        sentences.append(
            "many of the first texts contain HTML, and markup words replaces the names of tags and attributes like "
            "words. Choose markup strip to release only the text."
        )
    if release.spans is None and (pc.sum(pc.match_substring_regex(first, _PERSONAL)).as_py() or 0) >= many:
        sentences.append(
            "many of the first texts have names, numbers or addresses of persons, and no spans are looked for: a name "
            "that the space knows can come back. Look for spans by rules and names (docs/spans.md)."
        )
    return [*sentences, *filter(None, [misfit(release, texts)])]


def warn_of_misfit(release: Release, texts: pa.Array) -> None:
    """Warn a caller in Python, if there is reason to."""
    for sentence in doubts(release, texts):
        warnings.warn(sentence, stacklevel=5)
