"""``corpusveil run``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corpusveil.cli.options import ProgressOption, Terminal
from corpusveil.errors import AddressError, MissingError, SettingError
from corpusveil.pipelines.flows import ADDED, FLOWS

COMMAND = ("run", "Run every step of a configuration file.")

STEPS = (*(flow.name for flow in FLOWS), *ADDED.names())


def run(
    file: Annotated[str | None, typer.Argument(help="The configuration.", metavar="FILE.toml")] = None,
    only: Annotated[
        str | None, typer.Option(help=f"Run one step: {', '.join(STEPS)}. Default: all.", metavar="STEP")
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the configuration with all its defaults, and do nothing else.")
    ] = False,
    init: Annotated[
        str | None,
        typer.Option(
            metavar="[passages] FILE.toml",
            help="Write a new configuration to this file, and its schema next to it. It has the keys that you "
            "have to decide for a release by words or, with the word passages, by passages.",
        ),
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of the settings.")] = False,
    _progress: ProgressOption = "auto",
) -> None:
    """Run every step of a configuration file: from raw corpus to collocations, vectors, a space and a release.

    It skips steps whose artifacts exist with the same settings.

    Example: corpusveil run release.toml
    """
    from corpusveil.pipelines.run import run as run_steps
    from corpusveil.pipelines.settings import toml

    if schema:
        print(toml.schema(), end="")
        return
    target = file if init in (None, "passages") else init
    if target is None:
        raise SettingError("FILE.toml is missing; 'corpusveil run --init FILE.toml' writes a template.")
    if init is not None:
        if target is not file and file is not None:
            raise SettingError(f"--init {init}: write 'passages' here, or no second file.")
        _init(target, toml.template("words" if init is target else init))
        return
    document = toml.read(target)
    if print_config:
        print(toml.written(document), end="")
        return
    run_steps(document, Terminal(), only=only)


def _init(file: str, text: str) -> None:
    """Write a template and its schema next to it; neither overwrites a file."""
    from corpusveil.pipelines.settings import toml

    path = Path(file)
    if path.exists():
        raise AddressError(f"{file}: this file already exists; choose another name.")
    if not path.parent.is_dir():
        raise MissingError(f"{path.parent}: there is no such folder; make it first.")
    path.write_text(text, encoding="utf-8")
    print(path)
    beside = path.with_name(toml.SCHEMA)
    if not beside.exists() or beside.read_text(encoding="utf-8") != toml.schema():
        beside.write_text(toml.schema(), encoding="utf-8")
        print(beside)
