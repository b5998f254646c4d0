"""The Spark Connect engine, whose client has no context: the rows of a range, mapped on the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from corpusveil.errors import BadValueError, PackageError
from corpusveil.storage.engine import total
from corpusveil.transforms.handshake import SameVersions, spark_failure

SCHEME = "sc://"
MOST_SPARK_TASKS = 8192
"""With more shard tasks, several form one Spark task: Spark's driver keeps kilobytes for each."""


@dataclass(frozen=True, slots=True)
class Connect:
    """Runs tasks on the Spark Connect server ``master``, ``sc://HOST[:PORT]``.

    ``workers`` is the number of its parallel tasks, which a client cannot find out.
    """

    master: str
    workers: int = 1

    def __post_init__(self) -> None:
        if not self.master.startswith(SCHEME):
            raise BadValueError(
                f"master = {self.master}: give the address of a Spark Connect server, {SCHEME}HOST[:PORT]."
            )

    def session(self) -> Any:
        """Return a session on the server. Raises UserError without PySpark."""
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            raise PackageError("the engine connect needs PySpark: pip install 'corpusveil[connect]'.") from None
        return SparkSession.builder.remote(self.master).getOrCreate()

    def slots(self) -> int:
        return self.workers

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> dict[str, int]:
        """Run ``function`` on every task; return the sums of its measures. Raises WorkError if the job fails."""
        return run_by_rows(self.session(), function, tasks)


def is_connect(session: Any) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect.")


def slices_of(tasks: Sequence[Any]) -> int:
    """Return the number of Spark tasks for these tasks."""
    return max(1, min(len(tasks), MOST_SPARK_TASKS))


def run_by_rows(session: Any, function: Callable[[Any], Any], tasks: Sequence[Any]) -> dict[str, int]:
    """Run ``function`` on every task; return the sums of its measures, which workers return as rows.

    The tasks are in the closure, a hundred bytes each; a row is the number of a task. Raises WorkError when the job
    fails.
    """
    checked = SameVersions.of(function)
    try:
        numbers = session.range(0, len(tasks), 1, slices_of(tasks))
        rows = numbers.mapInArrow(_each(checked, list(tasks)), "measured string").collect()
    except Exception as error:  # noqa: BLE001 - engines raise what they like
        raise spark_failure(error) from None
    return total(orjson.loads(row.measured) for row in rows)


def _each(function: Callable[[Any], Any], tasks: list[Any]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                measured = orjson.dumps(function(tasks[number]) or {}).decode()
                yield pa.RecordBatch.from_pydict({"measured": [measured]})

    return run
