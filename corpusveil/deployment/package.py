"""What a cluster needs to run corpusveil: one file with it and its dependencies, without Beam and without a Spark.

The file is a PEX (pex.readthedocs.io): ``spark-submit --files`` sends it to every machine, where a Python of the same
minor version runs it, with Spark's own PySpark, which Spark puts on PYTHONPATH. Versions are those of this environment,
so that the handshake of driver and workers (``transforms/handshake.py``) agrees.

It begins as a shell script that goes straight to a virtual environment, which its first start on a machine makes. A PEX
of the usual kind takes another second for every start, of which each driver and each executor has one. The file holds
the machine code of the inner loops if corpusveil was installed with it, as from the index on x86-64 and Linux.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from corpusveil.deployment.wheel import build_wheel, constraints, installed_loops, requirement
from corpusveil.errors import InstallationError, PackageError, not_a_choice
from corpusveil.jobs.java import LOGGING, QUICK

ENVIRONMENT, SUBMIT = "corpusveil.pex", "submit.py"
EXTRAS = ("s3", "gcs", "azure")
LEFT_OUT = ("pyspark", "apache-beam")
FORM = ("--venv", "--sh-boot", "--non-hermetic-venv-scripts")
"""Of the file, for pex: see above; the last one lets PYTHONPATH in."""


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
        wanted = requirement(build_wheel(Path(work), machine_code=installed_loops), extras)
        command = [sys.executable, "-m", "pex", wanted, "--constraints", str(pinned), *FORM]
        command += ["--python", sys.executable, "--output-file", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not made.exists():
            last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
            raise InstallationError(f"pex could not build {ENVIRONMENT}: {last}")
        made.replace(folder / ENVIRONMENT)
    for file in (LOGGING.with_name(SUBMIT), LOGGING):
        shutil.copyfile(file, folder / file.name)
    return [folder / ENVIRONMENT, folder / SUBMIT, folder / LOGGING.name]


def commands(folder: str) -> dict[str, str]:
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
