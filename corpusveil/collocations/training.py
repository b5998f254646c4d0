"""From an artifact of tokens to an artifact of vectors: the training flow, on any engine."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from corpusveil.collocations.artifact import WORK, ReadingOptions, make_once, read_artifact, reading_of
from corpusveil.collocations.word2vec import Training, train
from corpusveil.errors import ArtifactError, ChangedError
from corpusveil.spaces import Vocabulary
from corpusveil.spaces.vectors import Vectors
from corpusveil.spaces.vocabulary import write_vocabulary
from corpusveil.storage import files
from corpusveil.storage.durable import Done, Stage, mark_of, run
from corpusveil.storage.engine import Engine
from corpusveil.storage.parquet import read_table, sound
from corpusveil.storage.tasks import keyed_digest

VERSION = 1


class TokenFiles(NamedTuple):
    """The lines of an artifact of tokens, in order, the address of their counts, and how text was read."""

    shards: tuple[str, ...]
    counts: str
    reading: ReadingOptions


def find_tokens(url: str) -> TokenFiles:
    """Return what ``corpusveil tokenize`` wrote. Raises UserError if there is nothing."""
    reading = reading_of(url, read_artifact(url, "tokens"))
    folder = files.join(files.absolute(url), "lines")
    shards = tuple(files.join(folder, name) for name in files.listing(folder))
    return TokenFiles(shards, files.join(url, "counts.parquet"), reading)


def read_token_counts(url: str) -> dict[str, int]:
    with sound(f"{url}: these counts are damaged; tokenize again.", ArtifactError):
        table = read_table(url, ["token", "count"])
    return dict(zip(table["token"].to_pylist(), table["count"].to_pylist(), strict=True))


@dataclass(frozen=True, slots=True)
class TrainTask:
    """The one task of training, for an executor."""

    record_name: str = "training.json"


class Trained(Done):
    """The written vectors, and the description of their training."""

    figures: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Train(Stage[Trained]):
    """Train on one machine and write the vectors."""

    name: ClassVar[str] = "training"

    tokens: TokenFiles
    training: Training
    output: str

    def make(self, task: TrainTask) -> dict[str, Any]:  # noqa: ARG002 - there is one
        vectors, figures = train(self.tokens.shards, self.training, read_token_counts(self.tokens.counts))
        write_vectors(self.output, vectors)
        return {"figures": figures}


def write_vectors(output: str, vectors: Vectors) -> None:
    """Write ``vectors.npy`` float32 [V, d] and ``vocabulary.parquet``."""
    with files.open_write(files.join(output, "vectors.npy")) as file:
        np.save(file, vectors.vectors, allow_pickle=False)
    write_vocabulary(Vocabulary.from_words(vectors.words, vectors.counts), files.join(output, "vocabulary.parquet"))


def fields_of(output: str, trainer: str, figures: dict[str, Any], tokens: TokenFiles) -> dict[str, Any]:
    """Return the fields of a description of the vectors in ``output``."""
    with files.open_read(files.join(output, "vectors.npy")) as file:
        matrix = np.load(file, allow_pickle=False)
    return {
        "trainer": trainer,
        "words": int(matrix.shape[0]),
        "dimensions": int(matrix.shape[1]),
        "vectors_sha256": hashlib.sha256(matrix.tobytes()).hexdigest(),
        "shards": len(tokens.shards),
        "tokens_digest": _digest(tokens.shards),
        **tokens.reading.fields(),
        **figures,
    }


def refuse_changed(output: str, description: dict[str, Any], shards: Sequence[str]) -> None:
    """Raise UserError if the tokens differ from those of the finished vectors ``output``."""
    if description["tokens_digest"] != _digest(shards):
        raise ChangedError(
            f"{output}: the tokens changed after these vectors were trained on them; choose another output."
        )


def _digest(shards: Sequence[str]) -> str:
    return mark_of([keyed_digest(shard, b"") for shard in shards])


def train_vectors(tokens: str, output: str, engine: Engine, training: Training | None = None) -> dict[str, Any]:
    """Train word2vec by gensim on one machine of the engine, into the artifact ``output``; return its description.

    A repeated call does nothing when all is done, and otherwise trains from the start. Raises UserError if there are no
    tokens, or if ``output`` has something else; WorkError if another run is in progress.

    >>> training = cv.Training(dimensions=8, epochs=1, min_count=1)
    >>> trained = cv.train_vectors("tokens", "vectors", cv.Local(), training)
    >>> cv.read_vectors("vectors").vectors.shape[1]
    8
    """
    output = files.absolute(output)
    training = training or Training()
    token_files = find_tokens(tokens)
    sizes = [files.size(shard) for shard in token_files.shards]
    mark = mark_of(VERSION, dataclasses.asdict(training), list(token_files.shards), sizes)
    stage = Train(files.join(output, WORK), mark, token_files, training, output)

    def make() -> dict[str, Any]:
        (record,) = run(stage, [TrainTask()], engine)
        figures = {"training": dataclasses.asdict(training), **record.figures}
        return fields_of(output, "gensim", figures, token_files)

    return make_once(output, "vectors", mark, make, lambda earlier: refuse_changed(output, earlier, token_files.shards))
