"""The baselines of our work: plain copies, and direct implementations of the same tasks in Python and NumPy.

Each function prepares a piece of work for ``benchmarks.job``, which calls the returned function with an empty folder.
"""

import functools
import gzip
import hashlib
import itertools
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import corpusveil as cv
from benchmarks import inputs
from corpusveil.storage import files, formats
from corpusveil.storage.rows import BLOCK_ROWS, Columns

BLOCK = 1024
COUNTED = 1_000
"""The number of documents for the plain counter, which needs half a minute and two gigabytes for a shard."""


def ids(tokens: int, words: int) -> npt.NDArray[np.int32]:
    return np.random.default_rng(0).integers(0, words, tokens).astype(np.int32)


def through(shards: list[str], folder: str) -> dict[str, Any]:
    """Copy shards through our reader and writer."""
    columns = Columns()
    for shard in shards:
        form = formats.form_of(shard)
        with files.open_read(shard) as source, files.open_write(f"{folder}/{Path(shard).name}") as sink:
            writer = form.writer(sink, columns, hashlib.sha256(), [])
            row = 0
            for batch in form.batches(source, shard, columns):
                writer.write(batch.texts, [])
                row = batch.stop
                if row % BLOCK_ROWS == 0:
                    writer.end_block()
            writer.end_block()
            writer.close()
    return {}


def standard_copy(shards: list[str]) -> Callable[[str], dict[str, Any]]:
    """Copy ``.json.gz`` by the standard library, at gzip's level 6, the file's digest included."""

    def run(folder: str) -> dict[str, Any]:
        for shard in shards:
            path = Path(folder, Path(shard).name)
            with gzip.open(shard, "rt", encoding="utf-8") as source, gzip.open(path, "wt", 6, encoding="utf-8") as sink:
                for line in source:
                    sink.write(json.dumps({"text": json.loads(line)["text"]}, ensure_ascii=False) + "\n")
            hashlib.sha256(path.read_bytes()).hexdigest()
        return {}

    return run


def cmp_numpy(at: str, epsilon: float, tokens: int) -> Callable[[str], dict[str, Any]]:
    """Replace words by CMP, block by block, in float32 NumPy: noise, one matrix product, the largest of each row."""
    vectors = cv.load_space(at).vectors.astype(np.float32)
    halves = (vectors**2).sum(1) / 2
    asked, rng = ids(tokens, len(vectors)), np.random.default_rng(0)

    def run(_: str) -> dict[str, Any]:
        for first in range(0, tokens, BLOCK):
            points = vectors[asked[first : first + BLOCK]]
            noise = rng.standard_normal(points.shape, dtype=np.float32)
            length = rng.gamma(points.shape[1], 1 / epsilon, (len(points), 1)).astype(np.float32)
            points = points + noise * (length / np.linalg.norm(noise, axis=1, keepdims=True))
            (points @ vectors.T - halves).argmax(1)
        return {"items": tokens}

    return run


def counter(shards: list[str]) -> Callable[[str], dict[str, Any]]:
    """Count 1- to 3-grams of the first documents by ``collections.Counter``."""

    def run(_: str) -> dict[str, Any]:
        counts: Counter[tuple[str, ...]] = Counter()
        words = 0
        with gzip.open(shards[0], "rt", encoding="utf-8") as source:
            for line in itertools.islice(source, COUNTED):
                found = json.loads(line)["text"].lower().split()
                words += len(found)
                for n in (1, 2, 3):
                    counts.update(zip(*(found[i:] for i in range(n)), strict=False))
        return {"items": words}

    return run


def longest_wait(mask: Callable[[str], str]) -> Callable[[str], dict[str, Any]]:
    """Prepare masking 2,000 texts of 100 words, one after the other; the wall time is the 99th percentile of them."""
    with gzip.open(inputs.shards()[0], "rt", encoding="utf-8") as lines:
        words = list(itertools.islice((word for line in lines for word in json.loads(line)["text"].split()), 200_000))
    texts = [" ".join(words[at : at + 100]) for at in range(0, len(words), 100)]
    for text in texts[:100]:
        mask(text)

    def run(_: str) -> dict[str, Any]:
        waits = np.empty(len(texts))
        for row, text in enumerate(texts):
            began = time.perf_counter()
            mask(text)
            waits[row] = time.perf_counter() - began
        return {"items": 1, "wall": float(np.quantile(waits, 0.99))}

    return run


def substituting() -> Callable[[str], dict[str, Any]]:
    """Prepare what a scrubber does at least: find each word by a regular expression and put another."""
    space, pattern = cv.load_space(inputs.space()), re.compile(r"\w+")
    words = [space.word(number) for number in range(len(space))]
    return longest_wait(functools.partial(pattern.sub, lambda _: random.choice(words)))


def random_rows(number: int) -> npt.NDArray[np.int8]:
    """Return vectors of 96 dimensions and about length 127, as a store has them."""
    made = np.random.default_rng(number).normal(size=(number, 96)).astype(np.float32)
    return np.rint(made * (127 / np.linalg.norm(made, axis=1, keepdims=True))).astype(np.int8)


def nearest_numpy(pieces: int, points: int, neighbors: int) -> Callable[[str], dict[str, Any]]:
    """Prepare choosing among the largest products, by blocks of a matrix of float32."""
    rows, asked = random_rows(pieces).astype(np.float32), random_rows(points).astype(np.float32)

    def run(_: str) -> dict[str, Any]:
        for start in range(0, points, 256):
            np.argpartition(asked[start : start + 256] @ rows.T, -neighbors, axis=1)[:, -neighbors:]
        return {"items": points}

    return run


KINDS: dict[str, Callable[..., Callable[[str], dict[str, Any]]]] = {
    "standard copy": standard_copy,
    "cmp, NumPy": cmp_numpy,
    "counter": counter,
    "substituting": substituting,
    "nearest, NumPy": nearest_numpy,
}
