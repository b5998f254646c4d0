"""``corpusveil train``: word vectors of a tokenised corpus."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Literal

import typer

from corpusveil.cli.options import EngineOption, MasterOption, OutputOption
from corpusveil.collocations.defaults import SPOOL_BYTES
from corpusveil.errors import UserError

LINE_SECONDS = 5.0


def train(
    tokens: Annotated[
        str,
        typer.Option(help="Made by 'corpusveil tokenize', or text files of a sentence a line.", metavar="URL"),
    ],
    output: OutputOption,
    dimensions: Annotated[int, typer.Option(help="Of the vectors.", min=1)] = 300,
    window: Annotated[int, typer.Option(min=1, help="gensim's window.")] = 5,
    negative: Annotated[int, typer.Option(min=0, help="Negative samples; 0 for none.")] = 5,
    hs: Annotated[int, typer.Option(min=0, max=1, help="1: hierarchical softmax.")] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the tokens.")] = 5,
    min_count: Annotated[int, typer.Option(min=1, help="Leave out tokens that occur more rarely.")] = 5,
    sg: Annotated[int, typer.Option(min=0, max=1, help="1: skip-gram, 0: CBOW.")] = 0,
    sample: Annotated[float, typer.Option(help="Down-sampling of frequent tokens.")] = 1e-3,
    alpha: Annotated[float, typer.Option(help="The first learning rate.")] = 0.025,
    seed: Annotated[int, typer.Option(min=0, help="Of the first vectors and of sampling.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="More than 1 is faster, and differs from run to run.")] = 1,
    trainer: Annotated[
        Literal["gensim", "spark"], typer.Option(help="gensim on one machine, or Spark MLlib.")
    ] = "gensim",
    spool: Annotated[int, typer.Option(min=1, help="The most disk for tokens, in bytes.")] = SPOOL_BYTES,
    engine: EngineOption = "local",
    master: MasterOption = None,
    progress: Annotated[Literal["auto", "bar", "lines", "none"], typer.Option(help="How progress is shown.")] = "auto",
) -> None:
    """Train word2vec: tokens in, vectors out; resumable, and deterministic with one thread.

    Example: corpusveil train --tokens tokens/c4-gst --output vectors/c4-gst --threads 6
    """
    from corpusveil.cli.engines import make_engine
    from corpusveil.cli.finished import said_when_made
    from corpusveil.collocations.training import train_vectors
    from corpusveil.collocations.word2vec import Training

    training = Training(
        dimensions=dimensions, window=window, negative=negative, hs=hs, epochs=epochs, min_count=min_count, sg=sg,
        sample=sample, alpha=alpha, seed=seed, workers=threads,
    )  # fmt: skip
    if trainer == "spark":
        from corpusveil.jobs.mllib import train_on_spark

        if engine == "beam":
            raise UserError("--trainer spark runs on Spark; leave --engine out.")
        with said_when_made(output):
            told = train_on_spark(tokens, output, training, master)
    else:
        show = _shown(progress) if engine == "local" and progress != "none" else None
        made = make_engine(engine, None, master)
        with said_when_made(output):
            told = train_vectors(tokens, output, made, training, spool_bytes=spool, progress=show)
    print(f"{output}: {told['words']:,} tokens, {told['dimensions']} dimensions, {told['seconds']:.1f} s")
    print(f"sha256 of the vectors {told['vectors_sha256']}")


def _shown(how: str):  # type: ignore[no-untyped-def]  # noqa: ANN202
    """Return what prints the share that is done, on one line of a terminal, else a line now and then."""
    on_terminal = how == "bar" or (how == "auto" and sys.stderr.isatty())
    last = [0.0]

    def show(share: float, rate: float) -> None:
        now = time.monotonic()
        if not on_terminal and now - last[0] < LINE_SECONDS:
            return
        last[0] = now
        line = f"training: {share:.1%}, {rate:,.0f} words/s"
        print(f"\r{line}   " if on_terminal else line, end="" if on_terminal else "\n", file=sys.stderr, flush=True)

    return show
