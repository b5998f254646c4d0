"""A handshake of versions: with other packages than the driver's, a worker would write other bytes, so it refuses."""

from __future__ import annotations

import functools
import hashlib
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata, resources
from typing import Any

from corpusveil.errors import GO_ON, EngineError, VersionError, WorkError, sentences_in

PACKAGES = ("corpusveil", "numpy", "numba", "pyarrow", "isal", "orjson", "gensim")
"""The packages on which output bytes may depend."""


_SOURCES = (".py", ".json", ".gz")
"""Endings of files that decide an output; not what Python and numba compile beside them."""
_ASK = "import sys; print('%d.%d' % sys.version_info[:2])"
_ASK_SECONDS = 30
_SAME_PYTHON = "set PYSPARK_PYTHON (or spark.pyspark.python) to a Python {mine} with corpusveil, on every machine"


@functools.cache
def versions() -> Mapping[str, str]:
    """Return the versions of Python (major and minor) and of these packages in this process."""
    installed = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in PACKAGES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed[name] = "none"
    installed["corpusveil"] += f" (code {code()})"
    return installed


@functools.cache
def code() -> str:
    """Return a digest of the package's code and data, equal wherever it is installed from the same sources.

    A version is that of many commits.
    """
    digest, waiting = hashlib.sha256(), [("corpusveil", resources.files("corpusveil"))]
    while waiting:  # a folder's files in order, then those of its folders
        place, folder = waiting.pop()
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.is_dir():
                waiting.append((f"{place}/{entry.name}", entry))
            elif entry.name.endswith(_SOURCES):
                digest.update(f"{place}/{entry.name}\0{hashlib.sha256(entry.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class SameVersions:
    """A function over tasks that a worker runs only if it has the driver's versions."""

    function: Callable[[Any], Any]
    driver: Mapping[str, str]

    @classmethod
    def of(cls, function: Callable[[Any], Any]) -> SameVersions:
        """Return the function with the versions of this process, the driver."""
        return cls(function, dict(versions()))

    def __call__(self, task: Any) -> Any:
        """Raise WorkError, with what differs, unless the versions agree; then do the task."""
        mine = versions()
        other = [
            f"{name} {mine.get(name)} for {value}" for name, value in self.driver.items() if mine.get(name) != value
        ]
        if other:
            raise EngineError(
                f"The versions of a worker differ from those of the driver ({', '.join(other)}); give both the "
                "same environment."
            )
        return self.function(task)


def refuse_other_python(context: Any) -> None:
    """Raise UserError if Spark's workers on this machine run another Python than this process.

    ``context`` is a classic SparkContext. Spark itself notices only when a task starts, and shows a traceback. Other
    machines, and programs that cannot be run here, are checked when a task fails (``python_fault``).
    """
    if context.master.startswith("local") and (program := shutil.which(context.pythonExec)) is not None:
        mine, theirs = versions()["python"], _minor_version(program)
        if theirs is not None and theirs != mine:
            raise VersionError(
                f"PYSPARK_PYTHON = {context.pythonExec}: the workers of Spark would run Python {theirs}, but the "
                f"driver runs Python {mine}; {_SAME_PYTHON.format(mine=mine)}."
            )


@functools.cache
def _minor_version(program: str) -> str | None:
    try:
        answer = subprocess.run(
            [program, "-c", _ASK], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = answer.stdout.strip()
    return said if re.fullmatch(r"\d+\.\d+", said) else None


def python_fault(failure: str) -> str | None:
    """Return a sentence about the workers' Python from a failure of Spark.

    None if the failure says nothing about it.
    """
    mine = versions()["python"]
    way = _SAME_PYTHON.format(mine=mine)
    if match := re.search(r"Python in worker has different version: (\d+\.\d+)", failure):
        return f"A worker runs Python {match[1]}, and the driver runs Python {mine}; {way}."
    if match := re.search(r'Cannot run program "([^"\n]+)"', failure):
        return (
            f"A worker does not have the program {match[1]}, which PYSPARK_PYTHON or spark.pyspark.python names; {way}."
        )
    if re.search("No module named '?corpusveil", failure):  # without quotes, where it is the daemon that is missing
        return "The workers do not have corpusveil; send them an environment with it ('corpusveil package spark')."
    if "Error from python worker" in failure:
        match = re.search(r"lib/python(\d+\.\d+)/", failure)
        which = f"Python {match[1]}" if match else "a Python"
        return f"A worker runs {which} in which PySpark does not start, and the driver runs Python {mine}; {way}."
    return None


def spark_failure(error: Exception) -> WorkError:
    """Return why a Spark job failed: our own sentence if there is one, otherwise the name of the error."""
    text = str(error)
    known = sentences_in(text)
    sentence = known[0] if known else f"{type(error).__name__}."
    sentence = python_fault(text) or sentence
    return EngineError(f"The Spark job failed: {sentence} {GO_ON}")
