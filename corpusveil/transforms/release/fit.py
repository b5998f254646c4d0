"""Whether a release suits its texts (markup, names, language, words): said of the first texts."""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from corpusveil.storage.records import Record
from corpusveil.text.classes import WORD
from corpusveil.text.markup import with_tags
from corpusveil.text.tokens import Tokens, strings
from corpusveil.transforms.release.passage_release import PassageRelease
from corpusveil.transforms.release.release import AnyRelease, Release

MANY_UNKNOWN = 0.05
"""Above this share of words outside the vocabulary, a release says too little of its texts."""
LISTED = 20
"""The most unknown words that are listed."""
MANY_TEXTS = 0.1
"""From this share of texts in other words on, they are no accident of a few texts."""
TEXTS, CHARACTERS, WORDS, SHORT = 200, 2000, 100, 5
"""This many texts are looked at, and characters of each; fewer words than these, of all or of a text, show nothing."""
RUN, IN_MANY, MANY_SHARED = 6, 20, 0.05
"""The words of a run, the rows above which it is shared text, and the share of such runs from which a plan warns."""
_PERSONAL = (
    r"(?i)\S@\w+\.\w|\+\d[\d ()./-]{7,}\d|"
    r"\b(this is|my name is|I am|hi|hello|dear|regards|sincerely|thanks|cheers|best|from:)(?-i)[\s,:]+[A-Z][a-z]+"
)
"""An e-mail address, a phone number, or a capitalized word where names stand."""
_WHAT_TO_DO = (
    "unknown words are replaced regardless of their meaning. Release texts with a space of their language and domain "
    "(docs/languages.md)"
)


class Unknown(Record):
    """The share of the words of the first texts that the space lacks, and the most frequent of these. Private."""

    share: float
    words: dict[str, int]
    names: dict[str, list[int]] = Field(default_factory=dict)
    """Words that look like names and were not recognized, with their rows, counted from 1."""

    def lines(self) -> list[str]:
        """Say which words these are, and what to do about many; nothing without any."""
        if not self.words:
            return []
        listed = ", ".join(f"{word} {count:,}" for word, count in self.words.items())
        return [
            f"{self.share:.1%} of the words of the first texts are not in the space (private): {listed}",
            *([TO_KNOW_THEM] if self.share > MANY_UNKNOWN else []),
        ]


TO_KNOW_THEM = (
    "To keep what such words say: build a space that has them (corpusveil space), or treat names and terms by their "
    "kind (spans)."
)


def unknown_words(release: AnyRelease, texts: pa.Array) -> Unknown:
    """Return the unknown words of the first of these texts; none for passages, which keep no word. Private."""
    if isinstance(release, PassageRelease):
        return Unknown(share=0.0, words={})
    tokens = _read(release, _first(texts))
    is_unknown = (tokens.classes == WORD) & (tokens.ids < 0)
    counts = Counter(tokens.text(at).lower() for at in np.flatnonzero(is_unknown).tolist())
    share = float(is_unknown.sum() / max(1, int((tokens.classes == WORD).sum())))
    return Unknown(share=share, words=dict(counts.most_common(LISTED)))


def missed_names(release: AnyRelease, texts: pa.Array, rows: Sequence[int]) -> dict[str, list[int]]:
    """Return words of D texts that look like names and are no spans, with the rows [D] of these texts. Private.

    These are capitalized words after another word, if the space lacks them or a word beside is capitalized, too.
    Without spans, and of passages, none.
    """
    if isinstance(release, PassageRelease) or release.spans is None:
        return {}
    tokens, _ = release.kernel(whole_corpus=True).read(texts)
    of_texts = np.repeat(np.arange(tokens.offsets.size - 1), np.diff(tokens.offsets))
    is_word = tokens.classes == WORD
    capital = np.array([word and tokens.text(at)[:1].isupper() for at, word in enumerate(is_word)], np.bool_)
    behind = np.zeros(len(tokens), np.bool_)
    behind[1:] = is_word[:-1] & (of_texts[1:] == of_texts[:-1])
    beside = np.pad(capital, 1)
    beside = beside[:-2] | beside[2:]
    named: dict[str, list[int]] = {}
    for at in np.flatnonzero(capital & behind & ((tokens.ids < 0) | beside)).tolist():
        places = named.setdefault(tokens.text(at), [])
        if len(places) < LISTED and rows[of_texts[at]] + 1 not in places:
            places.append(rows[of_texts[at]] + 1)
    return dict(sorted(named.items(), key=lambda item: -len(item[1]))[:LISTED])


def shared_share(release: AnyRelease, texts: pa.Array) -> float:
    """Return the share of the runs of ``RUN`` words in the first of these texts that stand in over ``IN_MANY`` of them.

    Private; 0 for passages, of which no words come back.
    """
    if isinstance(release, PassageRelease):
        return 0.0
    tokens, rows = _read(release, _first(texts)), Counter[tuple[str, ...]]()
    for first, last in itertools.pairwise(tokens.offsets.tolist()):
        words = [tokens.text(at).lower() for at in range(first, last) if tokens.classes[at] == WORD]
        rows.update({tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1)})
    return sum(count for count in rows.values() if count > IN_MANY) / max(1, rows.total())


def _first(texts: pa.Array) -> pa.Array:
    return pc.utf8_slice_codeunits(strings(texts.slice(0, TEXTS)).drop_null(), 0, CHARACTERS)


def _read(release: Release, texts: pa.Array) -> Tokens:
    """Return the tokens of texts, or units, as the kernel of a release reads them, but that nothing is a span."""
    return dataclasses.replace(release.kernel(whole_corpus=True), spans=None).read(texts)[0]


def misfit(release: Release, texts: pa.Array) -> str | None:
    """Return a warning, without a figure, if the space lacks many words of the first of these texts, otherwise None."""
    first = _first(texts)
    if first.nbytes < WORDS:
        return None
    tokens = _read(release, first)
    is_word = tokens.classes == WORD
    before = np.cumsum(np.pad([is_word, is_word & (tokens.ids < 0)], ((0, 0), (1, 0))), axis=1)
    words, unknown = np.diff(before[:, tokens.offsets])
    foreign = (2 * unknown > words)[words >= SHORT]
    fits = unknown.sum() <= MANY_UNKNOWN * words.sum() and foreign.sum() < MANY_TEXTS * foreign.size
    if words.sum() < WORDS or fits:
        return None
    return f"many words of the first texts are not in the space; {_WHAT_TO_DO}; 'preview' and 'plan' list the words."


def doubts(release: AnyRelease, texts: pa.Array) -> list[str]:
    """Return warnings about the first of these texts; they contain no figure."""
    if isinstance(release, PassageRelease):
        return release.doubts(strings(texts.slice(0, TEXTS)))
    first = _first(texts)
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


def warn_of_misfit(release: AnyRelease, texts: pa.Array) -> None:
    """Warn a caller in Python, if there is reason to."""
    for sentence in doubts(release, texts):
        warnings.warn(sentence, stacklevel=5)
