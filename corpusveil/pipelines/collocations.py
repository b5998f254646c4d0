"""The public flow: count n-grams, score them, tokenize with the collocations, make models, train word vectors."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from corpusveil.collocations.artifact import read_artifact
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.collocations.measures import Scoring, connector_words
from corpusveil.collocations.score import TABLE, score_counts
from corpusveil.collocations.tokenize import tokenize_corpus
from corpusveil.collocations.training import train_vectors
from corpusveil.collocations.word2vec import Training
from corpusveil.display import several
from corpusveil.errors import UnsetError
from corpusveil.language import modelling
from corpusveil.pipelines.settings import Settings, needed
from corpusveil.pipelines.settings.artifact_sections import CollocationsSettings
from corpusveil.pipelines.watch import Watch
from corpusveil.storage import files
from corpusveil.storage.artifacts import is_artifact
from corpusveil.storage.inputs import find_shards
from corpusveil.storage.parquet import opened
from corpusveil.storage.reading import reading
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import plan
from corpusveil.text import languages
from corpusveil.waiting import reached, waiting

SHOWN = 10


@contextlib.contextmanager
def said_when_made(output: str, watch: Watch) -> Iterator[None]:
    """Say at the end of the block that nothing was done, if the artifact was complete before."""
    made = is_artifact(files.absolute(output))
    yield
    if made:
        watch.warn(f"{output}: already complete; nothing was done.")


def count(settings: Settings, watch: Watch) -> dict[str, Any]:
    """Count the n-grams of the corpus; return the description of the counts."""
    flow, output = _of(settings), _place(settings, "counts")
    began = time.monotonic()
    options = CountOptions(flow.max_n, flow.min_count, flow.text, flow.hyphens or "split", _language(flow))
    engine = settings.engine.make()
    with said_when_made(output, watch):
        made = count_corpus(flow.input, output, engine, options, watch=watch.stage)
    least, longest = made["options"]["min_count"], made["options"]["max_n"]
    watch.say(
        f"{output}: {several(made['ngrams'], 'n-gram')} of 1 to {longest} words that occur at least "
        f"{several(least, 'time')}; "
        f"{several(made['documents'], 'document')}, {several(made['sentences'], 'sentence')}, "
        f"{several(made['words'], 'word')}, {several(made['different_words'], 'different word')}; "
        f"{time.monotonic() - began:.1f} s"
    )
    return made


def score(settings: Settings, watch: Watch) -> dict[str, Any]:
    """Score the counts; return the description of the collocation table."""
    flow, output = _of(settings), _place(settings, "table")
    began = time.monotonic()
    spoken = read_artifact(files.absolute(_place(settings, "counts")), "counts").get("language")
    connectors = connector_words(flow.connectors, spoken)
    scoring = Scoring(flow.measure, flow.threshold, flow.score_min_count, connectors, flow.connectors_rule)
    engine = settings.engine.make()
    with said_when_made(output, watch):
        made = score_counts(_place(settings, "counts"), output, engine, scoring, watch=watch.stage)
    numbers = ", ".join(f"{count:,} of {n} words" for n, count in made["collocations"].items())
    watch.say(f"{output}: {numbers}; {time.monotonic() - began:.1f} s")
    with files.open_read(files.join(files.absolute(output), TABLE)) as file:
        top = next(opened(file).iter_batches(SHOWN, use_threads=False)).to_pylist()
    watch.say("first: " + ", ".join(f"{row['ngram']} ({row['score']:.2f})" for row in top))
    return made


def tokenize(settings: Settings, watch: Watch) -> dict[str, Any]:
    """Tokenize the corpus; return the description of the tokens."""
    flow, output = _of(settings), _place(settings, "tokens")
    began = time.monotonic()
    engine = settings.engine.make()
    with said_when_made(output, watch):
        made = tokenize_corpus(
            flow.input, output, engine, flow.tokenizer, flow.table,
            text=flow.text, hyphens=flow.hyphens, language=_language(flow), watch=watch.stage,
        )  # fmt: skip
    watch.say(
        f"{output}: {several(made['words'], 'word')} became {several(made['tokens'], 'token')} "
        f"({made['different_tokens']:,} different) in {several(made['sentences'], 'sentence')}; "
        f"{time.monotonic() - began:.1f} s"
    )
    return made


def build_model(settings: Settings, watch: Watch) -> dict[str, Any]:
    """Make the language model of the counts; return its description."""
    chosen, counted, began = needed(settings.model, "model"), settings.collocations, time.monotonic()
    counts, output = chosen.counts or (None if counted is None else counted.counts), chosen.path
    if counts is None:
        raise UnsetError("model.counts: this setting is missing; name the counts that the model is made from.")
    pruning = modelling.Pruning(chosen.min_count, chosen.min_bigram, chosen.min_trigram)
    with said_when_made(output, watch):
        made = modelling.build_model(
            counts, output, settings.engine.make(), pruning, sample=chosen.sample, watch=watch.stage
        )
    sizes = ", ".join(f"{made[name]:,} {name}" for name in ("words", "bigrams", "trigrams"))
    watch.say(f"{output}: {sizes}; {time.monotonic() - began:.1f} s\nsha256 {made['digest']}")
    return made


def train(settings: Settings, watch: Watch) -> dict[str, Any]:
    """Train word vectors on the tokens, on one machine unless Spark trains them; return their description."""
    chosen = needed(settings.embeddings, "embeddings")
    tokens, output = _place(settings, "tokens"), chosen.vectors
    training = Training(
        dimensions=chosen.dimensions, window=chosen.window, epochs=chosen.epochs, min_count=chosen.min_count,
        alpha=chosen.alpha, workers=chosen.threads,
    )  # fmt: skip
    with said_when_made(output, watch):
        if chosen.trainer == "spark":
            from corpusveil.jobs.mllib import train_on_spark

            made = train_on_spark(tokens, output, training, settings.engine.master)
        else:
            engine = settings.engine.model_copy(update={"workers": None}).make()
            # In this process alone: a function cannot be sent to another one to report from there.
            progress = (lambda share, _: reached("", share)) if settings.engine.name == "local" else None
            with waiting("training"):
                made = train_vectors(tokens, output, engine, training, progress=progress)
    watch.say(f"{output}: {made['words']:,} tokens, {made['dimensions']} dimensions, {made['seconds']:.1f} s")
    watch.say(f"sha256 of the vectors {made['vectors_sha256']}")
    return made


def _of(settings: Settings) -> CollocationsSettings:
    return needed(settings.collocations, "collocations")


def _language(flow: CollocationsSettings) -> str | None:
    return languages.settled(flow.language, None, _texts(flow))


def _texts(flow: CollocationsSettings) -> Iterator[str | None]:
    with reading(plan(find_shards(flow.input), None, None)[0], Columns(flow.text)) as (batches, _):
        for batch in batches:
            yield from batch.texts.to_pylist()


def _place(settings: Settings, name: str) -> str:
    place = getattr(_of(settings), name)
    if place is None:
        raise UnsetError(f"collocations.{name}: this setting is missing; add it.")
    return str(place)
