"""``corpusveil score``: the collocations among counted n-grams."""

from __future__ import annotations

import time
from typing import Annotated, Literal

import typer

from corpusveil.choices import Measure
from corpusveil.cli.options import EngineOption, MasterOption, OutputOption, ProgressOption, WorkersOption

SHOWN = 10


def score(
    counts: Annotated[str, typer.Option(help="Made by 'corpusveil count'.", metavar="URL")],
    output: OutputOption,
    measure: Annotated[Measure, typer.Option(help="What is computed.")] = "pmi",
    threshold: Annotated[float, typer.Option(help="The least score that is kept.")] = 2.0,
    min_count: Annotated[int, typer.Option(help="Leave out n-grams that occur more rarely.", min=1)] = 1,
    connectors: Annotated[
        str | None, typer.Option(help="Connector words, one a line; default: gensim's for English.", metavar="FILE")
    ] = None,
    connectors_rule: Annotated[
        Literal["strict", "edges"], typer.Option(help="No connector anywhere, or none first or last.")
    ] = "strict",
    engine: EngineOption = "local",
    workers: WorkersOption = None,
    master: MasterOption = None,
    progress: ProgressOption = "auto",
) -> None:
    """Score n-grams by how much more often than by chance their words stand together.

    Example: corpusveil score --counts counts/c4 --output collocations/c4 --min-count 20
    """
    from corpusveil.cli.engines import make_engine
    from corpusveil.cli.finished import said_when_made
    from corpusveil.cli.progress import stage_watcher
    from corpusveil.collocations.connectors import connector_words
    from corpusveil.collocations.measures import Scoring
    from corpusveil.collocations.score import TABLE, score_counts
    from corpusveil.storage import files
    from corpusveil.storage.parquet import opened

    began = time.monotonic()
    scoring = Scoring(measure, threshold, min_count, connector_words(connectors), connectors_rule)
    made = make_engine(engine, workers, master)
    with said_when_made(output):
        told = score_counts(counts, output, made, scoring, watch=stage_watcher(progress))
    numbers = ", ".join(f"{count:,} of {n} words" for n, count in told["collocations"].items())
    print(f"{output}: {numbers}; {time.monotonic() - began:.1f} s")
    with files.open_read(files.join(files.absolute(output), TABLE)) as file:
        top = next(opened(file).iter_batches(SHOWN, use_threads=False)).to_pylist()
    print("first: " + ", ".join(f"{row['ngram']} ({row['score']:.2f})" for row in top))
