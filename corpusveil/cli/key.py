"""``corpusveil key``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from corpusveil.cli.options import Grouped, group

COMMAND = ("key", "Make and show secret keys.")

app = group(COMMAND[1])


@app.command(cls=Grouped)
def new(path: Annotated[str, typer.Argument(help="A new file for the key.", metavar="PATH")]) -> None:
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


@app.command(cls=Grouped)
def show(
    path: Annotated[str, typer.Argument(help="The file of the key.", metavar="PATH")],
    *,
    hex: Annotated[bool, typer.Option("--hex", help="Print the secret itself, as 64 hexadecimal digits.")] = False,
) -> None:
    """Print the fingerprint of a key, or the secret as an environment variable holds it.

    Example: export CORPUSVEIL_KEY=$(corpusveil key show release.key --hex)
    """
    from corpusveil.sampling.keys import Key

    key = Key.load(path)
    if not hex:
        print(f"{path}: fingerprint {key.fingerprint()}")
        return
    print(
        "warning: standard output has the secret. Whoever reads it can search for the originals of every release made "
        "with it; keep it out of logs, histories and repositories.",
        file=sys.stderr,
    )
    print(key.secret.hex())


@app.command(name="list", cls=Grouped)
def list_() -> None:
    """List the keys that were made because a run named none, and the output of each.

    Example: corpusveil key list
    """
    from corpusveil.errors import UserError
    from corpusveil.sampling.keys import Key
    from corpusveil.storage.home import configuration_path, own_keys

    keys = own_keys()
    for path, output in keys:
        try:
            about = f"fingerprint {Key.load(path).fingerprint()}"
        except UserError as error:
            about = f"not usable ({error.code})"
        made = "an output that is not noted: its run ended too early" if output is None else output
        print(f"{path}: {about}, made for {made}")
    if not keys:
        print(f"{configuration_path() / 'keys'}: no run without --key has made a key here.")
