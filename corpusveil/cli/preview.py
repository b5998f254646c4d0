"""``corpusveil preview``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from corpusveil.cli.derived import derived
from corpusveil.cli.options import ProgressOption, Terminal
from corpusveil.pipelines.settings import Settings

COMMAND = ("preview", "Show a few texts before and after. Writes nothing.")
EPSILONS, OF_PASSAGES = (0.5, 1.0, 3.0), (8.0, 10.0, 12.0)


@derived("preview")
def preview(
    settings: Settings,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(
            help="An epsilon per word (default: 0.5, 1, 3) or, with --store, per text (default: 8, 10, 12). "
            "Repeatable.",
            rich_help_panel="How private",
        ),
    ] = None,
    _progress: ProgressOption = "auto",
) -> None:
    """Show the first five texts before and after, at a risk or several epsilons. Writes and spends nothing.

    Without --key, a key is made and thrown away.

    Example: corpusveil preview reviews.csv --text review --risk 0.5
    """
    from corpusveil.pipelines.preview import preview as shown
    from corpusveil.sampling.weights import check_epsilon

    usual = EPSILONS if settings.store is None else OF_PASSAGES
    epsilons = epsilon or (usual if settings.value("budget.risk") is None else ())
    made = shown(settings, [check_epsilon(value) for value in epsilons])
    if not sys.stdout.isatty():
        Terminal().warn("warning: this preview contains original text and is being written to a file or pipe.")
    print(made)
