"""Word vectors of tokens by gensim's word2vec.

gensim trains fastest from one plain local file (``corpus_file``), so all shards are written to one first. With one
worker the result depends only on the tokens and the parameters.
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from corpusveil.collocations.public_texts import of_gensim
from corpusveil.errors import ArtifactError, DataError, check_whole
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage import files
from corpusveil.storage.compression import chunks, codec_of
from corpusveil.storage.forms import split
from corpusveil.waiting import reached

ALPHA, MIN_ALPHA = 0.025, 1e-4
"""gensim's first and last learning rate."""


@dataclass(frozen=True, slots=True)
class Training:
    """Parameters of word2vec; all others, and the defaults except for 300 dimensions, are gensim's.

    ``sg``: 1 is skip-gram, 0 CBOW. ``workers``: 1 makes training deterministic. Raises UserError for values out of
    range.

    >>> cv.Training(dimensions=100, window=8, sg=1).epochs
    5
    """

    dimensions: int = 300
    window: int = 5
    epochs: int = 5
    min_count: int = 5
    sg: int = 0
    seed: int = 1
    workers: int = 1

    def __post_init__(self) -> None:
        for name in ("dimensions", "window", "epochs", "min_count", "workers"):
            check_whole(name, getattr(self, name))


def lines_of(shards: Iterable[str]) -> Iterator[list[bytes]]:
    for shard in shards:
        with files.open_read(shard) as file:
            yield from split(chunks(file, shard, codec_of(shard)), shard)


def _spool(shards: Sequence[str], path: str) -> tuple[int, int]:
    """Write the lines of all shards that have tokens to a plain file; return the numbers of lines and tokens."""
    lines = words = 0
    with open(path, "wb") as file:
        for piece in lines_of(shards):
            sound = [line for line in piece if line.strip()]
            data = b"".join(line + b"\n" for line in sound)
            file.write(data)
            lines += len(sound)
            words += len(data.split())
    return lines, words


def train(shards: Sequence[str], training: Training, counts: dict[str, int]) -> tuple[Vectors, dict[str, Any]]:
    """Train on LineSentence files in their order.

    ``counts`` is how often each token occurs, sorted. Returns the vectors, float32 [V, d], by falling count, and
    figures: tokens, epochs, seconds, trained words. Raises UserError if nothing is left to train on.
    """
    total, kept = sum(counts.values()), sum(count >= training.min_count for count in counts.values())
    if kept < 2:
        raise DataError(
            f"min_count = {training.min_count}: {kept} tokens occur this often, which is too few; give "
            "a smaller min_count or more text."
        )
    options = dataclasses.asdict(training)
    model = of_gensim("models").Word2Vec(vector_size=options.pop("dimensions"), **options)
    model.build_vocab_from_freq(dict(counts))
    began, trained, share, fall = time.monotonic(), 0, 1 / training.epochs, ALPHA - MIN_ALPHA
    with tempfile.TemporaryDirectory(prefix="corpusveil-train-") as folder:
        path = str(Path(folder, "tokens.txt"))
        lines, seen = _spool(shards, path)
        if seen != total:
            raise ArtifactError(f"{seen:,} tokens were read and {total:,} were counted; tokenize the corpus again.")
        for epoch in range(training.epochs):
            first = epoch / training.epochs
            reached("passes over the tokens", first)
            done, _ = model.train(
                corpus_file=path, total_examples=lines, total_words=total, epochs=1,
                start_alpha=ALPHA - fall * first, end_alpha=ALPHA - fall * (first + share),
            )  # fmt: skip
            trained += int(done)
    seconds = time.monotonic() - began
    words = list(model.wv.index_to_key)
    counts_kept = np.array([model.wv.get_vecattr(word, "count") for word in words], dtype=np.int64)
    figures = {"tokens": total, "epochs": training.epochs, "seconds": round(seconds, 3), "trained": trained}
    return Vectors(words, model.wv.vectors.astype(np.float32, copy=False), "word2vec", counts_kept), figures
