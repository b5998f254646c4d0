"""Names of persons by their places, by public lists, and by capitals, of kind ``name``.

A *run* is of words that can be parts of a name: capitalized ones, listed ones in capitals, initials, and particles
(*van*, *de*) between them, joined by blanks or a hyphen. A line break ends a run. A run is a name

* after a cue, whatever its words mean otherwise: a greeting (*Hi*, also *Hi Ann and*), a closing (*Regards,*), an
  introduction (*this is*), the label of a header (*From:*) or a title (*Dr.*);
* if it fills a line, and a word of it is on a list of given names, or unknown or rare;
* if a word of it is on a list of given or family names, and is not otherwise a word; if it is one (*Mark*, *Grace*), by
  a capital within a sentence, or next to another name;
* if two capitalized words of it are on no list and unknown or rare, or one, next to a word such as *asked* or *said*;
* if it is a family name by its form: *de Wit*; *Lee, Ann*; *"last": "Lee"*; *Lee^Ann*;
* if it is a part of a name that was found in the same document, with the same capitals.

After *the*, *in* or *New*, and before *Inc.*, *Street* or (eponyms) *disease*, only a cue makes a run a name.

``names.txt.gz`` has the lists: a line of flags, and a line of words that have these.
"""

from __future__ import annotations

import functools
import gzip
from dataclasses import dataclass, field
from importlib import resources

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import for_loops
from corpusveil.spaces import Space
from corpusveil.text.languages import STOP_WORDS
from corpusveil.text.spans import Declared, Spans
from corpusveil.text.tokens import Tokens
from corpusveil.text.utf8 import CHARACTERS
from corpusveil.text.word_table import WordTable
from corpusveil_spans.cues import CUES, GREETING, KNOWN, NEVER, RARELY
from corpusveil_spans.name_bits import Listed, add_bits, look_up
from corpusveil_spans.name_loops import again, runs

RARE = 30.0
"""A word with fewer occurrences in a million public words is rare."""
_REMEMBERED = 32
"""Parts of the latest names of a document, which are found again in it."""


def listed_bits() -> dict[str, int]:
    """Return the words of the lists and cues, and the bits of each."""
    bits: dict[str, int] = {}
    lines = gzip.decompress(resources.files(__package__).joinpath("names.txt.gz").read_bytes()).decode().split("\n")
    for flags, words in zip(lines[::2], lines[1::2], strict=True):
        bits |= dict.fromkeys(words.split(" "), sum(1 << "gfwocse".index(flag) for flag in flags))
    for bit, text in (*CUES.items(), (NEVER, " ".join(STOP_WORDS - {"will"}))):
        for word in text.split():
            bits[word] = bits.get(word, 0) | bit
    return bits


@functools.cache
def _tables() -> tuple[tuple[WordTable, npt.NDArray[np.uint32]], ...]:
    """Return the words with bits, and the cues among them, which are few enough for a processor's cache."""
    bits = listed_bits()
    return tuple(
        (WordTable.of_words(some), np.array([*some.values()], np.uint32))
        for some in (bits, {word: bit for word, bit in bits.items() if bit >= GREETING})
    )


@dataclass(frozen=True, slots=True)
class Names:
    """Finds such runs by the lists, and by the vocabulary and public counts of a space."""

    space: Space
    bits: npt.NDArray[np.uint32] = field(init=False, repr=False, compare=False)
    table: WordTable = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        counts = np.full(len(self.space), np.inf) if self.space.counts is None else self.space.counts
        vocabulary, (lists, listed) = self.space.vocabulary, _tables()[0]
        bits = np.where(counts * 1e6 < RARE * counts.sum(), KNOWN | RARELY, KNOWN).astype(np.uint32)
        add_bits(for_loops(vocabulary.text), vocabulary.offsets, listed, lists.arrays, bits)
        object.__setattr__(self, "bits", bits)
        object.__setattr__(self, "table", WordTable.build(vocabulary.text, vocabulary.offsets))

    def __reduce__(self) -> tuple[type[Names], tuple[Space]]:
        return Names, (self.space,)

    def __call__(self, tokens: Tokens) -> Spans:
        texts, size = (tokens.data, tokens.starts, tokens.ends, tokens.classes), len(tokens)
        bits, cases, picked = np.empty(size, np.uint32), np.empty(size, np.uint8), np.empty(size + 1, np.int32)
        scratch = np.empty(2 * int((tokens.ends - tokens.starts).max(initial=0)) + 16, np.uint8)
        (lists, listed), (cues, cue_bits) = _tables()
        tables = Listed(self.bits, self.table.arrays, listed, lists.arrays, cue_bits, cues.arrays)
        n = look_up(tokens.arrays, CHARACTERS, tables, scratch, bits, cases, picked)
        firsts, lasts = np.empty(n, np.int64), np.empty(n, np.int64)
        more, parts, picked = np.empty(size, np.int64), np.empty(_REMEMBERED, np.int64), picked[:n]
        n = runs(*texts, bits, cases, tokens.offsets, picked, firsts, lasts)
        firsts, lasts = firsts[:n], lasts[:n]
        more = more[: again(*texts, bits, cases, tokens.offsets, firsts, lasts, parts, more)]
        firsts, lasts = np.concatenate([firsts, more]), np.concatenate([lasts, more])
        order = np.argsort(firsts, kind="stable")
        starts, ends = tokens.starts[firsts[order]].astype(np.int64), tokens.ends[lasts[order]].astype(np.int64)
        return Spans(starts, ends, np.zeros(order.size, np.int64), ("name",))


RECOGNIZER = Declared(Names, 2, ("name",))
