"""``corpusveil demo``."""

from __future__ import annotations

from typing import Annotated

import typer

COMMAND = ("demo", "Show releases of bundled text, and how public artifacts are made.")


def demo(
    output: Annotated[str, typer.Option(help="A folder for all files; replaces an earlier demo.")] = "demo-output",
) -> None:
    """Release bundled texts by passages and by words on every engine here, and make public artifacts; write a page.

    Example: corpusveil demo --output demo-output
    """
    from corpusveil.cli.demonstration import demonstrate

    demonstrate(output)
