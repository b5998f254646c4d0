"""From counts to a language model (``model.py``), in memory; and that of an installed space, by name."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.arrays import Int32
from corpusveil.collocations.artifact import ReadingOptions, make_once, read_artifact, reading_of
from corpusveil.collocations.collocation_table import most_words
from corpusveil.errors import (
    ArtifactError,
    DataError,
    MissingError,
    SettingError,
    check_whole,
    missing_parts,
)
from corpusveil.ownership import refuse_others
from corpusveil.spaces import Space
from corpusveil.spaces.installed import located, name_of
from corpusveil.spaces.vocabulary import Vocabulary, write_vocabulary
from corpusveil.storage import files
from corpusveil.storage.artifacts import is_artifact
from corpusveil.storage.durable import mark_of
from corpusveil.storage.parquet import read_table, sound
from corpusveil.waiting import waiting
from corpusveil_evaluate.readers.ngrams.fixed import ONE, to_fixed
from corpusveil_evaluate.readers.ngrams.lookup import enter, enter_thirds, fill, logs_of, regions_of
from corpusveil_evaluate.readers.ngrams.model import (
    VOCABULARY,
    Arrays,
    LanguageModel,
    digest_of,
    find,
    open_model,
    sums_of,
)
from corpusveil_evaluate.readers.ngrams.smoothing import (
    ORDER,
    Discounts,
    Level,
    Range,
    Sums,
    Words,
    keys_of,
    level,
    words_of,
)

VERSION = 1


def build_model(counts: str, output: str, min_count: int = 1) -> dict[str, Any]:
    """Make a language model of counts in the folder ``output``, in memory; return its description.

    N-grams that occur less often than ``min_count`` are left out. A repeated call does nothing. Raises UserError if
    counts of trigrams are missing or damaged, or if another call made the output; WorkError if another run is in
    progress.
    """
    output, counts = files.absolute(output), files.absolute(counts)
    digest = _trigram_counts(counts)["digest"]
    check_whole("min_count", min_count)
    mark = mark_of(VERSION, digest, min_count)

    def make_artifact() -> dict[str, Any]:
        model = model_of_counts(counts, min_count)
        write_vocabulary(model.vocabulary, files.join(output, VOCABULARY))
        for name, array in model.arrays._asdict().items():
            with files.open_write(files.join(output, f"{name}.npy")) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
        return {
            "counts": digest, "digest": model.digest, "least": model.least, **model.reading.fields(),
            "words": len(model), "bigrams": model.arrays.bigrams.size // 3, "trigrams": model.arrays.slots3.size // 2,
        }  # fmt: skip

    return make_once(output, "model", mark, make_artifact)


def load_model(url: str | os.PathLike[str], *, verify: bool = True) -> LanguageModel:
    """Open the model that ``evaluate model`` saved at ``url``, or that of an installed space, such as ``en``.

    A package ships counts, of which its model is made once. Raises UserError if there is no model, or if it is damaged.
    """
    address = files.as_text(url)
    counts = located(address, "counts")
    if counts == address:
        return open_model(address, verify=verify)
    made = Path(counts).with_name("model")
    with open(made.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_artifact(str(made)):
            with waiting("making the language model, once"):
                build_model(counts, str(made))
            made.chmod(0o700)  # whatever the umask
    refuse_others(made)
    return open_model(str(made), verify=verify)


def model_of_space(space: Space) -> LanguageModel | None:
    """Return the language model of the package that a space is from, which every reader has; None without one."""
    name = name_of(space.url)
    try:
        return None if name is None else load_model(name)
    except MissingError:
        return None


def with_bigrams(words: Words, made: Level) -> Arrays:
    """Return the arrays of a model that still lack the trigrams themselves."""
    bigrams, trigrams = made.bigrams.size, made.words.size
    if trigrams >= 1 << 31:
        raise DataError(f"{trigrams:,} trigrams are more than a model can hold; raise min_count.")
    if bigrams >= 1 << 31:
        raise DataError(f"{bigrams:,} pairs of words are more than a model can hold; raise min_count.")
    regions = regions_of(words.begin)
    slots, records = np.zeros(int(regions[-1]), np.uint64), np.zeros(3 * bigrams, np.uint64)
    logs = to_fixed(words.bigrams(made.bigrams, made.before))
    enter(*words_of(made.bigrams), logs, 0, regions, slots)
    fill(logs, to_fixed(made.left), made.starts, made.words, 0, 0, records)
    return Arrays(
        to_fixed(words.first), to_fixed(words.start), to_fixed(words.left), regions, slots, records,
        np.empty(0, np.uint64),
    )  # fmt: skip


def thirds_of(arrays: Arrays, made: Level) -> npt.NDArray[np.uint64]:
    """Return the slots of the trigrams, uint64."""
    slots = np.zeros(2 * made.words.size, np.uint64)
    if not slots.size:
        return slots
    second = words_of(made.bigrams)[1]
    bigram = np.repeat(np.arange(made.bigrams.size), np.diff(made.starts))
    last = np.ascontiguousarray(second[bigram])
    shorter = np.exp(logs_of(find(last, made.words, arrays), arrays.bigrams) / ONE)
    logs = to_fixed(made.shares + made.left[bigram] * shorter)
    enter_thirds(bigram, made.words, logs, 0, arrays.bigrams, slots)
    return slots


def range_of(two: Int32, counts2: npt.NDArray[np.int64], three: Int32, counts3: npt.NDArray[np.int64]) -> Range:
    """Return bigrams int32 [B, 2] and trigrams int32 [T, 3], each once in any order, as one range."""
    keys, contexts = keys_of(two[:, 0], two[:, 1]), keys_of(three[:, 0], three[:, 1])
    suffixes = keys_of(three[:, 1], three[:, 2])
    second, third, last = np.argsort(keys), np.lexsort((three[:, 2], contexts)), np.argsort(suffixes, kind="stable")
    return Range(
        keys[second], counts2[second], contexts[third], three[third, 2], counts3[third], suffixes[last], counts3[last]
    )  # fmt: skip


def model_of(vocabulary: Vocabulary, counted: Range, least: int, tokens: int, reading: ReadingOptions) -> LanguageModel:
    """Return a model in memory: of words, the most frequent first, and all n-grams that occur ``least`` times.

    ``tokens`` is the number of all words, including unknown words.
    """
    made = level(counted, Discounts.from_counts(counted.counts3).value, complete=least == 1)
    sums = Sums.from_counts(made, counted.counts2, len(vocabulary))
    words = Words.from_counts(sums, Discounts.from_counts(made.before).value, _counted(vocabulary), tokens)
    arrays = with_bigrams(words, made)
    arrays = arrays._replace(slots3=thirds_of(arrays, made))
    return LanguageModel(vocabulary, arrays, digest_of(vocabulary, sums_of(arrays), reading), least, reading)


def model_of_counts(counts: str, min_count: int = 1) -> LanguageModel:
    """Return the model of the output of ``corpusveil count``, in memory. Raises UserError if trigrams are missing."""
    description = _trigram_counts(counts)
    least = max(min_count, description["options"]["min_count"])
    vocabulary = _vocabulary(counts, least)
    folder = files.join(counts, "ngrams")
    table = pa.concat_tables([counts_in(files.join(folder, name)) for name in files.listing(folder)])
    names = pa.array(vocabulary.words, pa.string())
    two, three = (ids_of(counts, table, names, n, least) for n in (2, 3))
    return model_of(vocabulary, range_of(*two, *three), least, description["words"], reading_of(counts, description))


def _trigram_counts(counts: str) -> dict[str, Any]:
    """Return the description of complete counts with trigrams."""
    description = read_artifact(counts, "counts")
    most, there = description["options"]["max_n"], len(files.listing(files.join(counts, "ngrams")))
    if most < ORDER:
        raise SettingError(f"{counts}: these were counted with max_n {most}, and {ORDER} is needed; count again.")
    if there != description["parts"] + 1:
        raise missing_parts(counts, there, description["parts"] + 1)
    return description


def _vocabulary(counts: str, least: int) -> Vocabulary:
    """Return the words of counts, the most frequent first; ties in alphabetical order."""
    folder = files.join(counts, "ngrams")
    table = counts_in(files.join(folder, files.listing(folder)[0]))
    words = table.filter(pc.and_(pc.equal(table["n"], 1), pc.greater_equal(table["count"], least)))
    words = words.sort_by([("count", "descending"), ("ngram", "ascending")])
    if not words.num_rows:
        raise DataError(f"{counts}: no word occurs {least} times, so there is nothing to predict; count more text.")
    if words.num_rows > most_words(ORDER):
        raise DataError(f"{counts}: {words.num_rows:,} words are more than a model can hold; raise min_count.")
    return Vocabulary.from_words(words["ngram"].to_pylist(), words["count"].to_numpy())


def _counted(vocabulary: Vocabulary) -> npt.NDArray[np.int64]:
    return np.zeros(len(vocabulary), np.int64) if vocabulary.counts is None else vocabulary.counts


def ids_of(url: str, table: pa.Table, names: pa.Array, n: int, least: int) -> tuple[Any, npt.NDArray[np.int64]]:
    """Return the n-grams of n words that occur often enough, int32 [K, n], and their counts."""
    table = table.filter(pc.and_(pc.equal(table["n"], n), pc.greater_equal(table["count"], least)))
    lists = pc.split_pattern(table["ngram"].combine_chunks(), " ")
    places = pc.index_in(lists.flatten(), value_set=names)
    if places.null_count or len(places) != n * table.num_rows:
        raise ArtifactError(
            f"{url}: these counts are damaged, since an n-gram has a word that is not counted; count again."
        )
    return places.to_numpy().astype(np.int32).reshape(-1, n), table["count"].to_numpy().astype(np.int64)


def counts_in(url: str) -> pa.Table:
    with sound(f"{url}: these counts could not be read; count again."):
        return read_table(url, ["ngram", "n", "count"])
