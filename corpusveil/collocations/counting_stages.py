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

from corpusveil.choices import Hyphens
from corpusveil.collocations import parts
from corpusveil.collocations.corpus_shards import Read, ShardStage
from corpusveil.collocations.ngrams import NgramCounter, Runs, unpacked
from corpusveil.collocations.word_counter import WordCounter
from corpusveil.errors import ArtifactError
from corpusveil.spaces.vocabulary import buffers
from corpusveil.storage import files
from corpusveil.storage.durable import Done, PartTask, Stage, stem
from corpusveil.storage.parquet import read_table, write_table
from corpusveil.storage.tasks import ShardTask
from corpusveil.text.sentences import consecutive
from corpusveil.text.tokens import Tokenizer
from corpusveil.text.word_table import WordTable

_BLANK = pa.scalar(" ", pa.large_string())
_WORDS = pa.schema([("word", pa.large_string()), ("count", pa.int64()), ("hash", pa.uint64())])


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

    def make(self, task: ShardTask) -> dict[str, Any]:
        counter = WordCounter()
        read: dict[str, Any] = {}
        made: list[str] = []
        words = 0
        tokenizer = Tokenizer.of_words([], self.hyphens, self.language)
        for texts in self.texts(task, read):
            tokens = tokenizer.tokenize(texts)
            words += int(np.count_nonzero(tokens.classes == 0))
            for table in counter.add(tokens):
                made.append(self._put(task, f"{len(made):03d}", table))
        made.append(self._put(task, f"{len(made):03d}", counter.take()))
        return {**read, "words": words, "made": made}

    def _put(self, task: ShardTask, name: str, table: pa.Table) -> str:
        url = self.address("made", f"{stem(task)}-{name}.parquet")
        order = pc.sort_indices(table, [("hash", "ascending"), ("word", "ascending")])
        table = table.take(order)
        parts.write(url, table, table["hash"].to_numpy(), self.parts)
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

    def make(self, task: PartTask) -> dict[str, Any]:
        url = self.address("made", f"{stem(task)}.parquet")
        table = pa.concat_tables([_WORDS.empty_table(), *parts.read(self.words_made, task.part, task.parts)])
        added = table.group_by(["word", "hash"]).aggregate([("count", "sum")]).rename_columns(["word", "hash", "count"])
        added = added.select(["word", "count", "hash"]).sort_by([("hash", "ascending"), ("word", "ascending")])
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

    def make(self, task: ShardTask) -> dict[str, Any]:
        tokenizer, size = _vocabulary_tokenizer(self.vocabulary, self.mark, self.hyphens, self.language)
        counter = NgramCounter(size, self.max_n)
        read: dict[str, Any] = {}
        made: list[str] = []
        sentences = 0
        for texts in self.texts(task, read):
            tokens, ends = consecutive(tokenizer.tokenize(texts))
            sentences += int(ends.sum())
            for run in counter.add(tokens, ends):
                made.append(self._put(task, len(made), run))
        made.append(self._put(task, len(made), counter.finish()))
        return {**read, "sentences": sentences, "made": made}

    def _put(self, task: ShardTask, number: int, run: tuple[Any, Any]) -> str:
        url = self.address("made", f"{stem(task)}-{number:03d}.parquet")
        parts.write(url, pa.table({"key": run[0], "count": run[1]}), run[0], self.parts)
        return url


@functools.lru_cache(maxsize=1)
def _vocabulary_tokenizer(url: str, mark: str, *how: Any) -> tuple[Tokenizer, int]:  # noqa: ARG001 - of which vocabulary
    words = read_vocabulary(url)["word"].combine_chunks()
    offsets, data = buffers(words)
    return Tokenizer(WordTable.build(data, offsets), *how), len(words)


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

    def make(self, task: PartTask) -> dict[str, Any]:
        runs = Runs()
        for table in parts.read(self.made, task.part, task.parts):
            runs.add((table["key"].to_numpy(), table["count"].to_numpy()))
        keys, counts = runs.take()
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
