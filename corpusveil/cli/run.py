"""``corpusveil run`` and ``plan``: everything that a configuration file asks for, done or foreseen."""

from __future__ import annotations

from typing import Annotated

import typer

from corpusveil.cli.options import ProgressOption
from corpusveil.errors import UserError

STEPS = ("count", "score", "tokenize", "train", "space", "privatize")


def run_file(
    file: Annotated[str, typer.Argument(help="The configuration.", metavar="FILE.toml")],
    only: Annotated[str | None, typer.Option(help=f"Do one step: {', '.join(STEPS)}.", metavar="STEP")] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the configuration with all its defaults, and do nothing.")
    ] = False,
    progress: ProgressOption = "auto",
) -> None:
    """Do what a configuration file asks for: from raw corpus to collocations, vectors, a space and a release.

    Steps whose artefacts are there and were made of the same settings are not done again.

    Example: corpusveil run release.toml
    """
    from corpusveil.cli.configuration import read_configuration
    from corpusveil.cli.main import run
    from corpusveil.cli.steps import behind, do, steps

    configuration = read_configuration(file)
    if print_config:
        print(configuration.toml(), end="")
        return
    planned = list(steps(configuration))
    names = [step.name for step in planned]
    if only is not None and only not in names:
        raise UserError(f"--only {only}: {file} has the steps {', '.join(names)}.")
    for step in planned:
        if only in (None, step.name):
            last = ["--progress", progress, *(behind(configuration) if step.name == "privatize" else [])]
            do(step, run, last)


def plan_file(
    file: Annotated[str, typer.Argument(help="The configuration.", metavar="FILE.toml")],
    duplicates: Annotated[
        bool, typer.Option("--duplicates", help="Count equal documents, too, which reads everything.")
    ] = False,
) -> None:
    """Say what the release of a configuration would read, write, take and spend, from a sample; write nothing.

    Its space, and its collocation table, have to be there.

    Example: corpusveil plan release.toml
    """
    from corpusveil.cli.configuration import read_configuration
    from corpusveil.cli.main import run
    from corpusveil.cli.steps import planning

    configuration = read_configuration(file)
    if "output" not in configuration.values:
        raise UserError(f"{file}: there is no release in it to plan; add [output] and the sections that it needs.")
    status = run([*planning(configuration), "--plan-duplicates" if duplicates else "--plan"])
    if status:
        raise typer.Exit(status)
