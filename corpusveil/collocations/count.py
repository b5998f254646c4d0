"""n-gram counts of a corpus, exact, on any engine, in bounded memory.

Four stages, each a map over tasks: count words a shard, add them up a part; then, over the vocabulary of the most
frequent words, count n-grams a shard, add them up a part. Partial counts are never pruned; only what is written at the
end leaves out n-grams below the least count, and words below it can't occur in a kept one. What was added up stays in
``state``, so that further shards can be added to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from corpusveil.choices import HYPHENS, Hyphens
from corpusveil.collocations.artifact import WORK, claimed, read_artifact, reading_of, remove_others, write_artifact
from corpusveil.collocations.corpus_shards import inputs_of, refuse_changed
from corpusveil.collocations.counted_numbers import choose_numbers
from corpusveil.collocations.counted_words import Earlier, choose_vocabulary, read_vocabulary
from corpusveil.collocations.counting_stages import (
    NUMBERS_MADE,
    AddNgrams,
    AddNumbers,
    AddWords,
    CountNgrams,
    CountWords,
    table_of,
    write_part,
)
from corpusveil.collocations.ngrams import most_words
from corpusveil.errors import ArtefactError, ConflictError, VersionError, below_least, not_a_choice
from corpusveil.spaces.number_counts import NUMBERS, write_numbers
from corpusveil.storage import files
from corpusveil.storage.durable import PartTask, Watch, mark_of, run
from corpusveil.storage.engine import Engine
from corpusveil.storage.inputs import find_shards
from corpusveil.storage.tasks import ShardTask, plan
from corpusveil.text.classes import TOKENIZER_VERSION

VERSION = 2
PART_BYTES = 64 << 20
MOST_PARTS = 4096


@dataclass(frozen=True, slots=True)
class CountOptions:
    """What is counted: n-grams of 1 to ``max_n`` words that occur ``min_count`` times at least, in column ``text``.

    ``hyphens`` between two letters part words, or join them to one.
    """

    max_n: int = 3
    min_count: int = 5
    text: str = "text"
    hyphens: Hyphens = "split"

    def __post_init__(self) -> None:
        most_words(self.max_n)
        if self.min_count < 1:
            raise below_least("min_count", self.min_count, 1)
        if self.hyphens not in HYPHENS:
            raise not_a_choice("hyphens", self.hyphens, HYPHENS)


def count_corpus(
    inputs: Sequence[str],
    output: str,
    engine: Engine,
    options: CountOptions | None = None,
    *,
    add_to: str | None = None,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Count the n-grams of a corpus into the artefact ``output``; return its description.

    ``ngrams/*.parquet`` (``ngram: string, n: int8, count: int64``) holds every n-gram that occurs ``min_count`` times
    at least, ``numbers.parquet`` the most frequent numbers by their shapes. ``add_to`` names counts that the corpus is
    added to, which stay as they are; their ``max_n``, column and least count stand. Run again after an interruption it
    goes on where it stopped, and run again when it is finished it does nothing. Raises UserError when the input is
    wrong, empty or counted already, when the vocabulary is larger than keys can hold, and when nothing is left;
    WorkError when another run is in progress.
    """
    output = files.absolute(output)
    add_to = None if add_to is None else files.absolute(add_to)
    before = None if add_to is None else read_artifact(add_to, "counts")
    options = options or CountOptions()
    if add_to is not None and before is not None:
        hyphens, over_stops = reading_of(add_to, before)
        if not over_stops:
            raise VersionError(
                f"{add_to}: these counts were made by an earlier version, which ended n-grams at abbreviations; "
                "count everything again."
            )
        options = CountOptions(**before["options"], hyphens=hyphens)
    shards = find_shards(inputs)
    tasks = plan(shards, None, None)
    number = before["parts"] if before else _parts(sum(shard.size for shard in shards))
    sizes = [(shard.relative, shard.size) for shard in shards]
    settings = [VERSION, TOKENIZER_VERSION, options.max_n, options.text, number, before and before["digest"], sizes]
    settings.append(options.hyphens)
    with claimed(output, "counts", mark_of(settings, options.min_count)) as told:
        if told is None:
            return _count(tasks, output, engine, options, number, settings, before, add_to, watch)
        refuse_changed(output, tasks, told["inputs"][-len(tasks) :])
        return told


def _count(
    tasks: Sequence[ShardTask],
    output: str,
    engine: Engine,
    options: CountOptions,
    number: int,
    settings: list[Any],
    before: dict[str, Any] | None,
    add_to: str | None,
    watch: Watch | None,
) -> dict[str, Any]:
    """Count in ``number`` parts, and describe what was counted."""
    work, state = files.join(output, WORK), files.join(output, "state")
    words = CountWords(work, mark_of(settings, "and numbers"), options.text, number, options.hyphens)
    counted = run(words, tasks, engine, watch)
    inputs_counted = inputs_of(tasks, counted)
    _refuse_counted(before, inputs_counted)
    shards_made = [url for told in counted for url in told.made]
    made = [url for url in shards_made if not _of_numbers(url)] + _state(add_to, "words", before)
    part_tasks = [PartTask(part, number) for part in range(number)]
    mark = mark_of(settings, [told.digest for told in counted])
    added = run(AddWords(work, mark, tuple(made), files.join(state, "words")), part_tasks, engine, watch)
    vocabulary = files.join(state, "vocabulary.parquet")
    numbers_made = [url for url in shards_made if _of_numbers(url)]
    _count_numbers(work, mark, numbers_made, output, part_tasks, engine, before, add_to, watch)
    earlier = None
    if add_to is not None:
        earlier = Earlier(files.join(add_to, "state", "vocabulary.parquet"), _state(add_to, "words", before))
    left_out = choose_vocabulary([told.made for told in added], vocabulary, options.max_n, options.min_count, earlier)
    ngrams = CountNgrams(work, mark, options.text, number, vocabulary, options.max_n, options.hyphens)
    gathered = run(ngrams, tasks, engine, watch)
    made = [url for told in gathered for url in told.made] + _state(add_to, "ngrams", before)
    mark_kept = mark_of(mark, options.min_count)
    added_state = files.join(state, "ngrams")
    adding = AddNgrams(work, mark_kept, tuple(made), added_state, vocabulary, options.max_n, options.min_count, output)
    ended = run(adding, part_tasks, engine, watch)
    kept = _write_unigrams(vocabulary, output, options, number)
    remove_others(files.join(output, "ngrams"), f"-of-{number + 1:05d}.parquet")
    for name in ("words", "numbers", "ngrams"):
        remove_others(files.join(state, name), f"-of-{number:05d}.parquet")
    totals = {
        "documents": sum(told.documents for told in counted),
        "sentences": sum(told.sentences for told in gathered),
        "words": sum(told.words for told in counted),
    }
    for name in totals:
        totals[name] += before[name] if before else 0
    description = {
        "options": {"max_n": options.max_n, "min_count": options.min_count, "text": options.text},
        "hyphens": options.hyphens,
        "over_stops": True,
        **totals,
        "different_words": sum(told.different for told in added),
        "ngrams": kept + sum(told.kept for told in ended),
        "words_left_out": left_out,
        "parts": number,
        "digest": mark_kept,
        "inputs": [*(before["inputs"] if before else []), *inputs_counted],
    }
    return write_artifact(output, "counts", mark_of(settings, options.min_count), description)


def _of_numbers(url: str) -> bool:
    return f"-{NUMBERS_MADE}" in url.rsplit("/", 1)[-1]


def _count_numbers(
    work: str,
    mark: str,
    made: list[str],
    output: str,
    tasks: Sequence[PartTask],
    engine: Engine,
    before: dict[str, Any] | None,
    add_to: str | None,
    watch: Watch | None,
) -> None:
    """Add up the numbers and choose those that are kept; none where counts of before these are added to."""
    state = files.join(output, "state", "numbers")
    if add_to is not None:
        if not files.exists(files.join(add_to, NUMBERS)):
            return
        made = made + _state(add_to, "numbers", before)
    added = run(AddNumbers(work, mark, tuple(made), state), tasks, engine, watch)
    write_numbers(choose_numbers([told.made for told in added]), files.join(output, NUMBERS))


def _parts(size: int) -> int:
    """Return into how many parts counts are parted: a power of two."""
    wanted = max(4, size // PART_BYTES)
    return min(MOST_PARTS, 1 << (int(wanted) - 1).bit_length())


def _refuse_counted(before: dict[str, Any] | None, inputs: Sequence[dict[str, str]]) -> None:
    known = {one["digest"]: one["path"] for one in before["inputs"]} if before else {}
    for one in inputs:
        if one["digest"] in known:
            raise ConflictError(
                f"{one['path']}: this shard is already in the counts, as {known[one['digest']]}; leave it out."
            )


def _state(url: str | None, folder: str, before: dict[str, Any] | None) -> list[str]:
    if url is None or before is None:
        return []
    address = files.join(url, "state", folder)
    found = [files.join(address, name) for name in files.listing(address)]
    if len(found) != before["parts"]:
        raise ArtefactError(f"{url}: the state that shards are added to is incomplete; count everything again.")
    return found


def _write_unigrams(vocabulary: str, output: str, options: CountOptions, number: int) -> int:
    table = read_vocabulary(vocabulary)
    table = table.filter(pc.greater_equal(table["count"], options.min_count))
    lengths = np.ones(table.num_rows, dtype=np.int8)
    write_part(output, 0, number + 1, table_of(table["word"].chunks, lengths, table["count"].to_numpy()))
    return int(table.num_rows)
