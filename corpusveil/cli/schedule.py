"""``corpusveil schedule``."""

from __future__ import annotations

from typing import Annotated

import typer

from corpusveil.cli.options import ProgressOption, Terminal

COMMAND = ("schedule", "Privatize shards that are new since the last run.")


def schedule(
    file: Annotated[str, typer.Argument(help="The configuration of the release.", metavar="FILE.toml")],
    status: Annotated[
        bool, typer.Option("--status", help="Show what was done and what is due; do nothing else.")
    ] = False,
    repair: Annotated[bool, typer.Option("--repair", help="First restore damaged files of earlier runs.")] = False,
    _progress: ProgressOption = "auto",
) -> None:
    """Privatize the shards that are new or changed since the last run, each time as a separate release.

    If it is started twice, one start does the work and the other says so. The next start makes up for a missed or
    killed start.

    Example: corpusveil schedule release.toml
    """
    from corpusveil.pipelines import schedule as scheduled
    from corpusveil.pipelines.settings.toml import read

    document = read(file)
    if status:
        for line in scheduled.status(document):
            print(line)
    elif outcome := scheduled.start(document, Terminal(), repair=repair):
        raise typer.Exit(outcome)
