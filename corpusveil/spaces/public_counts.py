"""Public counts for a vocabulary, of words and of neighbors: from n-gram counts (Parquet) or a table (TSV, CSV)."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.arrays import Int64
from corpusveil.choices import Hyphens
from corpusveil.errors import ArtifactError, DataError, MissingError, SettingError, VersionError
from corpusveil.spaces.grammar import COLUMNS, Neighbors
from corpusveil.spaces.vector_formats import decode
from corpusveil.spaces.vocabulary import Vocabulary, parts
from corpusveil.storage import files
from corpusveil.storage.artifacts import Description, description_of, is_artifact
from corpusveil.storage.forms import lines_of
from corpusveil.storage.parquet import opened, sound
from corpusveil.text.classes import TOKENIZER_VERSION
from corpusveil.text.languages import version_of

Pairs = tuple[Any, Int64]  # Arrow strings, their counts
ROWS = 1 << 16
MOST = 2.0**62


def read_counts(url: str, vocabulary: Vocabulary, hyphens: Hyphens | None = None, language: str | None = None) -> Int64:
    """Return the count of every word of ``vocabulary``, int64 [V]; 0 for a word that the file does not have.

    Args:
        url: the folder that ``corpusveil count`` wrote, or Parquet files like those in it (``ngram, n, count``; a
            collocation ``new_york`` has the count of the n-gram ``new york``), or a table ``word<TAB>count`` (``.csv``:
            comma), also ``.gz``. A word that occurs in several rows has their sum.
        vocabulary: the words to count.
        hyphens: how the text of the vocabulary was read, which counts must match; None if unknown.
        language: the language as which it was read, likewise.

    Raises:
        UserError: a row is unusable, the artifact has another kind or tokenizer, or no word of the vocabulary has a
            count.
    """
    spaced = [" ".join(parts(word)) for word in vocabulary.words]
    known = pa.array(
        [*vocabulary.words, *(s if s != w else None for s, w in zip(spaced, vocabulary.words, strict=True))]
    )
    totals = np.zeros(2 * len(vocabulary), np.int64)
    rough = np.zeros(2 * len(vocabulary))
    for words, counts in _pairs(url, hyphens, language):
        ids = pc.index_in(words, value_set=known, skip_nulls=True)
        in_vocabulary = ids.is_valid().to_numpy(zero_copy_only=False)
        at = ids.drop_null().to_numpy()
        np.add.at(totals, at, counts[in_vocabulary])
        np.add.at(rough, at, counts[in_vocabulary])
    if rough.reshape(2, -1).sum(axis=0).max(initial=0) >= MOST:
        raise ArtifactError(f"{url}: the counts of a word add up to more than 64 bits can hold; count again.")
    total: Int64 = totals.reshape(2, -1).sum(axis=0)
    if not total.any():
        raise DataError(
            f"{url}: none of the {len(vocabulary):,} words of the vocabulary has a count; check that this is the "
            "right file."
        )
    return total


def read_neighbors(
    url: str, vocabulary: Vocabulary, hyphens: Hyphens | None = None, language: str | None = None
) -> Neighbors:
    """Return how often the words of ``vocabulary``, which has counts, are next to its most frequent words.

    The other arguments and errors are those of ``read_counts``. Counts without pairs of words give no neighbors.
    """
    frequent = np.array([], np.int64) if vocabulary.counts is None else np.argsort(-vocabulary.counts, kind="stable")
    column = np.full(len(vocabulary), -1, np.int32)
    width = min(COLUMNS, len(vocabulary))
    column[frequent[:width]] = np.arange(min(width, frequent.size), dtype=np.int32)
    known = pa.array(vocabulary.words, pa.string())
    rows, columns, totals = [np.empty(0, np.int32)], [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    for ngrams, counts in _pairs(url, hyphens, language):
        is_pair = pc.equal(pc.count_substring(ngrams, " "), 1)
        two = pc.split_pattern(ngrams.filter(is_pair), " ").flatten()
        ids = pc.fill_null(pc.index_in(two, value_set=known), -1).to_numpy(zero_copy_only=False).reshape(-1, 2)
        counted = counts[is_pair.to_numpy(zero_copy_only=False)]
        for word, neighbor, shift in ((ids[:, 0], ids[:, 1], width), (ids[:, 1], ids[:, 0], 0)):
            at = np.where(neighbor >= 0, column[neighbor], -1)
            kept = (word >= 0) & (at >= 0)
            rows.append(word[kept].astype(np.int32))
            columns.append((at[kept] + shift).astype(np.int32))
            totals.append(counted[kept])
    return Neighbors(len(vocabulary), width, np.concatenate(rows), np.concatenate(columns), np.concatenate(totals))


def _pairs(url: str, hyphens: Hyphens | None, language: str | None) -> Iterator[Pairs]:
    if url.endswith(".parquet"):
        yield from _parquet(url)
        return
    fs, path = files.resolve(url)
    if fs.isfile(path):
        yield from _table(url)
        return
    if is_artifact(url):
        _check_artifact(url, description_of(url, "counts"), hyphens, language)
    for folder in (files.join(url, "ngrams"), url, files.join(url, "data")):
        shards = [
            name for name in files.listing(folder) if name.endswith(".parquet") and not name.startswith((".", "_"))
        ]
        for name in shards:
            yield from _parquet(files.join(folder, name))
        if shards:
            return
    raise MissingError(
        f"{url}: there are no counts here; name the output of 'corpusveil count', a table or Parquet files."
    )


def _check_artifact(url: str, artifact: Description, hyphens: Hyphens | None, language: str | None) -> None:
    """Raise UserError unless an artifact has counts by this tokenizer, since other tokenizers have other words."""
    counted_with, counted_in = artifact.as_dict().get("hyphens"), artifact.as_dict().get("language")
    if artifact.tokenizer != (version := TOKENIZER_VERSION + version_of(counted_in)):
        raise VersionError(
            f"{url}: these words were counted by tokenizer {artifact.tokenizer}, and this is {version}; count again "
            "with 'corpusveil count'."
        )
    for what, counted, read in (("language", counted_in, language), ("hyphens", counted_with, hyphens)):
        if read is not None and counted != read:
            raise SettingError(
                f"{url}: these words were counted with {what} {counted}, and the text of the vectors was read with "
                f"{read}; count with {read}."
            )


def _parquet(url: str) -> Iterator[Pairs]:
    unsound = f"{url}: this is not a valid Parquet file with 'ngram', text, and 'count', whole numbers; count again."
    with files.open_read(url) as file, sound(unsound):
        for batch in opened(file).iter_batches(ROWS, columns=["ngram", "count"], use_threads=False):
            counts = batch["count"].cast(pa.int64())
            batch.validate(full=True)
            if counts.null_count or batch["ngram"].null_count or (pc.min(counts).as_py() or 0) < 0:
                raise ArtifactError(f"{url}: an n-gram or count is empty, or a count is negative; count again.")
            yield batch["ngram"].cast(pa.string()), counts.to_numpy()


def _table(url: str) -> Iterator[Pairs]:
    comma = url.removesuffix(".gz").removesuffix(".zst").endswith(".csv")
    words: list[str] = []
    counts: list[int] = []
    for row, line in enumerate(lines_of(url), 1):
        text = decode(line, url, row).removesuffix("\r")
        word, *more = _of_csv(text) if comma else text.split("\t")
        number = more[0].strip() if len(more) == 1 else ""
        if row == 1 and number.lower() == "count":
            continue
        if not number.isdecimal() or len(number) > 18:
            raise DataError(
                f"{url}, row {row}: this is not a word and its count, a whole number; correct or delete this row."
            )
        words.append(word)
        counts.append(int(number))
    for first in range(0, len(words), ROWS):
        yield pa.array(words[first : first + ROWS]), np.array(counts[first : first + ROWS], np.int64)


def _of_csv(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [""])
    except csv.Error:  # a carriage return, or a field of more than 128 KiB
        return [""]
