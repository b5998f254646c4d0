"""The stages of counting: words per shard, words per part, n-grams per shard, n-grams per part.

A shard may be a row range of a large shard.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.arrays import UInt64
from corpusveil.choices import Hyphens
from corpusveil.collocations import ngrams, parts
from corpusveil.collocations.corpus_shards import Read, ShardStage
from corpusveil.collocations.ngrams import KeyCounts, merged, unpacked
from corpusveil.collocations.word_counts import COUNTS, counted, spread, summed, with_more
from corpusveil.errors import ArtifactError
from corpusveil.spaces.vocabulary import buffers
from corpusveil.storage import files
from corpusveil.storage.durable import Done, PartTask, Stage, stem
from corpusveil.storage.parquet import read_table, write_table
from corpusveil.storage.tasks import ShardTask
from corpusveil.text.classes import WORD
from corpusveil.text.sentences import consecutive
from corpusveil.text.tokens import Tokenizer
from corpusveil.text.word_table import WordTable

_BLANK = pa.scalar(" ", pa.large_string())
MOST_WORDS = 4 << 20
"""Rows of counts of words in memory before they are added up, and written if as many as half are different words."""
FIRST_TEXTS = 1024
"""Texts whose words are counted by id from then on, which is quicker than as strings."""


class WordsCounted(Read):
    """The words of a shard."""

    words: int
    made: list[str]


@dataclass(frozen=True, slots=True)
class CountWords(ShardStage[WordsCounted]):
    """Count the words of a shard into files with these names."""

    name: ClassVar[str] = "words"

    parts: int
    hyphens: Hyphens = "split"
    language: str | None = None

    def do_task(self, task: ShardTask) -> dict[str, Any]:
        read: dict[str, Any] = {}
        made: list[str] = []
        waiting: list[pa.Table] = []
        words = 0
        usual = COUNTS.empty_table()
        tokenizer = Tokenizer.of_words([], self.hyphens, self.language)
        for batch in self.texts(task, read):
            for texts in (batch.slice(0, FIRST_TEXTS), batch.slice(FIRST_TEXTS)):
                tokens = tokenizer.tokenize(texts)
                is_word = tokens.classes == WORD
                words += int(np.count_nonzero(is_word))
                others = counted(tokens.only(is_word & (tokens.ids < 0)))
                if not len(usual):
                    usual = others
                    tokenizer = Tokenizer.of_words(usual["word"].to_pylist(), self.hyphens, self.language)
                    continue
                usual = with_more(usual, tokens.ids)
                waiting.append(others)
                if sum(map(len, waiting)) > MOST_WORDS:
                    waiting = [summed(waiting)]
                    if len(waiting[0]) > MOST_WORDS // 2:
                        made.append(self._put(task, len(made), waiting.pop()))
        made.append(self._put(task, len(made), summed([usual, *waiting])))
        return {**read, "words": words, "made": made}

    def _put(self, task: ShardTask, number: int, counts: pa.Table) -> str:
        url = self.address("made", f"{stem(task)}-{number:03d}.parquet")
        keys = spread(counts["word"].combine_chunks())
        order = np.argsort(keys)
        parts.write(url, counts.take(pa.array(order)), keys[order], self.parts)
        return url


class Added(Done):
    """A part of the words: the address and number of its sums."""

    made: str
    different: int


@dataclass(frozen=True, slots=True)
class AddWords(Stage[Added]):
    """Add up one part of the counts of words."""

    name: ClassVar[str] = "added"

    words_made: tuple[str, ...]

    def do_task(self, task: PartTask) -> dict[str, Any]:
        url = self.address("made", f"{stem(task)}.parquet")
        added = summed(parts.read(self.words_made, task.part, task.parts))
        write_table(added, url)
        return {"made": url, "different": added.num_rows}


class NgramsCounted(Read):
    """The n-grams of a shard."""

    sentences: int
    made: list[str]


@dataclass(frozen=True, slots=True)
class CountNgrams(ShardStage[NgramsCounted]):
    """Count the n-grams of a shard over a vocabulary."""

    name: ClassVar[str] = "ngrams"

    parts: int
    vocabulary: str
    max_n: int
    hyphens: Hyphens = "split"
    language: str | None = None

    def do_task(self, task: ShardTask) -> dict[str, Any]:
        tokenizer = _tokenizer(self.vocabulary, self.mark, self.hyphens, self.language)
        read: dict[str, Any] = {}
        made: list[str] = []
        keys: list[UInt64] = []
        sentences = 0
        for texts in self.texts(task, read):
            tokens, ends = consecutive(tokenizer.tokenize(texts))
            sentences += int(ends.sum())
            keys.append(ngrams.keys_of(tokens, ends, self.max_n))
            if sum(map(len, keys)) > ngrams.MOST_KEYS:
                made.append(self._put(task, len(made), keys))
                keys = []
        made.append(self._put(task, len(made), keys))
        return {**read, "sentences": sentences, "made": made}

    def _put(self, task: ShardTask, number: int, keys: list[UInt64]) -> str:
        url = self.address("made", f"{stem(task)}-{number:03d}.parquet")
        different, counts = ngrams.counted(keys)
        parts.write(url, pa.table({"key": different, "count": counts}), different, self.parts)
        return url


@functools.lru_cache(maxsize=1)
def _tokenizer(url: str, mark: str, *how: Any) -> Tokenizer:  # noqa: ARG001 - of which vocabulary
    words = read_vocabulary(url)["word"].combine_chunks()
    offsets, data = buffers(words)
    return Tokenizer(WordTable.build(data, offsets), *how)


def read_vocabulary(url: str) -> pa.Table:
    """Return ``word: large_string, count: int64`` by id."""
    try:
        table = read_table(url)
        return table.set_column(0, "word", table["word"].cast(pa.large_string()))
    except (pa.ArrowException, KeyError) as error:
        raise ArtifactError(f"{url}: this vocabulary is damaged ({type(error).__name__}); count again.") from None


class NgramsAdded(Done):
    """A part of the n-grams: how many are written."""

    kept: int


@dataclass(frozen=True, slots=True)
class AddNgrams(Stage[NgramsAdded]):
    """Add up one part of the n-gram counts, and write those that occur often enough."""

    name: ClassVar[str] = "ngrams-added"

    made: tuple[str, ...]
    vocabulary: str
    max_n: int
    min_count: int
    output: str

    def do_task(self, task: PartTask) -> dict[str, Any]:
        runs: list[KeyCounts] = []
        size = 0
        for table in parts.read(self.made, task.part, task.parts):
            runs.append((table["key"].to_numpy(), table["count"].to_numpy()))
            if sum(len(keys) for keys, _ in runs) > max(ngrams.MOST_KEYS, 2 * size):
                runs = [merged(runs)]
                size = len(runs[0][0])
        keys, counts = merged(runs)
        often = counts >= self.min_count
        lengths, ids = unpacked(keys[often], self.max_n)
        vocabulary = read_vocabulary(self.vocabulary)
        words = vocabulary["word"].combine_chunks()
        joined = [
            pc.binary_join_element_wise(*(words.take(pa.array(ids[rows, k])) for k in range(n)), _BLANK)
            for n in range(2, self.max_n + 1)
            if (rows := np.flatnonzero(lengths == n)).size
        ]
        sizes = [lengths[lengths == n] for n in range(2, self.max_n + 1)]
        kept = [counts[often][lengths == n] for n in range(2, self.max_n + 1)]
        table = table_of(
            joined, np.concatenate([*sizes, np.empty(0, np.int8)]), np.concatenate([*kept, np.empty(0, np.int64)])
        )
        write_part(self.output, task.part + 1, task.parts + 1, table)
        return {"kept": table.num_rows}


def table_of(ngrams: list[Any], lengths: Any, counts: Any) -> pa.Table:
    """Return the table of counts in its order: n, falling count, n-gram."""
    table = pa.table(
        {
            "ngram": pa.chunked_array(ngrams, pa.large_string()),
            "n": pa.array(lengths, pa.int8()),
            "count": pa.array(counts, pa.int64()),
        }
    )
    return table.take(pc.sort_indices(table, [("n", "ascending"), ("count", "descending"), ("ngram", "ascending")]))


def write_part(output: str, part: int, of: int, table: pa.Table) -> None:
    schema = pa.schema([("ngram", pa.string()), ("n", pa.int8()), ("count", pa.int64())])
    write_table(table.cast(schema), files.join(output, "ngrams", f"part-{part:05d}-of-{of:05d}.parquet"))
