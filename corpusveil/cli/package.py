"""``corpusveil package``: what a cluster needs to run corpusveil."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from corpusveil.cli.options import OutputOption
from corpusveil.jobs.package import commands, package_spark


def package(
    kind: Annotated[Literal["spark"], typer.Argument(help="The kind of cluster.")],
    output: OutputOption,
    extra: Annotated[
        list[str] | None, typer.Option(help="Clients of object stores: s3, gcs, azure (repeatable).", metavar="NAME")
    ] = None,
) -> None:
    """Build one file with corpusveil and its dependencies, and say how to submit with it.

    It takes minutes, and the package index; the machines of the cluster need neither, only a Python of this version.

    Example: corpusveil package spark --output packed --extra s3
    """
    print(f"building for {kind}", file=sys.stderr)
    for path in package_spark(output, extra or []):
        size = path.stat().st_size >> 20
        print(f"{path} ({size:,} MiB)" if size else path)
    for name, command in commands(output).items():
        print(f"\n{name}:\n  {command}")
