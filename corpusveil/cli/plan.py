"""``corpusveil plan``."""

from __future__ import annotations

from typing import Annotated

import typer

from corpusveil.errors import UnsetError

COMMAND = ("plan", "Estimate the time, memory and budget of a release.")


def plan(
    file: Annotated[str, typer.Argument(help="The configuration.", metavar="FILE.toml")],
    duplicates: Annotated[
        bool, typer.Option("--duplicates", help="Also count equal documents, which reads everything.")
    ] = False,
) -> None:
    """Forecast what the release of a configuration would read, write, take and spend, from a sample; write nothing.

    Its space, and its collocation table, must exist. For the folder of a release, show what it spends.

    Example: corpusveil plan release.toml
    """
    from corpusveil.cli.progress import Terminal
    from corpusveil.pipelines import scheduled
    from corpusveil.pipelines.privatize import foresee
    from corpusveil.pipelines.settings.toml import read
    from corpusveil.transforms.release.released import spends_of

    if (spends := spends_of(file)) is not None:
        print(spends)
        return
    document = read(file)
    if document.settings.output is None:
        raise UnsetError(f"{file}: the file has no release to plan; add [output] and the sections that it needs.")
    watch = Terminal("none")
    foresee(scheduled.without_left_out(document, watch), watch, duplicates=duplicates)
