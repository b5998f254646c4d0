"""The Spark engine: one Spark task a shard task."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from corpusveil.errors import PackageError, SettingError, UserError
from corpusveil.jobs.java import LOGGING, QUICK, ensure_java, failure, saying_when_it_waits
from corpusveil.jobs.startup import ended_later
from corpusveil.transforms.handshake import SameVersions

MOST_SPARK_TASKS = 8192
"""With more shard tasks, several form one Spark task: Spark's driver keeps kilobytes for each."""
EXECUTORS = "spark.executor.extraJavaOptions"
REDACTION = ("spark.redaction.regex", "(?i)secret|password|token|[._]key|credential|connection[._]string")
"""Settings that event logs and Spark's pages do not show: Spark's own expression misses AWS_ACCESS_KEY_ID."""
DAEMON = ("spark.python.daemon.module", "corpusveil.jobs.preload")


def require_pyspark() -> None:
    """Raise UserError without PySpark."""
    try:
        importlib.import_module("pyspark.sql")
    except ImportError:
        raise PackageError("the engine spark needs PySpark: pip install 'corpusveil[spark]'.") from None


def spark_session(master: str | None = None, workers: int | None = None) -> Any:
    """Return the active session or a new one. Raises UserError without pyspark or Java, and for Spark Connect."""
    require_pyspark()
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if (master or "").startswith("sc://") or type(active).__module__.startswith("pyspark.sql.connect."):
        raise SettingError(
            "The engine spark needs a session of classic Spark, and this one is of Spark Connect: privatize_frame "
            "takes its frames; for files, name another master."
        )
    if active is not None:
        return active
    ensure_java()
    settings = {"spark.app.name": "corpusveil", "spark.ui.showConsoleProgress": "false"}
    submitted = _submitted(master)
    if submitted is None:  # a submit's logging is the submitter's
        # why it does not start belongs on standard error
        options = f"{QUICK} -XX:+DisplayVMOutputToStderr -Dlog4j2.configurationFile={LOGGING.as_uri()}"
        settings["spark.driver.extraJavaOptions"] = options
        if master is None or master.startswith("local"):  # elsewhere workers may get corpusveil after their daemon
            settings |= [DAEMON]
    elif not submitted.contains(EXECUTORS):
        settings[EXECUTORS] = QUICK
    if master is not None:
        settings["spark.master"] = master
    elif submitted is None:
        settings |= {"spark.master": f"local[{workers or '*'}]", "spark.ui.enabled": "false"}
    conf = (submitted or SparkConf()).setAll(list(settings.items())).setIfMissing(*REDACTION)
    where = conf.get("spark.master")
    try:
        with ended_later():
            SparkContext.getOrCreate(conf)
        session = SparkSession.builder.getOrCreate()
    except Exception as error:  # noqa: BLE001 - Spark raises what it likes
        raise failure(error, where, started=False) from None
    session.sparkContext.setLogLevel("FATAL")  # failures are said in our own sentence
    return session


def _submitted(master: str | None) -> Any:
    """Return the settings of ``spark-submit``, None without one. Raises UserError if they name another master."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # noqa: SLF001 - as SparkSession's builder does; without it they are not read
    given = SparkConf()
    own = given.get("spark.master", "local[*]")
    if master is not None and own not in (master, "local[*]"):  # which a submit has that names none
        raise SettingError(f"The engine's master is {master}, and spark-submit has {own}; leave one of the two out.")
    return given


@dataclass(frozen=True, slots=True)
class Spark:
    """The engine that runs tasks as a Spark job, on the active session or a new one for ``master``.

    ``workers`` are processes of a local master (default: all cores). Raises UserError without PySpark or Java, when it
    runs.

    >>> engine = cv.Spark("local[4]")  # cv.privatize_corpus("s3://bucket/in", "s3://bucket/out", release, engine)
    """

    master: str | None = None
    workers: int | None = None

    def check(self) -> None:
        """Raise UserError without PySpark, or without a Java where one is needed."""
        require_pyspark()
        if not (self.master or "").startswith("sc://"):
            ensure_java()
            _submitted(self.master)

    def slots(self) -> int:
        return int(spark_session(self.master, self.workers).sparkContext.defaultParallelism)

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
        """Run ``function`` on every task. Raises WorkError when the job fails."""
        session = spark_session(self.master, self.workers)
        slices = max(1, min(len(tasks), MOST_SPARK_TASKS))
        context = session.sparkContext
        try:
            with saying_when_it_waits(context):
                context.parallelize(list(tasks), slices).foreach(SameVersions.for_function(function))
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001 - engines raise what they like
            raise failure(error, context.master) from None
        except KeyboardInterrupt:  # the session of a notebook lives on, and would go on with the job
            with contextlib.suppress(Exception):
                context.cancelAllJobs()
            raise
