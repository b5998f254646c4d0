"""The Java of Spark: started without its usual warnings, and why it, its master or its memory failed, in a sentence."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

from corpusveil.errors import GO_ON, BadValueError, EngineError, WorkError
from corpusveil.transforms.handshake import spark_failure

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
