"""From an artifact of tokens to an artifact of vectors: the training flow, on any engine."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from corpusveil.collocations.artifact import WORK, make_once, read_artifact, reading_of
from corpusveil.collocations.word2vec import Training, train
from corpusveil.errors import ArtifactError
from corpusveil.spaces import Vocabulary
from corpusveil.spaces.vocabulary import write_vocabulary
from corpusveil.storage import files
from corpusveil.storage.durable import Done, Stage, mark_of, run
from corpusveil.storage.engine import Engine
from corpusveil.storage.parquet import read_table, sound

VERSION = 1


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

    tokens: str
    training: Training
    output: str

    def do_task(self, task: TrainTask) -> dict[str, Any]:  # noqa: ARG002 - there is one
        counted = files.join(self.tokens, "counts.parquet")
        with sound(f"{counted}: these counts are damaged; tokenize again.", ArtifactError):
            table = read_table(counted, ["token", "count"])
        counts = dict(zip(table["token"].to_pylist(), table["count"].to_pylist(), strict=True))
        lines = files.join(self.tokens, "lines")
        vectors, figures = train([files.join(lines, name) for name in files.listing(lines)], self.training, counts)
        with files.open_write(files.join(self.output, "vectors.npy")) as file:
            np.save(file, vectors.vectors, allow_pickle=False)
        vocabulary = Vocabulary.from_words(vectors.words, vectors.counts)
        write_vocabulary(vocabulary, files.join(self.output, "vocabulary.parquet"))
        words, dimensions = vectors.vectors.shape
        digest = hashlib.sha256(vectors.vectors.tobytes()).hexdigest()
        return {"figures": {"words": words, "dimensions": dimensions, "vectors_sha256": digest, **figures}}


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
    tokens = files.absolute(tokens)
    described = read_artifact(tokens, "tokens")
    mark = mark_of(VERSION, dataclasses.asdict(training), described)
    stage = Train(files.join(output, WORK), mark, tokens, training, output)

    def make_artifact() -> dict[str, Any]:
        (record,) = run(stage, [TrainTask()], engine)
        return {**reading_of(tokens, described).fields(), "training": dataclasses.asdict(training), **record.figures}

    return make_once(output, "vectors", mark, make_artifact)
