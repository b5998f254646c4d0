"""C4 rehearsed: its 1,024 shards with a thousandth of their documents, and what each part of a run costs the driver.

A part that grows with shards costs C4 whole the same; work, ledger and verify grow with documents.
``python -m benchmarks.rehearsal INPUT OUTPUT LEDGER MASTER`` is one run, whose parts it prints as JSON; an empty MASTER
is local processes, and ``beam`` its direct runner.
"""

import contextlib
import gzip
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import psutil

from benchmarks import cluster, inputs
from benchmarks.report import Skipped, Table
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark
from corpusveil.ledger.caps import Spending
from corpusveil.ledger.units import Unit
from corpusveil.storage.corpus import CorpusIn, CorpusOut
from corpusveil.transforms.release import corpus
from corpusveil.transforms.release.verification import verify

SIZES, DOCUMENTS = ((2, 4), 5) if inputs.SMALLEST else ((256, 512, 1024), 356)
TINY = 8 if inputs.SMALLEST else int(os.environ.get("CORPUSVEIL_BENCH_TINY", "100000"))
ENGINES = {"two local processes": "", "Spark standalone, two executors": "spark://", "Beam, direct runner": "beam"}
DRIVER_MIB = 1024
PARTS = {
    "look": "ledger: look", "reserve": "ledger: reserve", "do_all": "work", "write_manifest": "manifest",
    "write_pages": "pages",
}  # fmt: skip


def run() -> list[Table]:
    return [_table(SIZES, DOCUMENTS, name, "ledger") for name in list(ENGINES)[: 1 if inputs.SMALLEST else None]]


def tiny() -> list[Table]:
    """Measure 100,000 shards of two documents, without a ledger."""
    table = _table((TINY,), 2, "two local processes", "")
    most = table.rows[-1][1]
    table.target(f"the driver takes at most {most:.0f} MiB (wanted: {DRIVER_MIB})", met=most <= DRIVER_MIB)
    return [table]


def _table(sizes: tuple[int, ...], documents: int, engine: str, ledger: str) -> Table:
    columns = [f"{size:,} shards: {what}" for size in sizes for what in ("wall s", "driver CPU s")]
    table = Table(f"{documents} documents a shard; {engine}; {inputs.origin()}", ("part", *columns))
    parts: dict[str, list[float]] = defaultdict(list)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=inputs.work()))
        master = ENGINES[engine]
        if master == "spark://":
            master = stack.enter_context(cluster.standalone(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
        for size in sizes:
            write(Path(folder, f"in{size}"), size, documents)
            words = [f"{folder}/in{size}", f"{folder}/out{size}", ledger and f"{folder}/{ledger}{size}"]
            command = [sys.executable, "-m", "benchmarks.rehearsal", *words, master]
            done = subprocess.run(
                command, cwd=inputs.ROOT, env=cluster.environment(), capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise Skipped(done.stderr[-300:])
            for part, spent in json.loads(done.stdout.splitlines()[-1]).items():
                parts[part] += spent
    table.rows += [(part, *spent) for part, spent in parts.items()]
    return table


def write(folder: Path, shards: int, documents: int) -> None:
    lines = itertools.chain.from_iterable(map(_lines, itertools.cycle(inputs.shards())))
    folder.mkdir()
    for number in range(shards):
        data = b"".join(itertools.islice(lines, documents))
        (folder / f"c4-train.{number:05d}-of-{shards:05d}.json.gz").write_bytes(gzip.compress(data, 1, mtime=0))


def _lines(path: str) -> list[bytes]:
    return gzip.decompress(Path(path).read_bytes()).splitlines(keepends=True)


def main(source: str, output: str, ledger: str, master: str) -> None:
    """Run a release, again when it is finished, and verify it; print wall and driver CPU seconds of each part."""
    spent: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    last = [psutil.Process().create_time(), 0.0]

    def end(part: str) -> None:
        now = [time.time(), time.process_time()]
        spent[part] = [so_far + at - before for so_far, at, before in zip(spent[part], now, last, strict=True)]
        last[:] = now

    def timed(function: Callable[..., Any], part: str) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            end("plan, claim, rest")
            try:
                return function(*arguments, **more)
            finally:
                end(part)

        return call

    spending = Spending(ledger, 1e9, (Unit("content", None),)) if ledger else None
    go = corpus.Run(inputs.release(inputs.space()), CorpusIn([source]), CorpusOut(output), spending=spending).privatize
    engine = Beam() if master == "beam" else Spark(master) if master else Local(2)
    engine.slots()
    end("start")
    with contextlib.ExitStack() as patches:
        for name, part in PARTS.items():
            patches.enter_context(mock.patch.object(corpus, name, timed(getattr(corpus, name), part)))
        go(engine)
        end("plan, claim, rest")
    go(engine)
    end("run again")
    verify(output)
    end("verify")
    spent["driver MiB"] = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, last[1]]
    print(json.dumps(spent))


if __name__ == "__main__":
    main(*sys.argv[1:])
