"""From public text to artifacts: n-gram counts, collocations, tokens, word vectors, spaces and stores."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from corpusveil.collocations.artifact import read_artifact
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.collocations.measures import Scoring, connector_words
from corpusveil.collocations.score import TABLE, score_counts
from corpusveil.collocations.tokenize import tokenize_corpus
from corpusveil.collocations.training import train_vectors
from corpusveil.collocations.word2vec import Training
from corpusveil.display import several
from corpusveil.passages.build import build_store
from corpusveil.passages.encoder import ENCODERS
from corpusveil.passages.store import Store
from corpusveil.passages.teaching import public_pieces, said_by, taught
from corpusveil.pipelines.settings import Settings, needed
from corpusveil.pipelines.settings.artifact_sections import CollocationsSettings
from corpusveil.pipelines.watch import Watch
from corpusveil.spaces import Space, Vocabulary, load_space
from corpusveil.spaces.build import build_space, in_common
from corpusveil.spaces.public_counts import read_counts, read_neighbors
from corpusveil.spaces.vectors import median_distance, read_vectors
from corpusveil.spaces.vocabulary import parts, read_words
from corpusveil.storage import files, lease
from corpusveil.storage.artifacts import is_artifact
from corpusveil.storage.durable import mark_of
from corpusveil.storage.inputs import InputShard, find_shards
from corpusveil.storage.parquet import opened
from corpusveil.storage.reading import reading
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import keyed_digest, plan
from corpusveil.text import languages
from corpusveil.waiting import waiting

SHOWN = 10
_COUNTED = ("document", "sentence", "word", "different word")
MANY = 1_000_000
"""The number of words from which an exact order gives a warning."""


@contextlib.contextmanager
def making(output: str, watch: Watch) -> Iterator[list[str]]:
    """Say at the end of the block what it has put into the list, with its seconds, and if nothing was done."""
    made, began, said = is_artifact(files.absolute(output)), time.monotonic(), list[str]()
    yield said
    if made:
        watch.warn(f"{output}: already complete; nothing was done.")
    watch.say(f"{output}: {'; '.join(said)}; {time.monotonic() - began:.1f} s")


def count(settings: Settings, watch: Watch) -> dict[str, Any]:
    """Count the n-grams of the corpus; return the description of the counts."""
    flow = needed(settings.collocations, "collocations")
    output = needed(flow.counts, "collocations.counts")
    options = CountOptions(flow.max_n, flow.min_count, flow.text, flow.hyphens or "split", _language(flow))
    find_shards(flow.input, hidden=(hidden := set[str]()))
    with making(output, watch) as said:
        made = count_corpus(flow.input, output, settings.engine.engine(), options)
        least, longest = made["options"]["min_count"], made["options"]["max_n"]
        said.append(
            f"{several(made['ngrams'], 'n-gram')} of 1 to {longest} words that occur at least {several(least, 'time')}"
        )
        sizes = (several(made[f"{what}s".replace(" ", "_")], what) for what in _COUNTED)
        said.append(", ".join(sizes))
    watch.hidden(hidden)
    return made


def score(settings: Settings, watch: Watch) -> dict[str, Any]:
    """Score the counts; return the description of the collocation table."""
    flow = needed(settings.collocations, "collocations")
    counts, output = needed(flow.counts, "collocations.counts"), needed(flow.table, "collocations.table")
    connectors = connector_words(flow.connectors, read_artifact(files.absolute(counts), "counts").get("language"))
    scoring = Scoring(flow.measure, flow.threshold, flow.score_min_count, connectors, flow.connectors_rule)
    with making(output, watch) as said:
        made = score_counts(counts, output, settings.engine.engine(), scoring)
        said.append(", ".join(f"{count:,} of {n} words" for n, count in made["collocations"].items()))
    with files.open_read(files.join(files.absolute(output), TABLE)) as file:
        top = next(opened(file).iter_batches(SHOWN, use_threads=False)).to_pylist()
    watch.say("first: " + ", ".join(f"{row['ngram']} ({row['score']:.2f})" for row in top))
    return made


def tokenize(settings: Settings, watch: Watch) -> dict[str, Any]:
    """Tokenize the corpus; return the description of the tokens."""
    flow = needed(settings.collocations, "collocations")
    output = needed(flow.tokens, "collocations.tokens")
    find_shards(flow.input, hidden=(hidden := set[str]()))
    with making(output, watch) as said:
        made = tokenize_corpus(
            flow.input, output, settings.engine.engine(), flow.tokenizer, flow.table,
            text=flow.text, hyphens=flow.hyphens, language=_language(flow),
        )  # fmt: skip
        said.append(
            f"{several(made['words'], 'word')} became {several(made['tokens'], 'token')} "
            f"({made['different_tokens']:,} different) in {several(made['sentences'], 'sentence')}"
        )
    watch.hidden(hidden)
    return made


def train(settings: Settings, watch: Watch) -> dict[str, Any]:
    """Train word vectors on the tokens, on one machine; return their description."""
    chosen = needed(settings.embeddings, "embeddings")
    tokens = needed(needed(settings.collocations, "collocations").tokens, "collocations.tokens")
    training = Training(
        dimensions=chosen.dimensions, window=chosen.window, epochs=chosen.epochs, min_count=chosen.min_count,
        workers=chosen.threads,
    )  # fmt: skip
    with making(chosen.vectors, watch) as said:
        engine = settings.engine.model_copy(update={"workers": None}).engine()
        with waiting("training"):
            made = train_vectors(tokens, chosen.vectors, engine, training)
        said.append(f"{made['words']:,} tokens, {made['dimensions']} dimensions")
    watch.say(f"sha256 of the vectors {made['vectors_sha256']}")
    return made


def space(settings: Settings, watch: Watch) -> Space:
    """Build the space of the given vectors, or of the embeddings in these settings."""
    chosen = needed(settings.space, "space")
    output, read = chosen.path, []
    for url in _vectors_of(settings):
        with waiting(f"reading {url}"):
            read.append(read_vectors(url, chosen.language))
    counts = neighbors = None
    if chosen.counts is not None:
        how_read = read[0].hyphens, read[0].language
        counts = read_counts(chosen.counts, Vocabulary.from_words(read[0].words), *how_read)
        if chosen.grammar != 0 and chosen.lists:
            neighbors = read_neighbors(chosen.counts, Vocabulary.from_words(read[0].words, counts), *how_read)
    only = None if chosen.vocabulary is None else read_words(chosen.vocabulary)
    exclude = () if chosen.exclude is None else read_words(chosen.exclude)
    size = len(read[0].words)
    if only is not None:
        known = set().union(*(vectors.words for vectors in read))
        missing = sum(word not in known for word in only)
        size = len(only) - missing
        if missing:
            watch.warn(f"{chosen.vocabulary}: {missing:,} of its {len(only):,} words have no vector and are left out")
    how: dict[str, Any] = {
        "lists": chosen.lists, "counts": counts, "order": chosen.order,
        "only": only, "exclude": exclude, "balance": chosen.balance, "neighbors": neighbors, "grammar": chosen.grammar,
        "scale": chosen.scale,
    }  # fmt: skip
    lessons = find_shards(chosen.lessons) if chosen.lessons else []
    if chosen.teacher is not None:
        ENCODERS.find(chosen.teacher)
    with lease.hold(files.absolute(output)), making(output, watch) as said:
        if chosen.lists and size > MANY:
            watch.warn(
                f"{size:,} words: their order takes time that grows with the square of their number; a vocabulary file "
                "keeps the words that are needed"
            )
        with waiting(f"ordering {size:,} words"):
            built = build_space(read, **how)
        built = (built if chosen.teacher is None else _taught(built, chosen.teacher, lessons)).save(output)
        files.sweep(output)
        said.append(f"{len(built):,} words, {built.dimensions} dimensions, {several(len(built.lists), 'list')}")
    _describe(built, watch)
    return built


def call_of_space(settings: Settings) -> str:
    """Return a digest of everything that decides the space of these settings."""
    chosen = needed(settings.space, "space")
    given = [*_vectors_of(settings), *filter(None, (chosen.counts, chosen.vocabulary, chosen.exclude))]
    urls = [url for url in given if not is_artifact(url)]
    urls += [files.join(url, name) for url in given if is_artifact(url) for name in files.listing(url)]
    urls += [shard.url for shard in find_shards(chosen.lessons)] if chosen.lessons else []
    places = {"path", "vectors", "counts", "vocabulary", "exclude", "lessons"}
    return mark_of(chosen.model_dump(exclude=places), [keyed_digest(url, b"") for url in urls])


def _taught(space: Space, teacher: str, lessons: Sequence[InputShard]) -> Space:
    """Return the space with sentence vectors, which a teacher gives to its words by public texts."""

    def texts() -> Iterator[pa.Array]:
        for task in plan(lessons, None, None):
            with reading(task, Columns("text")) as shard:
                yield from (batch.texts for batch in shard.batches)

    with waiting("reading the lessons by the teacher"):
        pieces = public_pieces(texts(), space)
        said = said_by(teacher, pieces)
    with waiting("teaching"):
        return space.with_sentences(taught(space, pieces, said))


def _vectors_of(settings: Settings) -> list[str]:
    """Return the vectors from which a space is built; none if it exists already."""
    given = settings.space.vectors if settings.space is not None else []
    return given or ([] if settings.embeddings is None else [settings.embeddings.vectors])


def _describe(built: Space, watch: Watch) -> None:
    watch.say(f"sha256 {built.digest}")
    asked = ", as asked" if "scale" in built.info["made"] else ""
    watch.say(f"Median distance of two words: {median_distance(built.vectors):.4g}{asked}.")
    if common := in_common(built):
        watch.say(f"{common}: every list has every word of the space, which the guarantee needs.")
    watch.say(built.info["made"].get("balance_note", "Balance 0, as asked."))
    watch.say(built.info["made"].get("grammar_note", "Grammar 0: the order of the lists knows meaning alone."))
    joined = sum(len(parts(word)) > 1 for word in built.vocabulary.words)
    if joined:
        watch.say(f"{joined:,} words are collocations, which the tokenizers gst and mst look up.")
    if built.counts is None:
        watch.say(
            "No public counts: 'resample' will draw all words with equal probability. Build the space with public "
            "counts to change that."
        )


def store(settings: Settings, watch: Watch) -> Store:
    """Build the store of the public texts in these settings."""
    chosen = needed(settings.store, "store")
    least, _, most = chosen.words.partition("-")
    watch.warn(f"{' '.join(chosen.input)}: these texts are released word for word")
    with making(chosen.path, watch) as said:
        made = build_store(
            chosen.input, chosen.path, load_space(needed(settings.space, "space").path), chosen.licence or "",
            (int(least), int(most)), chosen.size, chosen.salt, settings.engine.engine(), chosen.attribution,
            text=chosen.text, excluded=None if chosen.exclude is None else read_words(chosen.exclude),
            encoder=chosen.encoder, refuse=chosen.refuse,
        )  # fmt: skip
        info = made.info
        pieces = f"{several(len(made), 'piece')} of {info['fit']:,} that are fit"
        said.append(f"{pieces}, from {several(info['documents'], 'document')}")
    refused = ", ".join(f"{fault} {count:,}" for fault, count in info["refused"].items())
    watch.say(f"refused for: {refused or 'nothing'}\nsha256 {made.digest}")
    if like := info["figures"].get("like"):
        nearest = f"the nearest piece has similarity {like['similarity'][0]:.3f}"
        watch.say(f"pieces of these texts that the store does not have: {nearest}")
    return made


def _language(flow: CollocationsSettings) -> str | None:
    return None if flow.language is None else languages.code_of(flow.language)
