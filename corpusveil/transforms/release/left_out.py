"""Units above a cap: a refusal names them and their rows, or a run leaves these rows out."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.errors import CapError
from corpusveil.ledger.account import AccountPass, Drops
from corpusveil.ledger.units import Unit
from corpusveil.storage import files
from corpusveil.storage.reading import BadRows, reading
from corpusveil.storage.records import Records
from corpusveil.storage.rows import JSON
from corpusveil.storage.tasks import ShardTask
from corpusveil.storage.values import text_of

OVER, UNITS = "over", "over-cap.jsonl"
"""The folder of the rows that a run leaves out, and the file that names units; both among the records, private."""
_DECIDED = "decided"
_PLACES = 100
"""Of a unit's rows, how many are named."""


def refusal(error: CapError, accounting: AccountPass, tasks: Sequence[ShardTask], records: Records) -> CapError:
    """Return a refusal that names a new private file with each unit above the cap, and where its documents are."""
    lines: dict[bytes, dict[str, Any]] = {}
    for task, rows, tags in _rows(error, accounting, tasks):
        values = _values(accounting, task, rows)
        for row, (unit, tag) in zip(rows.tolist(), tags, strict=True):
            new: dict[str, Any] = {
                "unit": unit.name,
                "value": values.get((row, unit.column)),
                "documents": 0,
                "rows": [],
            }
            line = lines.setdefault(unit.name.encode() + tag, new)
            line["documents"] += 1
            if len(line["rows"]) < _PLACES:
                line["rows"].append(f"{task.relative}, row {row + 1}")
    data = b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines.values())
    files.write_bytes(records.address(UNITS), data, private=True)
    return CapError(
        f"{str(error).removesuffix('.')}. The units above it are in {records.address(UNITS)} (private); over_cap = "
        "drop leaves their documents out."
    )


def decided(records: Records) -> Drops | None:
    """Return the rows that an earlier start of the run decided to leave out, None if it decided nothing."""
    folder = Records(records.address(OVER))
    if not files.exists(folder.address(_DECIDED)):
        return None
    digests = json.loads(files.read_bytes(folder.address(_DECIDED)))
    return Drops(folder, {int(shard): digest for shard, digest in digests.items()})


def without(
    error: CapError, accounting: AccountPass, tasks: Sequence[ShardTask], records: Records, drops: Drops | None
) -> Drops:
    """Return the rows to leave out: those of ``drops``, and all documents of the units above a cap."""
    more = {task.shard: [np.zeros(0, "<i8")] if drops is None else [drops.left_out_rows(task.shard)] for task in tasks}
    for task, rows, _ in _rows(error, accounting, tasks):
        more[task.shard].append(rows)
    left_out = ((shard, np.unique(np.concatenate(parts))) for shard, parts in more.items())
    made = Drops.written(Records(records.address(OVER)), left_out, accounting.record_key)
    files.write_bytes(made.records.address(_DECIDED), json.dumps(made.digests).encode(), private=True)
    return made


def _rows(
    error: CapError, accounting: AccountPass, tasks: Sequence[ShardTask]
) -> Iterator[tuple[ShardTask, npt.NDArray[np.int64], list[tuple[Unit, bytes]]]]:
    """Yield for each task the rows of units above a cap, ascending, and the first such unit of each with its tag."""
    over = pa.array([unit.bytes for unit in error.over], pa.binary(16))
    for task in tasks:
        table = accounting.noted(task)
        rows, tags = [], []
        for number, unit in enumerate(accounting.account.units):
            column = table[f"unit_{number}"].combine_chunks()
            storage = column.storage if isinstance(column, pa.ExtensionArray) else column
            there = pc.is_in(storage, over)
            rows += table["row"].filter(there).to_pylist()
            tags += [(unit, tag) for tag in storage.filter(there).to_pylist()]
        if rows:
            order = np.argsort(np.array(rows, np.int64), kind="stable")
            yield task, np.array(rows, np.int64)[order], [tags[at] for at in order.tolist()]


def _values(
    accounting: AccountPass, task: ShardTask, rows: npt.NDArray[np.int64]
) -> dict[tuple[int, str | None], str | None]:
    """Return the texts of units' values by row and column, for some rows of a task."""
    columns = dataclasses.replace(accounting.columns, units=())
    values: dict[tuple[int, str | None], str | None] = {}
    with reading(task, columns, bad=BadRows()) as shard:
        for batch in shard.batches:
            for at in np.flatnonzero(np.isin(batch.numbers, rows)).tolist():
                for name, column in zip(columns.keep, batch.kept, strict=True):
                    value = column[at].as_py()
                    parsed = json.loads(value) if column.type == JSON and value is not None else value
                    values[batch.numbers[at], name] = text_of(parsed)
    return values
