"""``corpusveil package``."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from corpusveil.errors import SettingError

COMMAND = ("package", "Write the files that a cluster needs.")


def package(
    kind: Annotated[Literal["spark", "dataflow"], typer.Argument(help="The kind of cluster.")],
    output: Annotated[str, typer.Option(help="The output: a new folder or URL.", metavar="URL")],
    extra: Annotated[
        list[str] | None,
        typer.Option(help="For spark: clients of object stores: s3, gcs, azure. Repeatable.", metavar="NAME"),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(help="For dataflow: the image to build, REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME:TAG."),
    ] = None,
) -> None:
    """Write the files that a cluster needs, and print the commands to build and submit.

    For Spark: one file with corpusveil and its dependencies. Building it takes minutes and needs the package index; the
    machines of the cluster only need a Python of this version. For Dataflow: the folder of the workers' image.

    Example: corpusveil package spark --output packed --extra s3

    Example: corpusveil package dataflow --output image --image europe-docker.pkg.dev/project/private/corpusveil:1
    """
    from corpusveil.deployment import package as packed

    if kind == "dataflow" and image is None:
        raise SettingError(
            "package dataflow needs an image; add --image REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME:TAG."
        )
    if (kind == "spark") != (image is None) or (kind == "dataflow" and extra):
        raise SettingError(
            "--image is for package dataflow, and --extra is for package spark; leave out the option of the other "
            "cluster."
        )
    print(f"building for {kind}", file=sys.stderr)
    if image is None:
        made, commands = packed.package_spark(output, extra or []), packed.spark_commands(output)
    else:
        made, commands = packed.package_dataflow(output, image), packed.dataflow_commands(output, image)
    for path in made:
        size = path.stat().st_size >> 20
        print(f"{path} ({size:,} MiB)" if size else path)
    for name, command in commands.items():
        print(f"\n{name}:\n  {command}")
