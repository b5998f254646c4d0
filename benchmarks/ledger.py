"""Ledger and caps: time and memory of a release's verdict, by the number of units.

A ledger has one release of this many documents, with the lengths of C4 (log-normal, 320 words on average), each a unit
of its own, and a second release is planned, with its accounts in files as a run's pass leaves them.
``entry`` makes the planned entry, and the other rows decide or show. Nothing is tokenized.
"""

import argparse
import contextlib
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import inputs
from benchmarks.report import Table
from corpusveil.errors import CapError
from corpusveil.ledger.account import schema
from corpusveil.ledger.caps import Spending, refuse_over
from corpusveil.ledger.entries import VERSION, Entry, EntryStore, about_of, digest_of
from corpusveil.ledger.questions import Books, connected, write_entry
from corpusveil.ledger.summary import Ledger
from corpusveil.ledger.units import Unit

C4 = 365_000_000
DOCUMENTS = 300 if inputs.SMALLEST else 1_000_000
OF_A_NOTE = 250_000
WORDS = 320
UNITS = (Unit("customer", "customer"),)
ENTRY, SHOWN = "making the planned entry", "ledger show"
CAPS = {"a cap that refuses": 400.0, "a cap that admits": 1e9}


def run(arguments: Sequence[str] = ()) -> list[Table]:
    parser = argparse.ArgumentParser(prog="benchmarks ledger")
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    size = parser.parse_args(arguments).documents
    table = Table(
        f"Caps for {size:,} documents, one release in the ledger and one planned; one process of two threads",
        ("what", "wall s", "CPU s", "MiB", "C4: CPU hours"),
    )
    with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
        apart("prepare", folder, str(size))  # in a process whose memory is not counted
        for name in (ENTRY, *CAPS, SHOWN):
            done = apart("measure", folder, name)
            hours = round(done["cpu"] * C4 / size / 3600, 1)
            table.rows.append((name, done["wall"], done["cpu"], done["memory"], hours))
    table.notes.append("Memory is the most that the process held, the start of Python included.")
    return [table]


def apart(what: str, *arguments: str) -> dict[str, Any]:
    """Return the measurements of a separate process."""
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.ledger", what, *arguments],
        check=True, stdout=subprocess.PIPE, text=True, cwd=inputs.ROOT,
    )  # fmt: skip
    measures: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1]) if ended.stdout else {}
    return measures


def prepare(folder: str, documents: str) -> None:
    """Make a ledger with one release in the folder, and the accounts of a second one of the same documents."""
    store = EntryStore.open(f"{folder}/ledger", UNITS)
    store.check(UNITS, begin=True)
    for seed, release in enumerate(("before", "planned")):
        notes = _notes(folder, release, int(documents), seed)
        if release == "before":
            with connected() as (_, connection):
                entry = write_entry(connection, notes, 0, about(release), f"{folder}/before.parquet")
            store.enter({digest_of(entry.path, store.secret): entry.path}, None, folder)


def about(release: str) -> dict[str, Any]:
    return {
        "version": VERSION, "unit": "customer", "namespace": "", "column": "text", "release": release,
        "mechanism": "ring-geometric", "space": "0" * 64, "budget": {},
    }  # fmt: skip


def _notes(folder: str, release: str, documents: int, seed: int) -> list[str]:
    paths = []
    lengths, noise = np.random.default_rng(1), np.random.default_rng(seed)
    units = np.random.default_rng(2).integers(0, 256, (documents, 16), np.uint8)
    for first in range(0, documents, OF_A_NOTE):
        size = min(OF_A_NOTE, documents - first)
        tokens = np.maximum(lengths.lognormal(math.log(WORDS) - 0.5, 1.0, size), 20).astype(np.int64)
        tags = noise.integers(0, 256, (size, 16), np.uint8)
        drawn = [units[(first + np.arange(size)) * 7919 % len(units)], tags]
        columns = [*map(_uuids, drawn), tokens, tokens * 30 * 10**9, first + np.arange(size)]
        paths.append(f"{folder}/{release}-{first}.parquet")
        pq.write_table(pa.table(columns, schema=schema(UNITS)), paths[-1], compression="zstd", row_group_size=8192)
    return paths


def _uuids(tags: Any) -> pa.Array:
    data = pa.py_buffer(np.ascontiguousarray(tags).tobytes())
    fixed_size = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(tags), [None, data])
    return pa.ExtensionArray.from_storage(pa.uuid(), fixed_size)


def measured(work: Callable[[], object]) -> dict[str, Any]:
    """Return the cost of some work: seconds, and the peak memory of this process."""
    before, began = _cpu(), time.perf_counter()
    work()
    wall = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return {"wall": round(wall, 1), "cpu": round(_cpu() - before, 1), "memory": memory}


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def measure(folder: str, name: str) -> dict[str, Any]:
    """Measure the making of the planned entry, one verdict from the look at the ledger on, or its listing."""
    notes = sorted(str(path) for path in Path(folder).glob("planned-*.parquet"))
    spending = Spending(f"{folder}/ledger", CAPS.get(name), UNITS)
    store = EntryStore.open(spending.ledger, UNITS)
    if name == SHOWN:
        return measured(lambda: Ledger(spending.ledger).spent())
    with connected() as (place, connection):
        if name == ENTRY:

            def make() -> None:
                entry = write_entry(connection, notes, 0, about("planned"), f"{folder}/entry")
                digest_of(entry.path, store.secret)

            return measured(make)
        planned = [Entry(f"{folder}/entry", about_of(f"{folder}/entry"))]

        def decide() -> None:
            with contextlib.suppress(CapError):
                refuse_over(spending, Books(connection, list(store.entries(place)), planned), UNITS[0].name)

        return measured(decide)


def main(what: str, *arguments: str) -> None:
    if what == "prepare":
        prepare(*arguments)
    else:
        print(json.dumps(measure(*arguments)))


if __name__ == "__main__":
    main(*sys.argv[1:])
