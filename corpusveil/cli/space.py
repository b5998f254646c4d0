"""``corpusveil space``: from word vectors to a frozen space."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Literal

import typer

from corpusveil.cli.options import OutputOption
from corpusveil.spaces import Space, Vocabulary, build_space, read_counts, read_vectors
from corpusveil.text.tokens import Tokenizer


def space(
    vectors: Annotated[
        list[str],
        typer.Option(
            help="Word vectors (repeatable): word2vec or GloVe text, .bin, .kv, .npz, .parquet.", metavar="FILE"
        ),
    ],
    output: OutputOption,
    lists: Annotated[int, typer.Option(help="Lists an embedding.", min=0)] = 1,
    order: Annotated[Literal["greedy", "improved"], typer.Option(help="How lists are ordered.")] = "greedy",
    counts: Annotated[
        str | None, typer.Option(help="Public word counts that 'resample' draws from.", metavar="URL")
    ] = None,
    seed: Annotated[int, typer.Option(help="Public seed of the lists' start words.", min=0)] = 0,
) -> None:
    """Build a space: vocabulary, vectors and one-dimensional lists, hashed and frozen.

    Example: corpusveil space --vectors vectors.txt.gz --output spaces/glove
    """
    began = time.monotonic()
    for url in vectors:
        print(f"reading {url}", file=sys.stderr)
    read = [read_vectors(url) for url in vectors]
    counted = None if counts is None else read_counts(counts, Vocabulary.from_words(read[0].words))
    print(f"ordering {len(read[0].words):,} words (grows with their square)", file=sys.stderr)
    built = build_space(read, lists=lists, seed=seed, counts=counted, order=order).save(output)
    print(
        f"{output}: {len(built):,} words, {built.dimensions} dimensions, {len(built.lists)} list"
        f"{'' if len(built.lists) == 1 else 's'}, {time.monotonic() - began:.1f} s\nsha256 {built.digest}"
    )
    unreachable = len(built) - reachable(built)
    if unreachable:
        print(
            f"{unreachable:,} of the words are never looked up, since the tokenizer does not produce them (capitals, "
            "punctuation inside, or numbers); they can still come out as replacements."
        )
    if counts is None:
        print("No public counts: 'resample' will draw every word alike. Give some with --counts.")


def reachable(built: Space) -> int:
    """Return how many words the tokenizer can find: those that are one lower-case word token."""
    words = built.vocabulary.words
    tokens = Tokenizer.of_words(words).tokenize(words)
    single = tokens.offsets[1:] - tokens.offsets[:-1] == 1
    first = tokens.offsets[:-1][single]
    return int((tokens.ids[first] == [number for number, one in enumerate(single) if one]).sum())
