"""word2vec by Spark MLlib, for tokens that outgrow one machine's disk or time; the same artifact as gensim's."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np

from corpusveil.collocations.artifact import make_once
from corpusveil.collocations.training import TokenFiles, fields_of, find_tokens, refuse_changed, write_vectors
from corpusveil.collocations.word2vec import Training, lines_of
from corpusveil.errors import DataError, SettingError, UserError
from corpusveil.jobs.java import failure
from corpusveil.jobs.spark import spark_session
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage import files
from corpusveil.storage.durable import mark_of

_SENTENCE_TOKENS = 10_000
"""gensim's longest sentence; MLlib's own default would cut at 1,000."""
_ONLY_GENSIM = ("sg", "workers")


def _sentences(shards: Any) -> Any:
    for lines in lines_of(shards):
        for line in lines:
            if words := line.decode().split():
                yield (words,)


def _refuse_nothing(counts: dict[str, int], training: Training) -> None:
    if len(counts) < 2:
        raise DataError(
            f"min_count = {training.min_count}: {len(counts)} tokens occur this often, which is too few; give a "
            "smaller min_count."
        )


def train_on_spark(tokens: str, output: str, training: Training, master: str | None = None) -> dict[str, Any]:
    """Train skip-gram with hierarchical softmax, which is all that MLlib has; return the artifact's description.

    ``epochs`` are its iterations over as many partitions as the session's parallelism, whose
    vectors are averaged. Raises UserError for parameters that only gensim has.
    """
    output = files.absolute(output)
    usual = Training()
    if changed := [name for name in _ONLY_GENSIM if getattr(training, name) != getattr(usual, name)]:
        raise SettingError(f"{changed[0]}: the trainer spark has no such parameter; leave it out or train with gensim.")
    token_files = find_tokens(tokens)
    sizes = [files.size(shard) for shard in token_files.shards]
    call = mark_of("spark", dataclasses.asdict(training), list(token_files.shards), sizes)
    return make_once(
        output, "vectors", call,
        lambda: _train(token_files, output, training, master),
        lambda earlier: refuse_changed(output, earlier, token_files.shards),
    )  # fmt: skip


def _train(token_files: TokenFiles, output: str, training: Training, master: str | None) -> dict[str, Any]:
    context = spark_session(master).sparkContext
    from pyspark.ml.feature import Word2Vec
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() or SparkSession(context)
    began = time.monotonic()
    try:
        lines = context.parallelize(list(token_files.shards), len(token_files.shards)).mapPartitions(_sentences)
        frame = session.createDataFrame(lines, "tokens array<string>").persist()
        counts = {
            row["token"]: row["count"]
            for row in frame.selectExpr("explode(tokens) AS token")
            .groupBy("token").count().where(f"count >= {training.min_count}").collect()
        }  # fmt: skip
        _refuse_nothing(counts, training)
        model = Word2Vec(
            vectorSize=training.dimensions, minCount=training.min_count, windowSize=training.window,
            maxIter=training.epochs, seed=training.seed, maxSentenceLength=_SENTENCE_TOKENS,
            numPartitions=context.defaultParallelism, inputCol="tokens", outputCol="vector",
        ).fit(frame)  # fmt: skip
        rows = model.getVectors().collect()
        frame.unpersist()
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 - Spark raises what it likes, with text in it
        raise failure(error) from None
    rows.sort(key=lambda row: (-counts[row["word"]], row["word"]))
    vectors = Vectors(
        [row["word"] for row in rows],
        np.array([row["vector"].toArray() for row in rows], dtype=np.float32),
        "word2vec",
        np.array([counts[row["word"]] for row in rows], dtype=np.int64),
    )
    write_vectors(output, vectors)
    options = {name: value for name, value in dataclasses.asdict(training).items() if name not in _ONLY_GENSIM}
    seconds = round(time.monotonic() - began, 3)
    return fields_of(output, "spark", {"training": options, "seconds": seconds}, token_files)
