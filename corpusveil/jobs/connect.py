"""Shard tasks through Spark Connect, whose client has no context: the rows of a range, mapped on the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson
import pyarrow as pa

from corpusveil.transforms.metrics import total


def is_connect(session: Any) -> bool:
    """Say whether a session is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def run_by_rows(session: Any, function: Callable[[Any], Any], tasks: Sequence[Any], slices: int) -> dict[str, int]:
    """Run ``function`` on every task; return the sums of what it measured, which workers return as rows.

    The tasks travel in the closure, a hundred bytes each; a row is the number of one.
    """
    rows = session.range(0, len(tasks), 1, slices).mapInArrow(_each(function, list(tasks)), "measured string").collect()
    return total(orjson.loads(row.measured) for row in rows)


def _each(function: Callable[[Any], Any], tasks: list[Any]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                measured = orjson.dumps(function(tasks[number]) or {}).decode()
                yield pa.RecordBatch.from_pydict({"measured": [measured]})

    return run
