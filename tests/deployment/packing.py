"""corpusveil and its dependencies as one file, by the commands of docs/clusters.md."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from corpusveil.jobs.java import LOGGING

ROOT = Path(__file__).parents[2]
ENVIRONMENT = "corpusveil.pex"
SUBMIT = LOGGING.with_name("submit.py")
LEFT_OUT = {"corpusveil", "corpusveil-spans", "corpusveil-evaluate", "corpusveil-space-en", "pyspark", "apache-beam"}
PAGE = (ROOT / "docs" / "clusters.md").read_text()


def pack(folder: Path) -> Path:
    """Write the file that the page's command makes of this source, in the versions of this environment; return it."""
    folder.mkdir(exist_ok=True)
    (uv,) = (ROOT / ".tools").glob("uv-*/bin/uv")
    build = [uv, "build", "--quiet", "--wheel", "--package", "corpusveil", "--out-dir", folder, ROOT]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("corpusveil-*.whl")
    versions = {each.metadata["Name"].lower(): each.version for each in metadata.distributions()}
    pinned = [f"{name}=={one}" for name, one in versions.items() if name not in LEFT_OUT and "+" not in one]
    (folder / "constraints.txt").write_text("\n".join(pinned))
    (line,) = re.findall(r"^pex 'corpusveil\[s3\]' (.*)$", PAGE, re.MULTILINE)
    call = [sys.executable, "-m", "pex", f"corpusveil @ {wheel.resolve().as_uri()}", "--python", sys.executable]
    subprocess.run([*call, *line.split()], cwd=folder, check=True, capture_output=True)
    return folder / ENVIRONMENT
