"""One measured piece of work in a separate process: first start-up, not counted, then wall and CPU seconds.

``Started(kind, ...)`` runs it in turns; the process is ``python -m benchmarks.job``. The work of ``corpusveil`` is in
this module, its baselines in ``benchmarks.baselines``.
"""

import contextlib
import functools
import gzip
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

import corpusveil as cv
from benchmarks import baselines, inputs
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.jobs.local import Local
from corpusveil.pipelines.python_calls import privatize_corpus
from corpusveil.sampling.draws import DrawKey, Draws

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
PASSAGE_EPSILON = 14.0
"""Nearly every piece is searched for."""

WARM = ["The river rises in June; 12 of them (see www.example.org) don't – naïve qwzx!", ""] * 8
"""Text for warming up before the clock starts: every kind of token, and the first use of every library."""


class Started:
    """A process that prepares one kind of work, then does it once per turn, with this many threads (0: unlimited)."""

    def __init__(self, kind: str, threads: int = 0, **arguments: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.job", json.dumps({"kind": kind, **arguments})],
            cwd=inputs.ROOT, env=held_to(threads),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.communicate()

    def wait(self) -> None:
        """Return when everything is prepared."""
        self._line()

    def turn(self) -> dict[str, Any]:
        """Do the work once; return its figures."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return json.loads(self._line())

    def _line(self) -> str:
        assert self._process.stdout
        if line := self._process.stdout.readline():
            return line
        raise subprocess.CalledProcessError(self._process.wait(), self._process.args)


def held_to(threads: int) -> dict[str, str]:
    """Return this environment with this many threads of the BLAS and of ours, which are read when they are loaded."""
    work = {"CORPUSVEIL_BENCH_WORK": str(inputs.work())}  # artifacts such as a key are made once
    return {**os.environ, **work, **(dict.fromkeys(THREADS, str(threads)) if threads else {})}


def warm_shard(folder: str) -> str:
    path = Path(folder, "warm.json.gz")
    path.write_bytes(gzip.compress(b"".join(json.dumps({"text": text}).encode() + b"\n" for text in WARM)))
    return str(path)


def privatize(
    at: str, shards: list[str], *, mechanism: str = "ring-geometric", workers: int = 1
) -> Callable[[str], dict[str, Any]]:
    """Prepare the whole job: machine code, tables and word list are loaded by a few documents."""
    release = inputs.release(at, mechanism=mechanism)
    with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
        privatize_corpus(warm_shard(folder), f"{folder}/out", release)

    def run(folder: str) -> dict[str, Any]:
        privatize_corpus(shards, f"{folder}/out", release, Local(workers))
        return {}

    return run


def copy(shards: list[str]) -> Callable[[str], dict[str, Any]]:
    """Prepare the same shards through the same reader and writer, with nothing between the two."""
    with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
        os.mkdir(f"{folder}/out")
        baselines.through([warm_shard(folder)], f"{folder}/out")
    return functools.partial(baselines.through, shards)


def replace(at: str, name: str, epsilon: float, tokens: int, words: int) -> Callable[[str], dict[str, Any]]:
    """Prepare a mechanism on ids in memory, drawn from this many words.

    Building rows of words counts: each turn has another epsilon, a thousandth larger, so that no rows are reused.
    """
    turns = itertools.count()
    mechanism = cv.mechanism(name, cv.load_space(at))
    key = DrawKey.derive(cv.Key.for_tests(), "00" * 32)  # the same draws in every run
    ids = baselines.ids(tokens, words)
    mechanism.privatize(ids[:10], 50.0, Draws.of_tokens(key, 10))  # machine code, at another epsilon

    def run(_: str) -> dict[str, Any]:
        mechanism.privatize(ids, epsilon * (1 + next(turns) / 1000), Draws.of_tokens(key, tokens))
        return {"items": tokens}

    return run


def count(shards: list[str]) -> Callable[[str], dict[str, Any]]:
    """Prepare counting 1- to 3-grams in this process."""
    with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
        count_corpus([warm_shard(folder)], f"{folder}/out", Local(), CountOptions(3, 1))

    def run(folder: str) -> dict[str, Any]:
        count_corpus(shards, f"{folder}/out", Local(), CountOptions(3, 5))
        return {}

    return run


def passages(pieces: int, points: int, neighbors: int) -> Callable[[str], dict[str, Any]]:
    """Return a call that draws passages for a number of pieces; their vectors and the store's are random."""
    rows, asked = baselines.random_rows(pieces), baselines.random_rows(points)
    texts = pa.array(map(str, range(pieces)), pa.large_string())
    exchange = cv.PassageExchange(cv.Store(texts, rows, cv.load_space("en"), "0" * 64), neighbors)
    draws = Draws.of_tokens(DrawKey.derive(cv.Key.for_tests(), "00" * 32), points)
    exchange.privatize(asked, PASSAGE_EPSILON, draws)

    def run(_: str) -> dict[str, Any]:
        exchange.privatize(asked, PASSAGE_EPSILON, draws)
        return {"items": points}

    return run


def masking(at: str) -> Callable[[str], dict[str, Any]]:
    """Prepare ``cv.masker``: the wall time is what one of 100 texts of 100 words waits longer than, in a hook."""
    return baselines.longest_wait(cv.masker(inputs.release(at)))


KINDS: dict[str, Callable[..., Callable[[str], dict[str, Any]]]] = {
    "privatize": privatize,
    "copy": copy,
    "replace": replace,
    "count": count,
    "masking": masking,
    "passages": passages,
    **baselines.KINDS,
}


def main(kind: str, **arguments: Any) -> None:
    """Prepare, print a line, and do the work for each line read; print the figures of each turn as a line."""
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        run = KINDS[kind](**arguments)
        print("prepared", file=out, flush=True)
        for _ in iter(sys.stdin.readline, ""):
            with tempfile.TemporaryDirectory(dir=inputs.work()) as folder:
                cpu, wall = time.process_time(), time.perf_counter()
                told = run(folder)
                took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
            print(json.dumps({**took, **told}), file=out, flush=True)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
