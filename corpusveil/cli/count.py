"""``corpusveil count``: n-gram counts of a corpus."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from corpusveil.choices import Hyphens
from corpusveil.cli.options import EngineOption, MasterOption, OutputOption, ProgressOption, WorkersOption
from corpusveil.errors import UserError


def count(
    inputs: Annotated[
        list[str], typer.Argument(help="Files, folders or quoted globs, at any fsspec URL.", metavar="INPUT...")
    ],
    output: OutputOption,
    max_n: Annotated[int, typer.Option(help="The longest n-grams, 1 to 5 words.")] = 3,
    min_count: Annotated[int, typer.Option(help="Leave out n-grams that occur more rarely.")] = 5,
    text: Annotated[str, typer.Option(help="The column with the text.", metavar="COLUMN")] = "text",
    hyphens: Annotated[
        Hyphens, typer.Option(help="A hyphen between letters parts words, or joins them to one: long-term.")
    ] = "split",
    add_to: Annotated[
        str | None, typer.Option(help="Earlier counts that the corpus is added to; they stay.", metavar="URL")
    ] = None,
    engine: EngineOption = "local",
    workers: WorkersOption = None,
    master: MasterOption = None,
    progress: ProgressOption = "auto",
) -> None:
    """Count the n-grams of a corpus, within sentences, lower-cased; exact, in bounded memory, and resumable.

    Example: corpusveil count 'c4/*.json.gz' --output counts/c4 --engine spark
    """
    from corpusveil.cli.engines import make_engine
    from corpusveil.cli.finished import said_when_made
    from corpusveil.cli.progress import stage_watcher
    from corpusveil.collocations.count import CountOptions, count_corpus

    if add_to is not None and (max_n, min_count, text, hyphens) != (3, 5, "text", "split"):
        raise UserError(
            "--add-to takes --max-n, --min-count, --text and --hyphens from the earlier counts; leave them out."
        )
    began = time.monotonic()
    options = CountOptions(max_n, min_count, text, hyphens)
    made = make_engine(engine, workers, master)
    with said_when_made(output):
        told = count_corpus(inputs, output, made, options, add_to=add_to, watch=stage_watcher(progress))
    seconds = time.monotonic() - began
    least, longest = told["options"]["min_count"], told["options"]["max_n"]
    print(
        f"{output}: {told['ngrams']:,} n-grams of 1 to {longest} words that occur {least} times or more; "
        f"{told['documents']:,} documents, {told['sentences']:,} sentences, {told['words']:,} words, "
        f"{told['different_words']:,} different ones; {seconds:.1f} s"
    )
    if told["words_left_out"]:
        print(
            f"{told['words_left_out']:,} words that are frequent only now are left out, since the earlier counts lack "
            "their n-grams; count everything again to have them."
        )
