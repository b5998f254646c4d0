"""Denoising as the short table measures it: a model of some shards, unseen documents, and a search that is ready."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import corpusveil as cv
from benchmarks import inputs
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.jobs.local import Local
from corpusveil.kernel.prepared import prepare
from corpusveil.language.denoise import Denoiser, Search, reader_of
from corpusveil.language.model import LanguageModel
from corpusveil.language.modelling import build_model
from corpusveil.spaces import Space
from corpusveil.storage import formats
from corpusveil.storage.documents import Documents
from corpusveil.storage.rows import Columns
from corpusveil.text.tokens import string_buffers

DOCUMENTS = 150


def language(shards: int = -1) -> str:
    """Return the address of a model of the first shards (-1: of all but the last), made if missing."""
    counts, folder = inputs.work() / "denoise-counts", inputs.work() / "denoise-model"
    count_corpus(inputs.shards()[:shards], str(counts), Local(), CountOptions(3, 2))
    build_model(str(counts), str(folder), Local())
    return str(folder)


def texts() -> pa.Array:
    """Return documents of the last shard, which the model lacks."""
    shard = inputs.shards()[-1]
    form = formats.find(formats.form_of(shard))
    with open(shard, "rb") as file:
        return next(form.batches(file, shard, Columns())).texts[:DOCUMENTS]


class Drawn(NamedTuple):
    """Released documents, the ids of the replaced words, where documents begin among these, and how to draw again."""

    release: cv.Release
    texts: pa.Array
    originals: npt.NDArray[np.int32]
    documents: npt.NDArray[np.int64]
    again: Callable[[], Any]


def draw(space: Space, epsilon: float) -> Drawn:
    policy = cv.TextPolicy(numbers="keep", unknown_words="mask", layout="keep")
    release = cv.Release(cv.mechanism("ring-geometric", space), cv.Budget(epsilon), policy, key=cv.Key.for_tests())
    before, kernel = texts(), release.kernel()

    def again() -> Any:
        return kernel.privatize(Documents(before, list(range(len(before)))))

    tokens = prepare(space, policy, None).tokenizer.tokens(*string_buffers(before))
    known = tokens.ids >= 0
    documents = np.concatenate([[0], np.cumsum(known)])[tokens.offsets]
    return Drawn(release, again()[0], tokens.ids[known], documents, again)


def search(drawn: Drawn, model: LanguageModel, how: Search) -> tuple[Callable[[], Any], int, npt.NDArray[np.int32]]:
    """Return a search of the released documents, the number of its words, and the words as drawn.

    The search returns ids.
    """
    release = drawn.release
    made = Denoiser(release.mechanism, release.budget, release.policy, model, how)
    reader = reader_of(made)
    tokens, replaced, kept = made.read(reader, *string_buffers(drawn.texts))
    return lambda: made.guesses(reader, tokens, replaced, kept)[replaced], int(replaced.sum()), tokens.ids[replaced]
