"""Option types that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from corpusveil.waiting import Manner, choose

ProgressOption = Annotated[Manner, typer.Option(help="How progress is shown; a bar needs a terminal.", callback=choose)]
SpaceOption = Annotated[
    str,
    typer.Option(
        help="The space: a folder or URL made by 'corpusveil space', or the name of an installed space, such as 'en'.",
        metavar="URL",
    ),
]
