"""The stages of making a language model: parts of counts as sorted keys, and ranges of keys smoothed."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusveil.arrays import UInt64
from corpusveil.collocations import parts
from corpusveil.errors import ArtefactError
from corpusveil.language.smoothing import Discounts, Range, Sums, keys_of, level
from corpusveil.spaces.vocabulary import read_vocabulary
from corpusveil.storage import files
from corpusveil.storage.durable import Done, PartTask, Stage, stem
from corpusveil.storage.parquet import read_table, sound

BY_BIGRAM, BY_CONTEXT, BY_SUFFIX = "bigrams", "contexts", "suffixes"
SUMS = ("begin", "totals", "end", "ended")


class GatheredPart(Done):
    """A part of the counts as sorted keys: their files, and how many trigrams occur once and twice."""

    made: list[str]
    once: int
    twice: int


class Smoothed(GatheredPart):
    """A range of keys, smoothed: its files and sizes, and how many bigrams follow one word and two."""

    bigrams: int
    trigrams: int


@dataclass(frozen=True, slots=True)
class Gather(Stage[GatheredPart]):
    """Turn one part of the counts into sorted keys, in ``ranges`` ranges."""

    counts: str
    vocabulary: str
    least: int
    ranges: int

    name: ClassVar[str] = "keys"

    def make(self, task: PartTask) -> dict[str, Any]:
        names = _words(self.vocabulary, self.mark)
        folder = files.join(self.counts, "ngrams")
        table = counts_in(files.join(folder, files.listing(folder)[task.part]))
        two, counts2 = ids_of(self.counts, table, names, 2, self.least)
        three, counts3 = ids_of(self.counts, table, names, 3, self.least)
        made = {
            BY_BIGRAM: self._put(task, BY_BIGRAM, keys_of(two[:, 0], two[:, 1]), counts2),
            BY_CONTEXT: self._put(task, BY_CONTEXT, keys_of(three[:, 0], three[:, 1]), counts3, three[:, 2]),
            BY_SUFFIX: self._put(task, BY_SUFFIX, keys_of(three[:, 1], three[:, 2]), counts3),
        }
        discounts = Discounts.of(counts3)
        return {"made": list(made.values()), "once": discounts.once, "twice": discounts.twice}

    def _put(self, task: PartTask, kind: str, keys: UInt64, counts: Any, words: Any = None) -> str:
        url = self.address("made", f"{stem(task)}-{kind}.parquet")
        order = np.argsort(keys, kind="stable")
        columns = {"key": keys[order], "count": counts[order]}
        if words is not None:
            columns["word"] = words[order]
        parts.write(url, pa.table(columns), columns["key"], self.ranges)
        return url


@dataclass(frozen=True, slots=True)
class Smooth(Stage[Smoothed]):
    """Smooth one range of keys."""

    made: tuple[str, ...]
    size: int
    discount: float
    complete: bool

    name: ClassVar[str] = "levels"

    def make(self, task: PartTask) -> dict[str, Any]:
        counted = self._range(task)
        made = level(counted, self.discount, complete=self.complete)
        sums = Sums.of(made, counted.counts2, self.size)
        used = np.flatnonzero(sums.begin + sums.end)
        tables = {
            "bigrams": {"key": made.bigrams, "before": made.before, "left": made.left, "after": np.diff(made.starts)},
            "trigrams": {"word": made.words, "share": made.shares},
            "sums": {"word": used, **{name: getattr(sums, name)[used] for name in SUMS}},
        }
        urls = []
        for name, columns in tables.items():
            urls.append(self.address("made", f"{stem(task)}-{name}.parquet"))
            with files.open_write(urls[-1]) as file:
                pq.write_table(pa.table(columns), file, compression="lz4", use_dictionary=False)
        twos = Discounts.of(made.before)
        sizes = {"bigrams": made.bigrams.size, "trigrams": made.words.size}
        return {"made": urls, "once": twos.once, "twice": twos.twice, **sizes}

    def _range(self, task: PartTask) -> Range:
        columns = []
        for kind, names in ((BY_BIGRAM, ["count"]), (BY_CONTEXT, ["word", "count"]), (BY_SUFFIX, ["count"])):
            urls = [url for url in self.made if url.endswith(f"-{kind}.parquet")]
            tables = list(parts.read(urls, task.part, task.parts))
            keys = _joined(tables, "key", np.uint64)
            rest = [_joined(tables, name, np.int32 if name == "word" else np.int64) for name in names]
            order = np.lexsort((rest[0], keys)) if kind == BY_CONTEXT else np.argsort(keys, kind="stable")
            columns += [keys[order], *(column[order] for column in rest)]
        return Range(*columns)


@functools.lru_cache(maxsize=1)
def _words(url: str, mark: str) -> pa.Array:  # noqa: ARG001 - of which counts
    return pa.array(read_vocabulary(url).words, pa.string())


def ids_of(url: str, table: pa.Table, names: pa.Array, n: int, least: int) -> tuple[Any, npt.NDArray[np.int64]]:
    """Return the n-grams of n words that occur often enough, int32 [K, n], and their counts."""
    table = table.filter(pc.and_(pc.equal(table["n"], n), pc.greater_equal(table["count"], least)))
    lists = pc.split_pattern(table["ngram"].combine_chunks(), " ")
    places = pc.index_in(lists.flatten(), value_set=names)
    if places.null_count or len(places) != n * table.num_rows:
        raise ArtefactError(
            f"{url}: these counts are damaged, since an n-gram has a word that is not counted; count again."
        )
    return places.to_numpy().astype(np.int32).reshape(-1, n), table["count"].to_numpy().astype(np.int64)


def counts_in(url: str) -> pa.Table:
    with sound(f"{url}: these counts could not be read; count again."):
        return read_table(url, ["ngram", "n", "count"])


def _joined(tables: Sequence[pa.Table], column: str, dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate([*(table[column].to_numpy() for table in tables), np.empty(0, dtype)])
