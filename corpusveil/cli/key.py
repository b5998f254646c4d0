"""``corpusveil key``."""

from __future__ import annotations

from typing import Annotated

import typer

COMMAND = ("key", "Make secret keys.")

app = typer.Typer(help="Make secret keys.", no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def _key() -> None:
    """Make secret keys."""


@app.command()
def new(path: Annotated[str, typer.Argument(help="Path of the new key; no file may exist there.")]) -> None:
    """Write a new key: 32 random bytes, readable by you alone.

    Example: corpusveil key new release.key
    """
    from corpusveil.sampling.keys import Key

    key = Key.generate()
    key.save(path)
    print(
        f"{path}: a new key, mode 0600, fingerprint {key.fingerprint()}. Keep it apart from the files that are made "
        "with it."
    )
