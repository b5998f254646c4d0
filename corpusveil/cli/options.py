"""Option types that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from corpusveil.jobs import registry

if TYPE_CHECKING:
    Engine = str
else:
    Engine = Literal[*registry.names()]
Progress = Literal["auto", "bar", "lines", "none"]

ProgressOption = Annotated[Progress, typer.Option(help="How progress is shown; a bar needs a terminal.")]
EngineOption = Annotated[
    Engine, typer.Option(help="The engine that runs the tasks; the output is the same for all engines.")
]
SpaceOption = Annotated[
    str,
    typer.Option(
        help="The space: a folder or URL made by 'corpusveil space', or 'demo' for a small space of bundled text.",
        metavar="URL",
    ),
]
OutputOption = Annotated[str, typer.Option(help="The output: a new folder or URL.", metavar="URL")]
WorkersOption = Annotated[
    int | None, typer.Option(help="Number of processes. Default: 1 (local), all cores (Spark).", min=1)
]
MasterOption = Annotated[str | None, typer.Option(help="The Spark master.", metavar="URL")]
