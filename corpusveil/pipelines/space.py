"""From word vectors to a frozen space."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from corpusveil.pipelines.collocations import said_when_made
from corpusveil.pipelines.settings import Settings, needed
from corpusveil.pipelines.watch import Watch
from corpusveil.spaces import Vocabulary, load_space
from corpusveil.spaces.build import build_space, call_of, in_common
from corpusveil.spaces.public_counts import read_counts, read_neighbors
from corpusveil.spaces.space import is_made
from corpusveil.spaces.vectors import median_distance, read_vectors
from corpusveil.spaces.vocabulary import parts, read_words
from corpusveil.storage import files, lease
from corpusveil.waiting import waiting

if TYPE_CHECKING:
    from corpusveil.spaces import Space

MANY = 1_000_000
"""The number of words from which an exact order gives a warning."""


def build(settings: Settings, watch: Watch) -> Space:
    """Build the space of the given vectors, or of the embeddings in these settings."""
    chosen = needed(settings.space, "space")
    output, began = chosen.path, time.monotonic()
    read = []
    for url in vectors_of(settings):
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
        "lists": chosen.lists, "seed": chosen.seed, "counts": counts, "order": chosen.order,
        "only": only, "exclude": exclude, "balance": chosen.balance, "neighbors": neighbors, "grammar": chosen.grammar,
        "scale": chosen.scale,
    }  # fmt: skip
    with lease.hold(files.join(files.absolute(output), lease.FOLDER)), said_when_made(output, watch):
        if is_made(output, call_of(read, **how)):
            built = load_space(output)
        else:
            if chosen.lists and size > MANY:
                watch.warn(
                    f"{size:,} words: their order takes time that grows with the square of their number; a vocabulary "
                    "file keeps the words that are needed"
                )
            with waiting(f"ordering {size:,} words"):
                built = build_space(read, **how)
            built = built.save(output)
        files.sweep(output)
    _describe(built, output, time.monotonic() - began, watch)
    return built


def vectors_of(settings: Settings) -> list[str]:
    """Return the vectors from which a space is built; none if it exists already."""
    given = settings.space.vectors if settings.space is not None else []
    return given or ([] if settings.embeddings is None else [settings.embeddings.vectors])


def _describe(built: Space, output: str, seconds: float, watch: Watch) -> None:
    watch.say(
        f"{output}: {len(built):,} words, {built.dimensions} dimensions, {len(built.lists)} list"
        f"{'' if len(built.lists) == 1 else 's'}, {seconds:.1f} s\nsha256 {built.digest}"
    )
    asked = ", as asked" if "scale" in built.info["made"] else ""
    watch.say(f"Median distance of two words: {median_distance(built.vectors):.4g}{asked}.")
    if common := in_common(built):
        watch.say(f"{common}: every list has every word of the space, which the guarantee needs.")
    watch.say(built.info["made"].get("balance_note", "Balance 0, as asked."))
    watch.say(built.info["made"].get("grammar_note", "Grammar 0: the order of the lists knows meaning alone."))
    joined = sum(len(parts(word)) > 1 for word in built.vocabulary.words)
    if joined:
        watch.say(f"{joined:,} words are collocations, which the tokenizers gst and mst look up.")
    unreachable = len(built) - reachable(built) - joined
    if unreachable:
        watch.say(
            f"{unreachable:,} words never match the input, since the tokenizer does not produce them (capitals, "
            "punctuation inside, or numbers). They can still be drawn as replacements."
        )
    if built.counts is None:
        watch.say(
            "No public counts: 'resample' will draw all words with equal probability. Build the space with public "
            "counts to change that."
        )


def reachable(built: Space) -> int:
    """Return the number of words that the tokenizer can produce: those that are one lower-case word token."""
    import pyarrow as pa

    from corpusveil.text.tokens import Tokenizer, string_buffers

    words = built.vocabulary.words
    tokenizer = Tokenizer.of_words(words, built.hyphens or "split", built.language)
    tokens = tokenizer.tokens(*string_buffers(pa.array(words, pa.large_string())))
    single = tokens.offsets[1:] - tokens.offsets[:-1] == 1
    first = tokens.offsets[:-1][single]
    return int((tokens.ids[first] == [number for number, is_single in enumerate(single) if is_single]).sum())
