"""From counts to a language model (``model.py``), on any engine, in bounded memory.

Two stages, each a map over tasks: every part of the counts is turned into keys and split by key ranges, trigrams once
by their first two words and once by their last two; then every range is smoothed separately. The driver joins the
ranges one by one: it holds the data of words and bigrams (some 60 bytes each), and one range of the trigrams.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.arrays import Int32
from corpusveil.collocations.artifact import (
    WORK,
    ReadingOptions,
    make_once,
    read_artifact,
    reading_of,
)
from corpusveil.collocations.collocation_table import most_words
from corpusveil.errors import DataError, MismatchError, SizeError, below_least, missing_parts
from corpusveil.language.fixed import ONE, to_fixed
from corpusveil.language.lookup import enter, enter_thirds, fill, logs_of, regions_of
from corpusveil.language.model import (
    VOCABULARY,
    Arrays,
    LanguageModel,
    digest_of,
    find,
    sums_of,
)
from corpusveil.language.model_stages import SUMS, Gather, Smooth, counts_in, ids_of
from corpusveil.language.sample import NAME, read_sample
from corpusveil.language.smoothing import (
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
from corpusveil.spaces.vocabulary import Vocabulary, write_vocabulary
from corpusveil.storage import files
from corpusveil.storage.durable import PartTask, StageWatch, mark_of, run
from corpusveil.storage.engine import Engine, Here
from corpusveil.storage.parquet import read_table, sound

VERSION = 1
RANGE_NGRAMS = 4 << 20
"""N-grams of one range: about half a gigabyte while it is smoothed."""
MOST_RANGES = 4096


def build_model(
    counts: str, output: str, engine: Engine, min_count: int = 1, *, sample: str | None = None,
    watch: StageWatch | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Make a language model of counts in the folder ``output``; return its description.

    N-grams that occur less often than ``min_count`` are left out. ``sample`` is a file of texts that no count has read
    (``sample.py``); the model keeps a copy.

    A repeated call resumes after an interruption, and does nothing when all is done. Raises UserError if counts of
    trigrams are missing or damaged, or if another call made the output; WorkError if another run is in progress.
    """
    output, counts = files.absolute(output), files.absolute(counts)
    description = _trigram_counts(counts)
    if min_count < 1:
        raise below_least("min_count", min_count, 1)
    least = max(min_count, description["options"]["min_count"])
    kept = {} if sample is None else _sample(sample)
    mark = mark_of(VERSION, description["digest"], least, *(hashlib.sha256(data).hexdigest() for data in kept.values()))

    def make() -> dict[str, Any]:
        made = _build(counts, description, output, engine, least, mark, watch)
        for name, data in kept.items():
            files.write_bytes(files.join(output, name), data)
            made["sample"] = hashlib.sha256(data).hexdigest()
        return made

    return make_once(output, "model", mark, make)


def _sample(url: str) -> dict[str, bytes]:
    """Return the name and content of a sample, which is sound."""
    data = files.read_bytes(url)
    if not read_sample(data, url).like:
        raise DataError(f"{url}: this sample has no text of a register that was counted; add texts, held out of these.")
    return {NAME: data}


def model_of_archive(folder: Path, output: Path) -> None:
    """Make the model of an installed archive, which has counts in its place, and perhaps figures of a sample."""
    build_model(str(folder / "counts"), str(output), Here())


def _build(
    counts: str, of: dict[str, Any], output: str, engine: Engine, least: int, mark: str,
    watch: StageWatch | None,
) -> dict[str, Any]:  # fmt: skip
    """Write the model's files; return the fields of its description."""
    work = files.join(output, WORK)
    vocabulary = _vocabulary(counts, least)
    write_vocabulary(vocabulary, files.join(output, VOCABULARY))
    ranges = min(MOST_RANGES, 1 << max(0, int(of["ngrams"]) // RANGE_NGRAMS).bit_length())
    gather = Gather(work, mark, counts, files.join(output, VOCABULARY), least, ranges)
    gathered = run(gather, [PartTask(part, of["parts"] + 1) for part in range(1, of["parts"] + 1)], engine, watch)
    threes = sum((Discounts(record.once, record.twice) for record in gathered), Discounts())
    keys = tuple(url for record in gathered for url in record.made)
    smooth = Smooth(work, mark, keys, len(vocabulary), threes.value, least == 1)
    levels = run(smooth, [PartTask(part, ranges) for part in range(ranges)], engine, watch)
    twos = sum((Discounts(record.once, record.twice) for record in levels), Discounts())
    sums = _sums([record.made[2] for record in levels], len(vocabulary))
    words = Words.of(sums, twos.value, _counted(vocabulary), of["words"])
    made = [(record.made[0], record.made[1]) for record in levels]
    sizes = sum(record.bigrams for record in levels), sum(record.trigrams for record in levels)
    arrays = with_bigrams(words, (_level(*urls) for urls in made), *sizes)
    checked = {}
    for name, array in arrays._asdict().items():
        if name != "slots3":
            checked[name] = _write(files.join(output, f"{name}.npy"), array.size, array.dtype, [array])
    thirds = _thirds(arrays, made)
    checked["slots3"] = _write(files.join(output, "slots3.npy"), 2 * sizes[1], "<u8", thirds)
    reading = reading_of(counts, of)
    return {
        "counts": of["digest"],
        "digest": digest_of(vocabulary, checked, reading),
        "least": least,
        **reading.fields(),
        "words": len(vocabulary),
        "bigrams": sizes[0],
        "trigrams": sizes[1],
    }


def with_bigrams(words: Words, levels: Iterable[Level], bigrams: int, trigrams: int) -> Arrays:
    """Join ranges, in their order, to the arrays of a model that still lack the trigrams themselves."""
    if trigrams >= 1 << 31:
        raise SizeError(f"{trigrams:,} trigrams are more than a model can hold; raise min_count.")
    if bigrams >= 1 << 31:
        raise SizeError(f"{bigrams:,} pairs of words are more than a model can hold; raise min_count.")
    regions = regions_of(words.begin)
    slots, records = np.zeros(int(regions[-1]), np.uint64), np.zeros(3 * bigrams, np.uint64)
    at, before = 0, 0
    for made in levels:
        logs = to_fixed(words.bigrams(made.bigrams, made.before))
        enter(*words_of(made.bigrams), logs, at, regions, slots)
        fill(logs, to_fixed(made.left), made.starts, made.words, at, before, records)
        at, before = at + made.bigrams.size, before + made.words.size
    return Arrays(
        to_fixed(words.first), to_fixed(words.start), to_fixed(words.left), regions, slots, records,
        np.empty(0, np.uint64),
    )  # fmt: skip


def thirds_of(arrays: Arrays, made: Level, first: int = 0) -> npt.NDArray[np.uint64]:
    """Return the slots of the trigrams of a range, uint64; ``first`` is the entry of its first bigram."""
    slots = np.zeros(2 * made.words.size, np.uint64)
    if not slots.size:
        return slots
    second = words_of(made.bigrams)[1]
    bigram = np.repeat(np.arange(made.bigrams.size), np.diff(made.starts))
    last = np.ascontiguousarray(second[bigram])
    shorter = np.exp(logs_of(find(last, made.words, arrays), arrays.bigrams) / ONE)
    logs = to_fixed(made.shares + made.left[bigram] * shorter)
    enter_thirds(first + bigram, made.words, logs, first, arrays.bigrams, slots)
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
    made = level(counted, Discounts.of(counted.counts3).value, complete=least == 1)
    sums = Sums.of(made, counted.counts2, len(vocabulary))
    words = Words.of(sums, Discounts.of(made.before).value, _counted(vocabulary), tokens)
    arrays = with_bigrams(words, [made], made.bigrams.size, made.words.size)
    arrays = arrays._replace(slots3=thirds_of(arrays, made))
    return LanguageModel(vocabulary, arrays, digest_of(vocabulary, sums_of(arrays), reading), least, reading)


def model_of_counts(counts: str) -> LanguageModel:
    """Return the model of the output of ``corpusveil count``, in memory. Raises UserError if trigrams are missing."""
    description = _trigram_counts(counts)
    least = description["options"]["min_count"]
    vocabulary = _vocabulary(counts, least)
    folder = files.join(counts, "ngrams")
    table = pa.concat_tables([counts_in(files.join(folder, name)) for name in files.listing(folder)])
    names = pa.array(vocabulary.words, pa.string())
    two, three = (ids_of(counts, table, names, n, least) for n in (2, 3))
    return model_of(vocabulary, range_of(*two, *three), least, description["words"], reading_of(counts, description))


def _thirds(arrays: Arrays, made: Sequence[tuple[str, str]]) -> Iterator[npt.NDArray[np.uint64]]:
    first = 0
    for urls in made:
        smoothed = _level(*urls)
        yield thirds_of(arrays, smoothed, first)
        first += smoothed.bigrams.size


def _trigram_counts(counts: str) -> dict[str, Any]:
    """Return the description of complete counts with trigrams."""
    description = read_artifact(counts, "counts")
    most, there = description["options"]["max_n"], len(files.listing(files.join(counts, "ngrams")))
    if most < ORDER:
        raise MismatchError(f"{counts}: these were counted with max_n {most}, and {ORDER} is needed; count again.")
    if there != description["parts"] + 1:
        raise missing_parts(counts, there, description["parts"] + 1)
    return description


def _write(url: str, size: int, dtype: Any, pieces: Iterable[npt.NDArray[Any]]) -> str:
    """Write an array of ``size`` elements that comes in pieces; return the SHA-256 of its elements."""
    sha = hashlib.sha256()
    header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (size,)}
    with files.open_write(url) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for piece in pieces:
            data = np.ascontiguousarray(piece, np.dtype(dtype)).tobytes()
            sha.update(data)
            file.write(data)
    return sha.hexdigest()


def _level(bigrams: str, trigrams: str) -> Level:
    two, three = _read(bigrams), _read(trigrams)
    starts = np.concatenate([[0], np.cumsum(two["after"].to_numpy())])
    keys, before, left = (two[name].to_numpy() for name in ("key", "before", "left"))
    return Level(keys, before, left, starts, three["word"].to_numpy(), three["share"].to_numpy())


def _sums(urls: Sequence[str], size: int) -> Sums:
    totals = {name: np.zeros(size, np.int64) for name in SUMS}
    for url in urls:
        table = _read(url)
        for name, total in totals.items():
            total[table["word"].to_numpy()] += table[name].to_numpy()
    return Sums(**totals)


def _vocabulary(counts: str, least: int) -> Vocabulary:
    """Return the words of counts, the most frequent first; ties in alphabetical order."""
    folder = files.join(counts, "ngrams")
    table = counts_in(files.join(folder, files.listing(folder)[0]))
    words = table.filter(pc.and_(pc.equal(table["n"], 1), pc.greater_equal(table["count"], least)))
    words = words.sort_by([("count", "descending"), ("ngram", "ascending")])
    if not words.num_rows:
        raise DataError(f"{counts}: no word occurs {least} times, so there is nothing to predict; count more text.")
    if words.num_rows > most_words(ORDER):
        raise SizeError(f"{counts}: {words.num_rows:,} words are more than a model can hold; raise min_count.")
    return Vocabulary.from_words(words["ngram"].to_pylist(), words["count"].to_numpy())


def _counted(vocabulary: Vocabulary) -> npt.NDArray[np.int64]:
    return np.zeros(len(vocabulary), np.int64) if vocabulary.counts is None else vocabulary.counts


def _read(url: str) -> pa.Table:
    with sound(f"{url}: this unfinished work is damaged; remove its folder."):
        return read_table(url)
