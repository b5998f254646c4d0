"""``corpusveil space``: from word vectors to a frozen space."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from corpusveil.cli.options import OutputOption, ProgressOption

if TYPE_CHECKING:
    from corpusveil.spaces import Space


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
    union: Annotated[
        bool, typer.Option("--union", help="Keep words that only some of the embeddings have, on the others' lists.")
    ] = False,
    vocabulary: Annotated[
        str | None, typer.Option(help="Keep none but the words of this file, one a line.", metavar="FILE")
    ] = None,
    importance: Annotated[
        str | None,
        typer.Option(
            help="Public factors for words' vectors, word<TAB>number a line: above 1 a word stands further from others "
            "and is changed less.",
            metavar="FILE",
        ),
    ] = None,
    counts: Annotated[
        str | None,
        typer.Option(
            help="Public word counts that 'resample' draws from: what 'corpusveil count' wrote, or word<TAB>count.",
            metavar="URL",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Public seed of the lists' start words.", min=0)] = 0,
    progress: ProgressOption = "auto",
) -> None:
    """Build a space: vocabulary, vectors and one-dimensional lists, hashed and frozen.

    Example: corpusveil space --vectors vectors.txt.gz --output spaces/glove
    """
    from corpusveil.cli.finished import said_when_made
    from corpusveil.spaces import Vocabulary, build_space, load_space, read_counts, read_vectors
    from corpusveil.spaces.build import call_of
    from corpusveil.spaces.importance import read_importance, scaled
    from corpusveil.spaces.space import is_made
    from corpusveil.spaces.vocabulary import parts, read_words
    from corpusveil.storage import files, lease

    began = time.monotonic()
    read = []
    for url in vectors:
        with _working(progress, f"reading {url}"):
            read.append(read_vectors(url))
    if importance is not None:
        factors = read_importance(importance)
        read = [scaled(one, factors) for one in read]
    counted = None if counts is None else read_counts(counts, Vocabulary.from_words(read[0].words), read[0].hyphens)
    only = None if vocabulary is None else read_words(vocabulary)
    size = len(read[0].words)
    if only is not None:
        known = set().union(*(one.words for one in read))
        missing = sum(word not in known for word in only)
        size = len(only) - missing
        if missing:
            print(f"{missing:,} of the {len(only):,} words of {vocabulary} have no vector: left out", file=sys.stderr)
    chosen: dict[str, Any] = {
        "lists": lists, "seed": seed, "counts": counted, "order": order, "union": union, "only": only,
    }  # fmt: skip
    with lease.hold(files.join(files.absolute(output), lease.FOLDER)), said_when_made(output):
        if is_made(output, call_of(read, **chosen)):
            built = load_space(output)
        else:
            with _working(progress, f"ordering {size:,} words (grows with their square)"):
                built = build_space(read, **chosen)
            built = built.save(output)
        files.sweep(output)
    print(
        f"{output}: {len(built):,} words, {built.dimensions} dimensions, {len(built.lists)} list"
        f"{'' if len(built.lists) == 1 else 's'}, {time.monotonic() - began:.1f} s\nsha256 {built.digest}"
    )
    joined = sum(len(parts(word)) > 1 for word in built.vocabulary.words)
    if joined:
        print(f"{joined:,} of them are collocations, which are looked up with --tokenizer gst, mst or optimal.")
    unreachable = len(built) - reachable(built) - joined
    if unreachable:
        print(
            f"{unreachable:,} of the words are never looked up, since the tokenizer does not produce them (capitals, "
            "punctuation inside, or numbers); they can still come out as replacements."
        )
    if built.counts is None:
        print("No public counts: 'resample' will draw every word alike. Give some with --counts.")


@contextlib.contextmanager
def _working(how: str, what: str) -> Iterator[None]:
    """Show that something is going on, and for how long: a spinner on a terminal, lines elsewhere."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    if how == "none":
        yield
    elif how == "bar" or (how == "auto" and sys.stderr.isatty()):
        named = TextColumn("{task.description}", markup=False)  # a name may hold braces and brackets
        with Progress(SpinnerColumn(), named, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
            bar.add_task(what, total=None)
            yield
    else:
        with _said(what):
            yield


@contextlib.contextmanager
def _said(what: str) -> Iterator[None]:
    """Say on standard error what is going on, and every few seconds for how long it has been."""
    from corpusveil.cli.progress import LINE_SECONDS

    print(what, file=sys.stderr, flush=True)
    began = time.monotonic()
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(LINE_SECONDS):
            print(f"{what}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def reachable(built: Space) -> int:
    """Return how many words the tokenizer can find: those that are one lower-case word token."""
    from corpusveil.text.tokens import Tokenizer

    words = built.vocabulary.words
    tokens = Tokenizer.of_words(words, built.hyphens or "split").tokenize(words)
    single = tokens.offsets[1:] - tokens.offsets[:-1] == 1
    first = tokens.offsets[:-1][single]
    return int((tokens.ids[first] == [number for number, one in enumerate(single) if one]).sum())
