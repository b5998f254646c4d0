"""Whether a store was made of the texts that it is to replace: then a release would publish these word for word.

What is compared are runs of words, letters and digits alone, case folded and without marks, whatever sentences and
texts they are in: a store may have been cut and written otherwise than the input. Many of the texts are in the store if
one in a hundred of their runs of eight words stand there, or, for short texts, 35 in a hundred of their runs of four,
which are formulas otherwise; and if these are runs of several texts, since one or two may be anybody's quotations.
``tests/passages/test_overlap.py`` has the forms on which this was measured.
"""

from __future__ import annotations

import functools
import hashlib
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.arrays import Int64, UInt64
from corpusveil.errors import SettingError
from corpusveil.passages.store import Store

SHARES = {8: (0.01, 3, 0.0), 4: (0.35, 12, 0.25)}
"""The share of different runs of n words, and their number, from which on a store was made of these texts.

And the share of a text's runs from which on it is one of these: a formula makes none.
"""
FEW = 3
"""Fewer pieces of the store, or fewer texts if there are more, are chance, or quotations."""
PIECES = 50_000
"""The pieces of a store that are looked at; its first ones are a random sample."""
TEXTS = 200
"""The texts of a batch that are looked at."""
_UNSEEN, _APART = r"<[^<>]*>|\p{Cf}", r"[^\p{L}\p{M}\p{N}]+"
_MIXED = np.uint64(0x9E3779B97F4A7C15)


def refuse_overlap(store: Store, texts: pa.Array) -> None:
    """Raise UserError if many of the first of these texts, large_string [D], are in the store."""
    own, published = _runs(texts.slice(0, TEXTS).cast(pa.large_string())), _published(store)
    for words, (share, least, formula) in SHARES.items():
        (runs, inside), (known, pieces) = own[words], published[words]
        there = known[np.searchsorted(known, runs)] == runs
        shared, several = np.unique(runs[there]), min(FEW, np.unique(own[4][1]).size)
        hits, sizes = np.bincount(inside[there], minlength=len(texts)), np.bincount(inside, minlength=len(texts))
        alike = np.count_nonzero((hits > 0) & (hits >= formula * sizes))
        few = np.unique(pieces[np.searchsorted(known, shared)]).size < FEW or alike < several
        if not few and shared.size >= max(least, share * np.unique(runs).size):
            raise SettingError(
                f"{store.url or 'the store'}: too much of the first texts is in this store, and would be published "
                "word for word; make the store of other text, or accept this with accept_overlap."
            )


@functools.lru_cache(maxsize=2)
def _published(store: Store) -> dict[int, tuple[UInt64, Int64]]:
    """Return for each number of words the runs of a store, sorted, then the largest number; the first piece of each."""
    made = {}
    for words, (runs, pieces) in _runs(store.texts.slice(0, PIECES)).items():
        known, first = np.unique(runs, return_index=True)
        made[words] = np.append(known, np.uint64(2**64 - 1)), pieces[first]
    return made


def _runs(texts: pa.Array) -> dict[int, tuple[UInt64, Int64]]:
    """Return for each number of words the hashes of all such runs, and their texts."""
    seen = pc.replace_substring_regex(texts.fill_null(""), _UNSEEN, "")
    lists = pc.split_pattern_regex(seen, _APART)
    words, places = lists.flatten(), pc.list_parent_indices(lists).to_numpy()
    there = pc.greater(pc.binary_length(words), 0)
    coded, places = words.filter(there).dictionary_encode(), places[there.to_numpy(zero_copy_only=False)]
    hashes = np.array([_hash(word) for word in coded.dictionary.to_pylist()], np.uint64)
    each = hashes[coded.indices.to_numpy()]
    made, run = {}, each.copy()
    for number in range(2, max(SHARES) + 1):
        run = run[:-1] * _MIXED + each[number - 1 :]
        if number in SHARES:
            whole = places[: run.size] == places[number - 1 :]
            made[number] = run[whole], places[: run.size][whole]
    return made


def _hash(word: str) -> int:
    apart = unicodedata.normalize("NFKD", word).casefold()
    plain = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return int.from_bytes(hashlib.blake2b(plain.encode(), digest_size=8).digest(), "little")
