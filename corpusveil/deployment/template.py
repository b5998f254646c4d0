"""The folder from which a Dataflow Flex Template is built."""

from __future__ import annotations

import json
import re
import string
import sys
from collections.abc import Mapping
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from corpusveil.deployment.wheel import build_wheel, constraints
from corpusveil.errors import BadValueError, PackageError

KEY_VARIABLE = "CORPUSVEIL_KEY"
IMAGE_VARIABLE = "CORPUSVEIL_IMAGE"
_IMAGE = re.compile(r"[a-z0-9][a-z0-9.-]*\.[a-z]+(/[a-z0-9]+([._-]+[a-z0-9]+)*)+:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def package_dataflow(output: str, image: str, described: Mapping[str, Any]) -> list[Path]:
    """Write Dockerfile, launcher, metadata, constraints and the wheel of corpusveil into a folder; return them.

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
    version = sys.version_info
    filled = string.Template(_template("Dockerfile")).substitute(
        digits=f"{version.major}{version.minor}",
        python=f"{version.major}.{version.minor}",
        beam=beam,
        wheel=wheel.name,
        image=image,
    )
    texts = {
        "Dockerfile": filled,
        "main.py": _template("main.py"),
        "metadata.json": json.dumps(described, indent=2, ensure_ascii=False) + "\n",
        "constraints.txt": constraints(),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [*(folder / name for name in texts), wheel]


def _template(name: str) -> str:
    return resources.files(__package__).joinpath("template_files", f"{name}.in").read_text(encoding="utf-8")


def commands(folder: str, image: str) -> dict[str, str]:
    """Return how to build and to launch the template."""
    required = ["input=gs://BUCKET/IN/*.json.gz", "space=gs://BUCKET/SPACE", "output=gs://BUCKET/OUT"]
    required += ["mechanism=ring-geometric", "epsilon=1", "key=projects/PROJECT/secrets/NAME/versions/1"]
    return {
        "image": f"gcloud builds submit {folder} --tag {image}",
        "template": f"gcloud dataflow flex-template build gs://BUCKET/templates/corpusveil.json --image {image} "
        f"--sdk-language PYTHON --metadata-file {folder}/metadata.json",
        "run": "gcloud dataflow flex-template run JOB --region REGION "
        "--template-file-gcs-location gs://BUCKET/templates/corpusveil.json --staging-location gs://PRIVATE/staging "
        "--temp-location gs://PRIVATE/temp --service-account-email ACCOUNT "
        + " ".join(f"--parameters '{parameter}'" for parameter in required),
    }
