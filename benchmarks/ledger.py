"""Ledger and caps: time and memory of a release's verdict, by the number of documents.

A ledger has one release of this many documents, with the lengths of C4 (log-normal, 320 words on average), and a
planned second release, whose entries are in files as a run's pass leaves them. Two processes read them. Nothing is
tokenized: ``corpus`` measures the pass that records readings. ``whole`` is a run from the text: tiny documents, with a
cap, and the memory of the driver.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import inputs
from benchmarks.report import Table
from corpusveil.budget.accounting import upward
from corpusveil.jobs.local import Local
from corpusveil.sampling.grid import share
from corpusveil.storage.ledger import FINGERPRINT, ROWS, Entry, Held, Ledger, write_entry
from corpusveil.transforms.ledger import Ledger as Callers
from corpusveil.transforms.ledger_passes import Where
from corpusveil.transforms.spending import Caps, refuse_over

C4 = 365_000_000
DOCUMENTS = 1_000_000
OF_AN_ENTRY = 250_000
WORDS = 320
BUDGET = 10.0
WORKERS = 2
CAPS = {
    "sum of epsilons": Caps(total=30.0),
    "plain LDP": Caps(ldp=1e9),
    "at delta 1e-6, by bounds": Caps(total=20.1, delta=1e-6),
    "at delta 1e-6, composed": Caps(total=19.99, delta=1e-6),
}
"""Short documents spend 20 in the two releases: the first is decided by sums, the last by composing some."""
SHOWN = "ledger show"


def run(arguments: Sequence[str] = ()) -> list[Table]:
    parser = argparse.ArgumentParser(prog="benchmarks ledger")
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    size = parser.parse_args(arguments).documents
    documents = str(size)
    table = Table(
        f"Caps for {size:,} documents, one release in the ledger and one planned; {WORKERS} processes",
        ("what", "wall s", "CPU s", "driver MiB", "a worker MiB", "spread GiB", "C4: CPU hours", "C4: spread GiB"),
    )
    with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
        apart("prepare", folder, documents)  # in a process whose memory is not counted
        for name in (*CAPS, SHOWN):
            done = apart("measure", folder, name)
            times = C4 / size
            table.rows.append(
                (name, done["wall"], done["cpu"], done["driver"], done["worker"], round(done["spread"] / 2**30, 2),
                 round(done["cpu"] * times / 3600, 1), round(done["spread"] * times / 2**30))
            )  # fmt: skip
    table.notes.append(
        "CPU seconds are of all processes; memory is the most that each held, the start of Python included."
    )
    return [table, whole(documents)]


def whole(documents: str) -> Table:
    """Return the cost of a whole release of tiny documents, without a ledger and with a ledger under a cap."""
    table = Table(
        f"A release of {int(documents):,} documents of 3 words from 16 files, {WORKERS} processes",
        ("ledger", "wall s", "CPU s", "driver MiB", "a worker MiB"),
    )
    for name in ("none", "with a cap", "with a cap, again under another key"):
        done = apart("release", documents, name)
        table.rows.append((name, done["wall"], done["cpu"], done["driver"], done["worker"]))
    return table


def apart(what: str, *arguments: str) -> dict[str, Any]:
    """Return the measurements of a separate process."""
    told = subprocess.run(
        [sys.executable, "-m", "benchmarks.ledger", what, *arguments],
        check=True, stdout=subprocess.PIPE, text=True, cwd=inputs.ROOT,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(told.stdout.splitlines()[-1]) if told.stdout else {}
    return found


def entries(documents: int, release: str, random: np.random.Generator) -> Iterator[Entry]:
    """Yield a release of so many documents, the same ones in every release, each with noise of its own."""
    lengths = np.random.default_rng(1)
    for first in range(0, documents, OF_AN_ENTRY):
        size = min(OF_AN_ENTRY, documents - first)
        tokens = np.maximum(lengths.lognormal(math.log(WORDS) - 0.5, 1.0, size), 20).astype(np.int64)
        largest = share(BUDGET, tokens)
        total = np.minimum(largest * tokens * (1 + 2.0**-40), BUDGET)
        known = np.random.default_rng(first).integers(0, 256, (size, 16), np.uint8)
        columns = [
            *(pa.FixedSizeBinaryArray.from_buffers(FINGERPRINT, size, [None, pa.py_buffer(tags.tobytes())])
              for tags in (random.integers(0, 256, (size, 16), np.uint8), known, known)),
            tokens, total, largest, tokens * upward(30),
        ]  # fmt: skip
        about = {
            "version": 2, "corpus": "c4", "column": "text", "shard": str(first), "rows": [0, size], "release": release,
            "metric": "m", "mechanism": "ring-geometric", "space": "0" * 64, "budget": {},
        }  # fmt: skip
        yield Entry(about, pa.table(dict(zip(ROWS.names, columns, strict=True)), ROWS))


def prepare(folder: str, documents: int) -> tuple[Ledger, list[Held]]:
    """Return a ledger with one release in the folder, and the plan of a second release of the same documents."""
    random = np.random.default_rng(0)
    ledger = Ledger.open(f"{folder}/ledger")
    ledger.enter(list(_written(f"{folder}/before", entries(documents, "before", random), ledger.secret)), None)
    return ledger, list(_written(f"{folder}/planned", entries(documents, "planned", random), ledger.secret))


def _written(folder: str, found: Iterator[Entry], secret: bytes) -> Iterator[Held]:
    for number, entry in enumerate(found):
        address = f"{folder}/{number}.parquet"
        write_entry(address, entry.about, entry.tables())
        yield Held(address, entry.about, entry.rows, known=entry.digest(secret))


def measured(work: Callable[[Local], object]) -> dict[str, Any]:
    """Return the cost of some work on two processes: seconds, and the peak memory of this process and of a worker."""
    engine = Local(WORKERS)
    before, began = _cpu(), time.perf_counter()
    work(engine)
    wall = time.perf_counter() - began
    engine.close()  # so that workers are counted
    driver, worker = (
        resource.getrusage(who).ru_maxrss >> 10 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {"wall": round(wall, 1), "cpu": round(_cpu() - before, 1), "driver": driver, "worker": worker}


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _held(address: str) -> Held:
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(address)
    about = json.loads(parquet.schema_arrow.metadata[b"corpusveil.ledger"])
    return Held(address, about, parquet.metadata.num_rows)


def measure(folder: str, name: str) -> dict[str, Any]:
    """Measure one verdict, or the listing of the ledger."""
    ledger = Ledger.existing(f"{folder}/ledger")
    planned = [_held(str(path)) for path in sorted(Path(folder, "planned").iterdir(), key=lambda path: int(path.stem))]
    spread = _Spread()

    def work(engine: Local) -> None:
        watching = spread.watching(engine, folder)
        tempfile.tempdir = folder  # if a listing spreads rows
        if name == SHOWN:
            Callers(ledger.url).spent(engine=watching)
        else:
            refuse_over(CAPS[name], list(ledger.entries()), planned, Where(watching))

    return {**measured(work), "spread": spread.most}


class _Spread:
    """How many bytes are spread over buckets, looked at between two runs of tasks."""

    most = 0

    def watching(self, engine: Local, folder: str) -> Any:
        spread = self

        class Watching:
            def slots(self) -> int:
                return engine.slots()

            def run(self, function: Any, tasks: Any) -> Any:
                told = engine.run(function, tasks)
                size = sum(path.stat().st_size for path in Path(folder).glob("corpusveil-ledger-*/**/*.rows"))
                spread.most = max(spread.most, size)
                return told

        return Watching()


def release(documents: str, name: str) -> dict[str, Any]:
    """Measure a whole release of tiny documents."""
    import corpusveil as cv
    from corpusveil.transforms.corpus import privatize_corpus
    from corpusveil.transforms.spending import Spending

    with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
        space = cv.demo_space()
        words = [space.word(number) for number in range(1000)]
        source = Path(folder, "in")
        source.mkdir()
        for shard in range(16):
            with (source / f"{shard:02}.txt").open("w", encoding="utf-8") as file:
                for number in range(shard, int(documents), 16):
                    chosen = (words[number % 1000], words[number // 1000 % 1000], words[number // 1_000_000 % 1000])
                    file.write(" ".join(chosen) + "\n")
        spending = None if name == "none" else Spending(f"{folder}/ledger", Caps(total=25.0))

        def go(engine: Local, number: int) -> None:
            drawn = cv.Release(
                cv.mechanism("ring-geometric", space), cv.Budget(10.0, "document"), key=cv.Key.generate()
            )
            privatize_corpus(drawn, [str(source)], f"{folder}/out{number}", engine, corpus="tiny", spending=spending)

        if "again" in name:
            go(Local(WORKERS), 1)
        return measured(lambda engine: go(engine, 2))


def main(what: str, *arguments: str) -> None:
    if what == "prepare":
        prepare(arguments[0], int(arguments[1]))
    else:
        print(json.dumps({"measure": measure, "release": release}[what](*arguments)))


if __name__ == "__main__":
    main(*sys.argv[1:])
