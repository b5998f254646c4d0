"""``corpusveil evaluate release`` and ``readers``: the commands; that of studies is in their package."""

from __future__ import annotations

from typing import Annotated

import typer

from corpusveil.cli.derived import derived
from corpusveil.pipelines.settings import Settings
from corpusveil_evaluate.settings import COMMAND


@derived(COMMAND)
def release(settings: Settings) -> None:
    """Compare a release with its original: a page, JSON and CSV. They show original text, so they are private.

    Example: corpusveil evaluate release reviews.parquet private/reviews --space spaces/glove --label stars
    --attribute gender --output evaluation
    """
    from corpusveil.cli.progress import Terminal
    from corpusveil_evaluate.report.beside_original import run

    run(settings, Terminal("none"))


def readers(
    space: Annotated[str, typer.Option(help="The space.", metavar="URL")],
    epsilon: Annotated[float, typer.Option(help="The epsilon of a word.", metavar="NUMBER")],
    mechanism: Annotated[str, typer.Option(help="The mechanism.", metavar="NAME")] = "ring-geometric",
    parameter: Annotated[
        list[str] | None, typer.Option(help="A parameter of the mechanism. Repeatable.", metavar="NAME=VALUE")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="A language model of public text, made by 'model', for readers who have one.", metavar="URL"),
    ] = None,
    stop_words: Annotated[
        str, typer.Option(help="The treatment of stop words, as of 'privatize'.", metavar="POLICY")
    ] = "privatize",
    output: Annotated[str | None, typer.Option(help="Write JSON to this file.", metavar="URL")] = None,
) -> None:
    """Print what share of words each of several readers guesses, who know ever more. Everything is public.

    Example: corpusveil evaluate readers --space en --epsilon 1 --model en
    """
    import dataclasses
    import json

    from corpusveil.language.model import load_model
    from corpusveil.mechanisms import make
    from corpusveil.pipelines.fields import pairs
    from corpusveil.spaces import load_space
    from corpusveil.storage import files
    from corpusveil.text.policy import TextPolicy
    from corpusveil_evaluate.readers.ladder import reader_ladder

    policy = TextPolicy(stop_words=stop_words)  # type: ignore[arg-type]
    made = make(mechanism, load_space(space), **pairs("parameter", parameter or []))
    ladder = reader_ladder(made, epsilon, None if model is None else load_model(model), policy=policy)
    print(ladder)
    if output is not None:
        files.write_bytes(output, (json.dumps(dataclasses.asdict(ladder), indent=1) + "\n").encode())
