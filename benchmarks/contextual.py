"""The space, the counts and the model on which mechanisms are compared at equal risk from context.

Epsilon is what ``--risk`` chooses for a reader who uses context, so the figures are the product's.
"""

import functools

import numpy as np

import corpusveil as cv
from benchmarks import inputs
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.jobs.local import Local
from corpusveil.language.model import LanguageModel
from corpusveil.language.modelling import build_model
from corpusveil.spaces import Space, Vocabulary
from corpusveil.spaces.public_counts import read_counts
from corpusveil.storage.artifacts import is_artifact

BALANCE = 1.0


@functools.cache
def model() -> LanguageModel:
    """Return a model of all shards but the last."""
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
