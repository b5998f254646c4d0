"""What a cluster needs to run corpusveil: for Spark one file, and for Dataflow the folder of its workers' image.

The file has corpusveil and its dependencies, without Beam and without a Spark. It is a PEX (pex.readthedocs.io):
``spark-submit --files`` sends it to every machine, where a Python of the same minor version runs it, with Spark's own
PySpark, which Spark puts on PYTHONPATH. Versions are those of this environment, so that the handshake of driver and
workers (``transforms/handshake.py``) agrees.

It begins as a shell script that goes straight to a virtual environment, which its first start on a machine makes. A PEX
of the usual kind takes another second for every start, of which each driver and each executor has one.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import string
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata, resources
from pathlib import Path

from corpusveil.deployment.wheel import build_wheel, constraints, requirement
from corpusveil.errors import PackageError, SettingError, not_a_choice
from corpusveil.jobs.java import LOGGING, QUICK

ENVIRONMENT, SUBMIT = "corpusveil.pex", "submit.py"
EXTRAS = ("s3", "gcs", "azure")
LEFT_OUT = ("pyspark", "apache-beam")
FORM = ("--venv", "--sh-boot", "--non-hermetic-venv-scripts")
"""Of the file, for pex: see above; the last one lets PYTHONPATH in."""
_IMAGE = re.compile(r"[a-z0-9][a-z0-9.-]*\.[a-z]+(/[a-z0-9]+([._-]+[a-z0-9]+)*)+:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def package_spark(output: str, extras: Sequence[str] = ()) -> list[Path]:
    """Write the environment, the script to submit and the driver's logging into a folder; return all three.

    Raises UserError without pex, for an unknown extra, and when the folder has such files that are not files; WorkError
    with pex's last line when it fails, as it does without the package index.
    """
    if importlib.util.find_spec("pex") is None:
        raise PackageError("package spark needs pex: pip install 'corpusveil[package]'.")
    for extra in extras:
        if extra not in EXTRAS:
            raise not_a_choice("extra", extra, EXTRAS)
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".packing-", dir=folder) as work:
        made, pinned = Path(work) / ENVIRONMENT, Path(work) / "constraints.txt"
        pinned.write_text(constraints(LEFT_OUT))
        wanted = requirement(build_wheel(Path(work)), extras)
        command = [sys.executable, "-m", "pex", wanted, "--constraints", str(pinned), *FORM]
        command += ["--python", sys.executable, "--output-file", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not made.exists():
            last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
            raise PackageError(f"pex could not build {ENVIRONMENT}: {last}")
        made.replace(folder / ENVIRONMENT)
    for file in (LOGGING.with_name(SUBMIT), LOGGING):
        shutil.copyfile(file, folder / file.name)
    return [folder / ENVIRONMENT, folder / SUBMIT, folder / LOGGING.name]


def spark_commands(folder: str) -> dict[str, str]:
    """Return how to submit with it, by kind of cluster."""
    sent = f"--files {folder}/{ENVIRONMENT}"
    python = f"--conf spark.pyspark.python=./{ENVIRONMENT}"
    end = f"{folder}/{SUBMIT} privatize … --engine spark"
    return {
        "standalone": f"spark-submit --master spark://HOST:7077 {sent} {python} "
        f"--driver-java-options '{QUICK} -Dlog4j2.configurationFile={folder}/{LOGGING.name}' "
        f"--conf spark.pyspark.driver.python={folder}/{ENVIRONMENT} {end}",
        "YARN": f"spark-submit --master yarn --deploy-mode cluster {sent} {python} {end}",
        "Kubernetes": "spark-submit --master k8s://https://HOST:6443 --deploy-mode cluster "
        "--conf spark.kubernetes.container.image=IMAGE --conf spark.kubernetes.file.upload.path=s3a://BUCKET/staging "
        f"{sent} {python} {end}",
    }


def package_dataflow(output: str, image: str) -> list[Path]:
    """Write the image of workers into a folder: Dockerfile, constraints and the wheel of corpusveil; return them.

    Raises UserError for an invalid image address, and without Beam; WorkError if the wheel cannot be written.
    """
    if not _IMAGE.fullmatch(image):
        raise SettingError(f"image = {image}: write the image as REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME:TAG.")
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


def dataflow_commands(folder: str, image: str) -> dict[str, str]:
    """Return how to build the image and how to run a job with it."""
    return {
        "image": f"gcloud builds submit {folder} --tag {image}",
        "run": "corpusveil privatize gs://BUCKET/IN/*.json.gz --space gs://BUCKET/SPACE --output gs://BUCKET/OUT "
        "--mechanism ring-geometric --epsilon 1 --key release.key --engine dataflow -- --project=PROJECT "
        f"--region=REGION --temp_location=gs://PRIVATE/temp --sdk_container_image={image} --sdk_location=container",
    }
