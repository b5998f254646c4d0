"""``corpusveil demo``."""

from __future__ import annotations

from typing import Annotated

import typer

COMMAND = ("demo", "Run the whole flow on bundled text.")


def demo(
    output: Annotated[str, typer.Option(help="A folder for all files; replaces an earlier demo.")] = "demo-output",
) -> None:
    """Find collocations in bundled public text, train vectors, build a list, privatize documents on every engine here.

    Example: corpusveil demo --output demo-output
    """
    from corpusveil.cli.demonstration import demonstrate

    demonstrate(output)
