"""``corpusveil tokenize``: a corpus into words or collocations."""

from __future__ import annotations

import time
from typing import Annotated, Literal

import typer

from corpusveil.choices import Hyphens
from corpusveil.cli.options import EngineOption, MasterOption, OutputOption, ProgressOption, WorkersOption


def tokenize(
    inputs: Annotated[
        list[str], typer.Argument(help="Files, folders or quoted globs, at any fsspec URL.", metavar="INPUT...")
    ],
    output: OutputOption,
    tokenizer: Annotated[
        Literal["word", "gst", "mst", "optimal"], typer.Option(help="Words, or collocations by one of three methods.")
    ],
    collocations: Annotated[str | None, typer.Option(help="Made by 'corpusveil score'.", metavar="URL")] = None,
    text: Annotated[str, typer.Option(help="The column with the text.", metavar="COLUMN")] = "text",
    hyphens: Annotated[
        Hyphens | None,
        typer.Option(help="A hyphen between letters parts words or joins them; default: as in the collocations."),
    ] = None,
    engine: EngineOption = "local",
    workers: WorkersOption = None,
    master: MasterOption = None,
    progress: ProgressOption = "auto",
) -> None:
    """Tokenise a corpus: shards of tokens for 'corpusveil train', as Parquet and as a sentence a line.

    Example: corpusveil tokenize 'c4/*.json.gz' --tokenizer gst --collocations collocations/c4 --output tokens/c4-gst
    """
    from corpusveil.cli.engines import make_engine
    from corpusveil.cli.finished import said_when_made
    from corpusveil.cli.progress import stage_watcher
    from corpusveil.collocations.tokenize import tokenize_corpus

    began = time.monotonic()
    made = make_engine(engine, workers, master)
    watch = stage_watcher(progress)
    with said_when_made(output):
        told = tokenize_corpus(inputs, output, made, tokenizer, collocations, text=text, hyphens=hyphens, watch=watch)
    print(
        f"{output}: {told['words']:,} words became {told['tokens']:,} tokens, {told['different_tokens']:,} different, "
        f"in {told['sentences']:,} sentences; {time.monotonic() - began:.1f} s"
    )
