"""``corpusveil verify``."""

from __future__ import annotations

from typing import Annotated

import typer

COMMAND = ("verify", "Check that a release is the one that its manifest describes.")


def verify(
    release: Annotated[str, typer.Argument(help="The folder or URL of a release.", metavar="RELEASE")],
    digest: Annotated[
        str | None,
        typer.Option(help="The SHA-256 of manifest.json that the sender published. Default: none.", metavar="SHA256"),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="A claim that the manifest must make: nats<=N with per=WHAT, cap<=N with unit=COLUMN, or mechanism, "
            "space, release, key or kept=NAME. Repeatable. Default: none.",
            metavar="CLAIM",
        ),
    ] = None,
) -> None:
    """Compare all files of a release with its manifest, and the manifest with a digest. Added files are differences.

    Example: corpusveil verify private/2026-11 --require 'nats<=14' --require per=document
    """
    from corpusveil.transforms.release.verification import verify

    verification = verify(release, digest, require or ())
    print(verification)
    verification.require()
