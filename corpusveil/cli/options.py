"""Option types that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from corpusveil.waiting import Manner, choose


def space_folder(context: typer.Context, space: str | None) -> str | None:
    """Return the address of an option for a space: for ``demo``, the folder of the demo space."""
    if space is None or context.resilient_parsing:
        return space
    from corpusveil.pipelines.settings.fields import is_demo

    if not is_demo(space):
        return space
    from corpusveil.pipelines.demo_space import demo_path

    return demo_path("space")


ProgressOption = Annotated[Manner, typer.Option(help="How progress is shown; a bar needs a terminal.", callback=choose)]
SpaceOption = Annotated[
    str,
    typer.Option(
        help="The space: a folder or URL made by 'corpusveil space', or 'demo' for a small space of bundled text.",
        metavar="URL",
        callback=space_folder,
    ),
]
OutputOption = Annotated[str, typer.Option(help="The output: a new folder or URL.", metavar="URL")]
