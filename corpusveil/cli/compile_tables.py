"""``corpusveil compile``."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from corpusveil.cli.options import SpaceOption
from corpusveil.errors import DataError

COMMAND = ("compile", "Build the tables of a mechanism in advance.")


def compile_tables(
    space: SpaceOption,
    mechanism: Annotated[str, typer.Option(help="An exponential mechanism on vectors.", metavar="NAME")],
    epsilon: Annotated[list[float], typer.Option(help="Epsilon of a word. Repeatable.")],
    parameter: Annotated[
        list[str] | None, typer.Option(help="A parameter of the mechanism. Repeatable.", metavar="NAME=VALUE")
    ] = None,
) -> None:
    """Build the tables of a mechanism for all words, and keep them in the cache, from which every process maps them.

    Otherwise each process builds the rows of the words that occur in its input.

    Example: corpusveil compile --space spaces/glove --mechanism santext --epsilon 5
    """
    from corpusveil.mechanisms import make
    from corpusveil.mechanisms.on_distances import OnDistances
    from corpusveil.pipelines.settings.fields import pairs
    from corpusveil.spaces import load_space
    from corpusveil.storage import files, home, lease

    made = make(mechanism, load_space(space), **pairs("parameter", parameter or []))
    if not isinstance(made, OnDistances):
        raise DataError(f"{mechanism}: this mechanism needs no tables; there is nothing to compile.")
    with lease.hold(
        files.join(str(home.cache_folder("leases")), f"{made.space.digest[:16]}-{mechanism}", lease.FOLDER)
    ):
        for value in epsilon:
            began = time.monotonic()
            print(f"epsilon {value:g}: {made.rows(value).keep()}, {time.monotonic() - began:.1f} s")
