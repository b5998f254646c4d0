"""``corpusveil privatize``."""

from __future__ import annotations

from typing import Annotated

import typer

from corpusveil.cli.derived import derived
from corpusveil.cli.options import ProgressOption, Terminal
from corpusveil.pipelines.settings import Settings

COMMAND = ("privatize", "Privatize a corpus.")


@derived("privatize")
def privatize(
    settings: Settings,
    context: typer.Context,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the whole guarantee with every condition, not only its summary.")
    ] = False,
    _progress: ProgressOption = "auto",
) -> None:
    """Privatize a corpus: write private files and a manifest.

    Example: corpusveil privatize 'reviews/*.parquet' --text review --risk 0.5 --key release.key --output private
    """
    from corpusveil.pipelines.privatize import foresee, run

    if context.obj["plan"]:
        foresee(settings, Terminal())
    else:
        run(settings, Terminal(), debug=context.obj["debug"], explain=explain)
