"""The vocabulary of n-gram counts: the most frequent words, as many as keys can hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusveil.collocations.collocation_table import most_words
from corpusveil.errors import ArtefactError, DataError, SizeError, no_words
from corpusveil.storage import files
from corpusveil.storage.parquet import read_table


@dataclass(frozen=True, slots=True)
class Earlier:
    """Earlier counts to which a corpus is added: their vocabulary, and all their words in parts."""

    vocabulary: str
    words: Sequence[str]


def choose_vocabulary(made: Sequence[str], url: str, max_n: int, min_count: int, earlier: Earlier | None) -> int:
    """Write the words of ``made``, parts of the word counts, most frequent first; return how many are left out.

    All words are used if keys can hold them, so that later shards can be added. Those of earlier counts keep their ids;
    a word that earlier shards have but their vocabulary lacks is left out, since its n-grams there are not known. Words
    left out are counted when they occur ``min_count`` times. Memory is that of one part and of the vocabulary.
    """
    most = most_words(max_n)
    top = _EMPTY
    old = _EMPTY["word"] if earlier is None else read_vocabulary(earlier.vocabulary)["word"].combine_chunks()
    old_counts = np.zeros(len(old), dtype=np.int64)
    often = left_out = 0
    for part, url_of_part in enumerate(made):
        words = _read_words(url_of_part)
        if earlier is not None:
            at = pc.index_in(words["word"], value_set=old)
            kept = pc.is_valid(at)
            old_counts[at.filter(kept).to_numpy()] = words["count"].filter(kept).to_numpy()
            words = words.filter(pc.invert(kept))
            seen = pc.is_in(words["word"], value_set=_read_words(earlier.words[part])["word"].combine_chunks())
            left_out += _often(words.filter(seen), min_count)
            words = words.filter(pc.invert(seen))
        often += _often(words, min_count)
        top = pa.concat_tables([top, words])
        if top.num_rows > 2 * most:
            top = _most_frequent(top).slice(0, most)
    often += int(np.count_nonzero(old_counts >= min_count))
    chosen = pa.concat_tables([pa.table({"word": old, "count": old_counts}), _most_frequent(top)]).slice(0, most)
    if not chosen.num_rows:
        raise no_words()
    if often > most:
        raise SizeError(
            f"{often:,} words occur at least {min_count} times, and n-grams of up to {max_n} words can have {most:,} "
            "different words; raise min_count or lower max_n."
        )
    if not often:
        raise DataError(f"No word occurs {min_count} times; lower min_count or count more text.")
    with files.open_write(url) as file:
        pq.write_table(chosen, file, compression="zstd")
    return left_out


_EMPTY = pa.table({"word": pa.array([], pa.large_string()), "count": pa.array([], pa.int64())})


def _often(words: pa.Table, min_count: int) -> int:
    return int(np.count_nonzero(words["count"].to_numpy() >= min_count))


def _most_frequent(words: pa.Table) -> pa.Table:
    return words.take(pc.sort_indices(words, [("count", "descending"), ("word", "ascending")]))


def _read_words(url: str) -> pa.Table:
    with files.open_read(url) as file:
        table = read_table(file, ["word", "count"])
    return table.set_column(0, "word", table["word"].cast(pa.large_string()))


def read_vocabulary(url: str) -> pa.Table:
    """Return ``word: large_string, count: int64`` by id."""
    with files.open_read(url) as file:
        try:
            table = read_table(file)
            return table.set_column(0, "word", table["word"].cast(pa.large_string()))
        except (pa.ArrowException, KeyError) as error:
            raise ArtefactError(f"{url}: this vocabulary is damaged ({type(error).__name__}); count again.") from None
