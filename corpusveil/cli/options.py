"""Option types that several commands share."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Engine = Literal["local", "spark", "beam"]
Progress = Literal["auto", "bar", "lines", "none"]

ProgressOption = Annotated[Progress, typer.Option(help="How progress is shown: a bar needs a terminal.")]
LogOption = Annotated[
    str | None,
    typer.Option(
        help="Add events to this file, a JSON object a line: numbers, no text; '-' is standard error. Private.",
        metavar="PATH",
    ),
]
SpaceOption = Annotated[str, typer.Option(help="The space: a folder or URL made by 'corpusveil space'.", metavar="URL")]
OutputOption = Annotated[str, typer.Option(help="Where the result goes: a new folder or URL.", metavar="URL")]
EngineOption = Annotated[Engine, typer.Option(help="What runs the shard tasks; the output is the same for all.")]
WorkersOption = Annotated[int | None, typer.Option(help="Processes; default 1 (local), all cores (Spark).", min=1)]
MasterOption = Annotated[str | None, typer.Option(help="The Spark master.", metavar="URL")]
