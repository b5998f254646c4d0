"""The spaces, the counts and the model on which mechanisms are compared at equal risk, and how recovery is counted.

Epsilon is what ``--risk`` chooses, so the figures are the product's.
"""

import functools
import math
from collections.abc import Container, Sequence

import numpy as np
import numpy.typing as npt

import corpusveil as cv
from benchmarks import inputs
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.jobs.local import Local
from corpusveil.language.model import LanguageModel
from corpusveil.language.modelling import build_model
from corpusveil.spaces import Space, Vocabulary
from corpusveil.spaces.public_counts import read_counts
from corpusveil.storage.artifacts import is_artifact
from corpusveil_evaluate.terms import joint_terms

BALANCE = 1.0


@functools.cache
def model() -> LanguageModel:
    """Return a model of all shards but the last; at the smallest size, the demo space's."""
    if inputs.SMALLEST:
        return cv.load_model("demo")
    counts, folder = counted(), inputs.work() / "utility-model"
    if not is_artifact(str(folder)):
        build_model(counts, str(folder), Local())
    return cv.load_model(str(folder))


@functools.cache
def counted() -> str:
    """Return the address of the n-grams of all shards but the last."""
    folder = str(inputs.work() / "utility-counts")
    if not is_artifact(folder):
        count_corpus(inputs.shards()[:-1], folder, Local(), CountOptions(3, 2))
    return folder


@functools.cache
def space(balance: float, order: str, words: int) -> Space:
    """Return the space of the most frequent words that a reader finds again, 0 for all of them."""
    if inputs.SMALLEST:
        return cv.demo_space()
    folder = inputs.work() / f"utility-space-{words or 'all'}-{balance:g}-{order}"
    if not is_artifact(str(folder)):
        vectors = cv.read_vectors(inputs.vectors())
        counts = read_counts(counted(), Vocabulary.from_words(vectors.words))
        order_of = np.argsort(-counts, kind="stable").tolist()
        only = [word for row in order_of if (word := vectors.words[row]).isalpha() and word.islower()]
        cv.build_space(vectors, counts=counts, order=order, balance=balance, only=only[: words or None]).save(
            str(folder)
        )
    return cv.load_space(str(folder))


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
