"""n-gram counts of a corpus, exact, on any engine, in bounded memory.

Four stages, each a map over tasks: count words per shard, and add them up per part; then count n-grams per shard, over
the words that reach the least count, since no others can occur in a kept n-gram, and add them up per part. Partial
counts are never pruned. A large shard is counted in row ranges. The caller adds up the sums of a small corpus, in less
time than a job takes to start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.choices import HYPHENS, Hyphens
from corpusveil.collocations.artifact import WORK, ReadingOptions, make_once, remove_others
from corpusveil.collocations.collocation_table import most_words
from corpusveil.collocations.corpus_shards import inputs_of, refuse_changed
from corpusveil.collocations.counting_stages import (
    AddNgrams,
    AddWords,
    CountNgrams,
    CountWords,
    read_vocabulary,
    table_of,
    write_part,
)
from corpusveil.collocations.word_counts import COUNTS, most_frequent
from corpusveil.errors import DataError, check_whole, no_words, not_a_choice
from corpusveil.storage import files
from corpusveil.storage.durable import PartTask, mark_of, run
from corpusveil.storage.engine import Engine, Here
from corpusveil.storage.inputs import find_shards, refuse_within
from corpusveil.storage.parquet import read_table, write_table
from corpusveil.storage.tasks import ShardTask, plan
from corpusveil.text.classes import TOKENIZER_VERSION
from corpusveil.text.languages import version_of


def choose_vocabulary(made: Sequence[str], url: str, max_n: int, min_count: int) -> None:
    """Write the words that occur ``min_count`` times, most frequent first. Raises UserError for none or too many."""
    most = most_words(max_n)
    top, often, there = COUNTS.empty_table(), 0, False
    for counted in made:
        words = read_table(counted)
        there |= words.num_rows > 0
        words = words.filter(pc.greater_equal(words["count"], min_count))
        often += words.num_rows
        top = pa.concat_tables([top, words])
        if top.num_rows > 2 * most:
            top = most_frequent(top).slice(0, most)
    if not there:
        raise no_words()
    if often > most:
        raise DataError(
            f"{often:,} words occur at least {min_count} times, and n-grams of up to {max_n} words can have {most:,} "
            "different words; raise min_count or lower max_n."
        )
    if not often:
        raise DataError(f"No word occurs {min_count} times; lower min_count or count more text.")
    write_table(most_frequent(top), url)


VERSION = 1
PART_BYTES = 64 << 20
MOST_PARTS = 4096
SMALL_BYTES = 16 << 20
"""The bytes of input whose sums this process adds up: less than a second's work for up to ten million words."""


@dataclass(frozen=True, slots=True)
class CountOptions:
    """What to count: n-grams of 1 to ``max_n`` words that occur at least ``min_count`` times in the column ``text``.

    ``hyphens``: ``split`` reads *long-term* as two words, ``join`` as one. ``language``: that of the corpus, by code or
    English name. Raises UserError for values out of range.

    >>> cv.count_corpus(["public.txt"], "bigrams", cv.Local(), cv.CountOptions(max_n=2))["options"]["max_n"]
    2
    """

    max_n: int = 3
    min_count: int = 5
    text: str = "text"
    hyphens: Hyphens = "split"
    language: str | None = None

    def __post_init__(self) -> None:
        most_words(self.max_n)
        check_whole("min_count", self.min_count)
        if self.hyphens not in HYPHENS:
            raise not_a_choice("hyphens", self.hyphens, HYPHENS)


def count_corpus(
    inputs: Sequence[str],
    output: str,
    engine: Engine,
    options: CountOptions | None = None,
    *,
    rows_per_task: int | None = None,
) -> dict[str, Any]:
    """Count the n-grams of a corpus into the artifact ``output``; return its description.

    ``ngrams/*.parquet`` (``ngram: string, n: int8, count: int64``) has every n-gram that occurs often enough.
    ``rows_per_task`` (a multiple of 8,192) splits larger shards; by default those that would keep one worker busy for
    long. A repeated call resumes, and does nothing when all is done.

    Raises UserError if the input is wrong or empty, the vocabulary is too large, or nothing is left; WorkError if
    another run is in progress.

    >>> counted = cv.count_corpus(["public.txt"], "counts", cv.Local(), cv.CountOptions(min_count=2))
    """
    output = files.absolute(output)
    options = options or CountOptions()
    shards = find_shards(inputs)
    refuse_within(inputs, shards, output, "output")
    tasks = plan(shards, None, rows_per_task, lambda: engine.slots())  # noqa: PLW0108 - only asked when it matters
    number = _parts(sum(shard.size for shard in shards))
    sizes = [(shard.relative, shard.size) for shard in shards]
    version = TOKENIZER_VERSION + version_of(options.language)
    settings = [VERSION, version, options.max_n, options.text, number, sizes]
    settings += [options.hyphens, *([] if options.language is None else [options.language])]
    return make_once(
        output, "counts", mark_of(settings, options.min_count),
        lambda: _count(tasks, output, engine, options, number, settings),
        lambda earlier: refuse_changed(output, shards, earlier["inputs"]),
    )  # fmt: skip


def _count(
    tasks: Sequence[ShardTask],
    output: str,
    engine: Engine,
    options: CountOptions,
    number: int,
    settings: list[Any],
) -> dict[str, Any]:
    """Count in ``number`` parts; return the fields of the counts' description."""
    work = files.join(output, WORK)
    how = (options.hyphens, options.language)
    words = CountWords(work, mark_of(settings), options.text, number, *how)
    counted = run(words, tasks, engine)
    inputs_counted = inputs_of(tasks, counted)
    made = [url for record in counted for url in record.made]
    part_tasks = [PartTask(part, number) for part in range(number)]
    mark = mark_of(settings, [entry["digest"] for entry in inputs_counted])
    adder = Here() if sum(task.size for task in tasks if not task.piece) <= SMALL_BYTES else engine
    added = run(AddWords(work, mark, tuple(made)), part_tasks, adder)
    vocabulary = files.join(work, "vocabulary.parquet")
    choose_vocabulary([record.made for record in added], vocabulary, options.max_n, options.min_count)
    mark_kept = mark_of(mark, options.min_count)
    ngrams = CountNgrams(work, mark_kept, options.text, number, vocabulary, options.max_n, *how)
    gathered = run(ngrams, tasks, engine)
    made = [url for record in gathered for url in record.made]
    adding = AddNgrams(work, mark_kept, tuple(made), vocabulary, options.max_n, options.min_count, output)
    ended = run(adding, part_tasks, adder)
    table = read_vocabulary(vocabulary)
    unigrams = table_of(table["word"].chunks, np.ones(table.num_rows, dtype=np.int8), table["count"].to_numpy())
    write_part(output, 0, number + 1, unigrams)
    remove_others(files.join(output, "ngrams"), f"-of-{number + 1:05d}.parquet")
    return {
        "options": {"max_n": options.max_n, "min_count": options.min_count, "text": options.text},
        **ReadingOptions(*how).fields(),
        "documents": sum(record.documents for record in counted),
        "sentences": sum(record.sentences for record in gathered),
        "words": sum(record.words for record in counted),
        "different_words": sum(record.different for record in added),
        "ngrams": unigrams.num_rows + sum(record.kept for record in ended),
        "parts": number,
        "digest": mark_kept,
        "inputs": inputs_counted,
    }


def _parts(size: int) -> int:
    wanted = max(4, size // PART_BYTES)
    return min(MOST_PARTS, 1 << (int(wanted) - 1).bit_length())
