"""n-gram counts of a corpus, exact, on any engine, in bounded memory.

Four stages, each a map over tasks: count words per shard, and add them up per part; then, over the vocabulary of the
most frequent words, count n-grams per shard, and add them up per part. Partial counts are never pruned; only the final
output leaves out n-grams below the least count, and words below it cannot occur in a kept n-gram. The sums stay in
``state``, so that further shards can be added. A large shard is counted in row ranges. The caller adds up the sums of a
small corpus, in less time than a job takes to start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.choices import HYPHENS, Hyphens
from corpusveil.collocations.artifact import (
    WORK,
    ReadingOptions,
    make_once,
    read_artifact,
    reading_of,
    remove_others,
)
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
from corpusveil.errors import (
    ArtefactError,
    ConflictError,
    DataError,
    SizeError,
    VersionError,
    below_least,
    no_words,
    not_a_choice,
)
from corpusveil.storage import files
from corpusveil.storage.durable import PartTask, StageWatch, mark_of, run
from corpusveil.storage.engine import Engine, Here
from corpusveil.storage.inputs import find_shards
from corpusveil.storage.parquet import read_table, write_table
from corpusveil.storage.tasks import ShardTask, plan
from corpusveil.text.classes import TOKENIZER_VERSION
from corpusveil.text.languages import version_of


def choose_vocabulary(
    made: Sequence[str], url: str, max_n: int, min_count: int, before: str | None, words_before: Sequence[str]
) -> int:
    """Write the words of ``made``, parts of the word counts, most frequent first; return how many are left out.

    All words are used if keys can hold them, so that later shards can be added. Those of earlier counts, which have the
    vocabulary ``before`` and all words in the parts ``words_before``, keep their ids; a word that earlier shards have
    but their vocabulary lacks is left out, since its n-grams there are not known. Words left out are counted when they
    occur ``min_count`` times. Memory is that of one part and of the vocabulary.
    """
    most = most_words(max_n)
    top = _EMPTY
    old = _EMPTY["word"] if before is None else read_vocabulary(before)["word"].combine_chunks()
    old_counts = np.zeros(len(old), dtype=np.int64)
    often = left_out = 0
    for part, counted in enumerate(made):
        words = read_table(counted, _EMPTY.column_names)
        if before is not None:
            at = pc.index_in(words["word"], value_set=old)
            kept = pc.is_valid(at)
            old_counts[at.filter(kept).to_numpy()] = words["count"].filter(kept).to_numpy()
            words = words.filter(pc.invert(kept))
            seen = pc.is_in(words["word"], value_set=read_table(words_before[part], ["word"])["word"].combine_chunks())
            left_out += _often(words.filter(seen), min_count)
            words = words.filter(pc.invert(seen))
        often += _often(words, min_count)
        top = pa.concat_tables([top, words])
        if top.num_rows > 2 * most:
            top = _most_frequent(top, most)
    often += int(np.count_nonzero(old_counts >= min_count))
    chosen = pa.concat_tables([pa.table({"word": old, "count": old_counts}), _most_frequent(top, most)]).slice(0, most)
    if not chosen.num_rows:
        raise no_words()
    if often > most:
        raise SizeError(
            f"{often:,} words occur at least {min_count} times, and n-grams of up to {max_n} words can have {most:,} "
            "different words; raise min_count or lower max_n."
        )
    if not often:
        raise DataError(f"No word occurs {min_count} times; lower min_count or count more text.")
    write_table(chosen, url)
    return left_out


_EMPTY = pa.table({"word": pa.array([], pa.large_string()), "count": pa.array([], pa.int64())})


def _often(words: pa.Table, min_count: int) -> int:
    return int(np.count_nonzero(words["count"].to_numpy() >= min_count))


def _most_frequent(words: pa.Table, most: int) -> pa.Table:
    return words.take(pc.sort_indices(words, [("count", "descending"), ("word", "ascending")])).slice(0, most)


VERSION = 3
PART_BYTES = 64 << 20
MOST_PARTS = 4096
SMALL_BYTES = 16 << 20
"""The bytes of input whose sums this process adds up: less than a second's work for up to ten million words."""


@dataclass(frozen=True, slots=True)
class CountOptions:
    """Options of counting: n-grams of 1 to ``max_n`` words that occur at least ``min_count`` times in column ``text``.

    ``hyphens`` says whether a hyphen between two letters splits words or joins them, ``language`` how text is read.
    """

    max_n: int = 3
    min_count: int = 5
    text: str = "text"
    hyphens: Hyphens = "split"
    language: str | None = None

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
    rows_per_task: int | None = None,
    watch: StageWatch | None = None,
) -> dict[str, Any]:
    """Count the n-grams of a corpus into the artefact ``output``; return its description.

    ``ngrams/*.parquet`` (``ngram: string, n: int8, count: int64``) holds every n-gram that occurs at least
    ``min_count`` times.

    ``add_to`` names counts that the corpus is added to. These counts stay as they are, and their ``max_n``, column and
    least count apply. ``rows_per_task`` (a multiple of 8,192) splits larger shards; without it, shards are split that
    would keep one of the engine's workers busy for long. A repeated call resumes after an interruption, and does
    nothing when all is done.

    Raises UserError if the input is wrong, empty or counted already, if the vocabulary is larger than keys can hold, or
    if nothing is left; WorkError if another run is in progress.
    """
    output = files.absolute(output)
    add_to = None if add_to is None else files.absolute(add_to)
    before = None if add_to is None else read_artifact(add_to, "counts")
    options = options or CountOptions()
    if add_to is not None and before is not None:
        reading = reading_of(add_to, before)
        if reading != ReadingOptions.by(reading.hyphens, reading.language):
            raise VersionError(
                f"{add_to}: these counts were made by an earlier version, which ended n-grams at abbreviations or "
                "hyphens; count everything again."
            )
        options = CountOptions(**before["options"], hyphens=reading.hyphens, language=reading.language)
    shards = find_shards(inputs)
    tasks = plan(shards, None, rows_per_task, lambda: engine.slots())  # noqa: PLW0108 - only asked when it matters
    number = before["parts"] if before else _parts(sum(shard.size for shard in shards))
    sizes = [(shard.relative, shard.size) for shard in shards]
    version = TOKENIZER_VERSION + version_of(options.language)
    settings = [VERSION, version, options.max_n, options.text, number, before and before["digest"], sizes]
    settings += [options.hyphens, *([] if options.language is None else [options.language])]
    return make_once(
        output, "counts", mark_of(settings, options.min_count),
        lambda: _count(tasks, output, engine, options, number, settings, before, add_to, watch),
        lambda earlier: refuse_changed(output, shards, earlier["inputs"][-len(shards) :]),
    )  # fmt: skip


def _count(
    tasks: Sequence[ShardTask],
    output: str,
    engine: Engine,
    options: CountOptions,
    number: int,
    settings: list[Any],
    before: dict[str, Any] | None,
    add_to: str | None,
    watch: StageWatch | None,
) -> dict[str, Any]:
    """Count in ``number`` parts; return the fields of the counts' description."""
    work, state = files.join(output, WORK), files.join(output, "state")
    how = (options.hyphens, options.language)
    words = CountWords(work, mark_of(settings), options.text, number, *how)
    counted = run(words, tasks, engine, watch)
    inputs_counted = inputs_of(tasks, counted)
    _refuse_counted(before, inputs_counted)
    made = [url for record in counted for url in record.made] + _state(add_to, "words", before)
    part_tasks = [PartTask(part, number) for part in range(number)]
    mark = mark_of(settings, [entry["digest"] for entry in inputs_counted])
    adding_words = AddWords(work, mark, tuple(made), files.join(state, "words"))
    small = add_to is None and sum(task.size for task in tasks if not task.piece) <= SMALL_BYTES
    adder = Here() if small else engine
    added = run(adding_words, part_tasks, adder, watch)
    vocabulary = files.join(state, "vocabulary.parquet")
    earlier = None if add_to is None else files.join(add_to, "state", "vocabulary.parquet")
    words_made, words_before = [record.made for record in added], _state(add_to, "words", before)
    left_out = choose_vocabulary(words_made, vocabulary, options.max_n, options.min_count, earlier, words_before)
    ngrams = CountNgrams(work, mark, options.text, number, vocabulary, options.max_n, *how)
    gathered = run(ngrams, tasks, engine, watch)
    made = [url for record in gathered for url in record.made] + _state(add_to, "ngrams", before)
    mark_kept = mark_of(mark, options.min_count)
    added_state = files.join(state, "ngrams")
    adding = AddNgrams(work, mark_kept, tuple(made), added_state, vocabulary, options.max_n, options.min_count, output)
    ended = run(adding, part_tasks, adder, watch)
    table = read_vocabulary(vocabulary)
    table = table.filter(pc.greater_equal(table["count"], options.min_count))
    unigrams = table_of(table["word"].chunks, np.ones(table.num_rows, dtype=np.int8), table["count"].to_numpy())
    write_part(output, 0, number + 1, unigrams)
    remove_others(files.join(output, "ngrams"), f"-of-{number + 1:05d}.parquet")
    for name in ("words", "ngrams"):
        remove_others(files.join(state, name), f"-of-{number:05d}.parquet")
    totals = {
        "documents": sum(record.documents for record in counted),
        "sentences": sum(record.sentences for record in gathered),
        "words": sum(record.words for record in counted),
    }
    for name in totals:
        totals[name] += before[name] if before else 0
    return {
        "options": {"max_n": options.max_n, "min_count": options.min_count, "text": options.text},
        **ReadingOptions.by(*how).fields(),
        **totals,
        "different_words": sum(record.different for record in added),
        "ngrams": unigrams.num_rows + sum(record.kept for record in ended),
        "words_left_out": left_out,
        "parts": number,
        "digest": mark_kept,
        "inputs": [*(before["inputs"] if before else []), *inputs_counted],
    }


def _parts(size: int) -> int:
    """Return the number of parts of the counts: a power of two."""
    wanted = max(4, size // PART_BYTES)
    return min(MOST_PARTS, 1 << (int(wanted) - 1).bit_length())


def _refuse_counted(before: dict[str, Any] | None, inputs: Sequence[dict[str, str]]) -> None:
    known = {entry["digest"]: entry["path"] for entry in before["inputs"]} if before else {}
    for entry in inputs:
        if entry["digest"] in known:
            raise ConflictError(
                f"{entry['path']}: this shard is already in the counts, as {known[entry['digest']]}; leave it out."
            )


def _state(url: str | None, folder: str, before: dict[str, Any] | None) -> list[str]:
    if url is None or before is None:
        return []
    address = files.join(url, "state", folder)
    addresses = [files.join(address, name) for name in files.listing(address)]
    if len(addresses) != before["parts"]:
        raise ArtefactError(f"{url}: the state that shards are added to is incomplete; count everything again.")
    return addresses
