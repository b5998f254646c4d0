"""``corpusveil verify``."""

from __future__ import annotations

from typing import Annotated

import typer

COMMAND = ("verify", "Check that a release is the one that its manifest describes.")


def verify(
    release: Annotated[str, typer.Argument(help="The folder or URL of a release.", metavar="RELEASE")],
    digest: Annotated[
        str | None, typer.Option(help="The SHA-256 of manifest.json, as the sender states it elsewhere.")
    ] = None,
) -> None:
    """Compare every file of a release with its manifest, and the manifest with a digest; nothing may be added.

    Example: corpusveil verify private/2026-11 --digest 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    """
    from corpusveil.transforms.release.verification import verify

    verification = verify(release, digest)
    print(verification)
    verification.require()
