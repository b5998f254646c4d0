"""``corpusveil privatize``."""

from __future__ import annotations

from typing import Annotated

import typer

from corpusveil.cli.derived import MOST_USED, derived
from corpusveil.cli.options import ProgressOption
from corpusveil.pipelines.settings import Settings

COMMAND = ("privatize", "Privatize a corpus.")


@derived("privatize")
def privatize(
    settings: Settings,
    context: typer.Context,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Estimate time, memory and spending from a sample, and do nothing else.",
            rich_help_panel=MOST_USED,
        ),
    ] = False,
    plan_duplicates: Annotated[
        bool,
        typer.Option(
            "--plan-duplicates", help="Like --plan, and count equal documents, too.", rich_help_panel="Rarely used"
        ),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the whole guarantee with every condition, not only its summary.")
    ] = False,
    progress: ProgressOption = "auto",
) -> None:
    """Privatize a corpus: shards in, private shards and a manifest out.

    Example: corpusveil privatize 'reviews/*.jsonl.gz' --text review --risk 0.5 --key release.key --output private
    """
    from corpusveil.cli.progress import Terminal
    from corpusveil.pipelines.privatize import foresee, run

    if plan or plan_duplicates:
        foresee(settings, Terminal(progress), duplicates=plan_duplicates)
    else:
        run(settings, Terminal(progress), debug=context.obj["debug"], explain=explain)
