"""The folder from which the image of a Dataflow job's workers is built."""

from __future__ import annotations

import re
import string
import sys
from importlib import metadata, resources
from pathlib import Path

from corpusveil.deployment.wheel import build_wheel, constraints
from corpusveil.errors import BadValueError, PackageError

_IMAGE = re.compile(r"[a-z0-9][a-z0-9.-]*\.[a-z]+(/[a-z0-9]+([._-]+[a-z0-9]+)*)+:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def package_dataflow(output: str, image: str) -> list[Path]:
    """Write Dockerfile, constraints and the wheel of corpusveil into a folder; return them.

    Raises UserError for an invalid image address, and without Beam; WorkError if the wheel cannot be written.
    """
    if not _IMAGE.fullmatch(image):
        raise BadValueError(f"image = {image}: write the image as REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME:TAG.")
    try:
        beam = metadata.version("apache-beam")
    except metadata.PackageNotFoundError:
        raise PackageError("package dataflow needs Apache Beam: pip install 'corpusveil[dataflow]'.") from None
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    wheel = build_wheel(folder)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    form = resources.files(__package__).joinpath("template_files", "Dockerfile.in").read_text(encoding="utf-8")
    dockerfile, pinned = folder / "Dockerfile", folder / "constraints.txt"
    dockerfile.write_text(string.Template(form).substitute(python=python, beam=beam, wheel=wheel.name))
    pinned.write_text(constraints())
    return [dockerfile, pinned, wheel]


def commands(folder: str, image: str) -> dict[str, str]:
    """Return how to build the image and how to run a job with it."""
    return {
        "image": f"gcloud builds submit {folder} --tag {image}",
        "run": "corpusveil privatize gs://BUCKET/IN/*.json.gz --space gs://BUCKET/SPACE --output gs://BUCKET/OUT "
        "--mechanism ring-geometric --epsilon 1 --key release.key --engine dataflow -- --project=PROJECT "
        f"--region=REGION --temp_location=gs://PRIVATE/temp --sdk_container_image={image} --sdk_location=container",
    }
