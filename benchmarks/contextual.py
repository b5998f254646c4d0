"""The spaces and the model on which mechanisms are compared, other public text, and how recovery is counted."""

import functools
import itertools
import math
import re
import zipfile
from collections.abc import Container, Sequence
from importlib import resources

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import pyarrow.parquet as pq

import corpusveil as cv
from benchmarks import inputs
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.jobs.local import Local
from corpusveil.spaces import Space
from corpusveil.spaces.public_counts import read_neighbors
from corpusveil.spaces.vectors import Vectors
from corpusveil.spaces.vocabulary import Vocabulary
from corpusveil.storage.artifacts import is_artifact
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from corpusveil_evaluate.readers.ngrams.modelling import load_model
from corpusveil_evaluate.statistics.perplexity import KneserNey
from corpusveil_evaluate.terms import joint_terms

MADE = {"without grammar": (None, "improved", None), "plain": (0.0, "greedy", None), "en": (None, "improved", 1.0)}
"""Balance, order and grammar of a space that is made of the words and vectors of ``en``."""


@functools.cache
def model() -> LanguageModel:
    return load_model("en")


@functools.cache
def space(way: str, words: int) -> Space:
    """Return the space of the most frequent words of ``en``, 0 for all, in one of the ways of ``utility``."""
    whole, way = cv.load_space("en"), way if way in MADE else "en"
    if way == "en" and not words:
        return whole
    folder = inputs.work() / f"utility-space-{words or 'all'}-{way}"
    if not is_artifact(str(folder)):
        counted_words = np.asarray(whole.counts)
        order = np.argsort(-counted_words, kind="stable")
        # truncated Gumbel has no law where two words share a vector
        distinct = np.unique(np.asarray(whole.vectors)[order], axis=0, return_index=True)[1]
        order = order[np.sort(distinct)][: words or None]
        some, counts = [whole.vocabulary.words[at] for at in order], counted_words[order]
        balance, listed, grammar = MADE[way]
        near = read_neighbors(counted(), Vocabulary.from_words(some, counts)) if grammar else None
        cv.build_space(
            Vectors(some, np.asarray(whole.vectors[order]), "en", None), counts=counts, order=listed, balance=balance,
            neighbors=near, grammar=grammar,
        ).save(str(folder))  # fmt: skip
    return cv.load_space(str(folder))


def counted() -> str:
    """Return the address of the n-grams that ``en`` ships."""
    folder = inputs.work() / "utility-counts"
    if not folder.exists():
        with (
            (resources.files("corpusveil_space_en") / "space.zip").open("rb") as file,
            zipfile.ZipFile(file) as archive,
        ):
            archive.extractall(folder, [name for name in archive.namelist() if name.startswith("counts/")])
    return str(folder / "counts")


def counts_of(words: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return how often words stand in public text, float64 [k]; 1 for a word that ``en`` lacks."""
    whole = cv.load_space("en")
    return np.append(np.asarray(whole.counts, np.float64), 1.0)[whole.vocabulary.ids(list(words), len(whole))]


def right_words(
    originals: Sequence[str], guesses: Sequence[str], among: Container[str]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return of each original how many of its words ``among`` some are right in the guess, and how many it has.

    Words are paired by position; a text whose number of words differs counts for nothing.
    """
    vocabulary, (before, after) = joint_terms(originals, guesses)
    wanted = np.array([word in among for word in vocabulary.words], dtype=np.bool_)
    words, others = before.words(), after.words()
    paired = np.diff(words.offsets) == np.diff(others.offsets)
    first = words.only(np.repeat(paired, np.diff(words.offsets)))
    second = others.only(np.repeat(paired, np.diff(others.offsets)))
    counts = wanted[first.ids]
    texts = first.texts()
    right = np.bincount(texts, counts & (first.ids == second.ids), len(first))
    return right.astype(np.int64), np.bincount(texts, counts, len(first)).astype(np.int64)


def share(right: npt.NDArray[np.int64], of: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Return the share of all words, and its standard error, for independent texts."""
    found = float(right.sum() / of.sum())
    spread = float(((right - found * of) ** 2).sum()) * of.size / (of.size - 1)
    return found, math.sqrt(spread) / float(of.sum())


@functools.cache
def others() -> str:
    """Return the address of counts of other text than the model's."""
    folder = str(inputs.work() / "utility-reader")
    if not is_artifact(folder):
        count_corpus(inputs.shards()[-1:], folder, Local(), CountOptions(3, 2))
    return folder


@functools.cache
def reader() -> KneserNey:
    return KneserNey.of_counts(others())


@functools.cache
def pairs_of_others() -> frozenset[str]:
    grams = pq.read_table(f"{others()}/ngrams")
    return frozenset(grams.filter(pc.equal(grams["n"], 2))["ngram"].to_pylist())


def attested(texts: list[str]) -> float:
    """Return the share of adjacent words that are adjacent in other public text, too."""
    known, found, whole = pairs_of_others(), 0, 0
    for text in texts:
        for piece in re.split(r"[^\w\s'’-]+", text.lower()):
            pairs = [" ".join(pair) for pair in itertools.pairwise(piece.split())]
            whole, found = whole + len(pairs), found + sum(pair in known for pair in pairs)
    return found / max(1, whole)
