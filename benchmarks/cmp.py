"""CMP: tokens per second and shares of time, compared with a plain float64 loop and with the packages on PyPI.

Each figure comes from a process of its own, since a BLAS takes its number of threads when it is loaded:
``python -m benchmarks.cmp JSON`` is what is started.
"""

import functools
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import corpusveil as cv
from benchmarks import inputs, peers
from benchmarks.job import held_to, peak_mb
from benchmarks.report import Skipped, Table
from corpusveil.mechanisms.on_vectors import BLOCK
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.spaces import nearest_words, slices

KEY = DrawKey.derive(cv.Key.for_tests(), "00" * 32)  # the same draws in every run
MANY, DIMENSIONS = 400_000, 300
REPEATS = 3
FASTER = 20
"""In multiples of the faster peer's tokens per CPU second."""
RUNS, ERRORS = 100, 4
PACKAGES = {"mldp": ("mldp-text", "psutil"), "pypantera": ("pypantera", "psutil")}
DRIVERS = {"mldp": ("run_mldp.py", "multivariate_calibrated"), "pypantera": ("run_pypantera.py", "CMP")}
BRIEF = {"BENCH_SECONDS": "1", "BENCH_PROBE_SECONDS": "1"}
"""A shorter time for each of the drivers' measurements; their N_w is not used."""


def run() -> list[Table]:
    return [speed(), beside()]


def speed() -> Table:
    table = Table(
        f"cmp: tokens replaced a second, ε a word; {'minilm-words' if inputs.data() else 'generated vectors'}, and "
        f"{MANY:,} generated vectors",
        ("words × dimensions", "ε", "threads", "tokens/s", "CPU µs a token", "noise %", "products %",
         "compared in float64", "unchanged", "peak MiB", "bare product tokens/s", "plain float64 tokens/s"),
    )  # fmt: skip
    for many, epsilon, threads, count in (
        (0, 10, 1, 16),
        (0, 10, 2, 16),
        (0, 100, 2, 16),
        (1, 10, 1, 2),
        (1, 10, 2, 2),
    ):
        done = fresh(threads, space=str(space(MANY) if many else space(0)), epsilon=epsilon, tokens=count * BLOCK)
        shares = (f"{done['noise']:.1f}", f"{done['products']:.0f}", f"{done['compared']:.2%}")
        table.rows.append(
            (f"{done['words']:,} × {done['dimensions']}", f"{epsilon}", threads, done["rate"], done["cpu"], *shares,
             f"{done['unchanged']:.1%}", round(done["peak"]), done["bare"], done["plain"])
        )  # fmt: skip
    table.notes += [
        f"Median of {REPEATS} calls. Products: float32 matrix products, which nominate, timed apart.",
        "Bare product: the matrix product of as many points and words alone, which no exact search by products beats.",
        "Plain float64: one token at a time, numpy noise, differences to all words, argmin.",
    ]
    return table


def beside() -> Table:
    """Compare with the peers on their own inputs, one after the other, each with one BLAS thread."""
    table = Table(
        "cmp beside the packages on PyPI, their inputs and drivers, one thread",
        ("what", "ε", "tokens/s", "a CPU s", "ratio of CPU", "N_w", "N_w by definition"),
    )
    definition = peers.results("definition", "multivariate / CMP")
    made = str(space(0, peer=True))
    fastest = dict.fromkeys(definition, 0.0)
    rows = []
    for peer in PACKAGES:
        try:
            said = drive(peer)
        except Skipped as reason:
            table.notes.append(f"{peer}: {reason}")
            continue
        for row in said:
            if "tokens_per_s" not in row:
                table.notes.append(f"{row['peer']} at ε = {row['epsilon']}: {row.get('error')}")
                continue
            rate = row["tokens_per_s"]
            best = max(rate["median"], rate["per_cpu_s"])
            fastest[row["epsilon"]] = max(fastest[row["epsilon"]], best)
            rows.append((f"{row['peer']} {row['version']}", row["epsilon"], rate["median"], rate["per_cpu_s"], best))
    for epsilon, expected in definition.items():
        done = fresh(1, space=made, epsilon=epsilon, tokens=8 * BLOCK)
        own = 1e6 / done["cpu"]
        seen, error = n_w(made, epsilon, expected["N_w"])
        cells = (f"{seen:.4f}", f"{expected['N_w']:.4f}")
        table.rows.append(("ours", f"{epsilon:g}", done["rate"], own, "", *cells))
        table.rows += [
            (name, f"{at:g}", wall, cpu, own / best, "", "") for name, at, wall, cpu, best in rows if at == epsilon
        ]
        if fastest[epsilon]:
            ratio = own / fastest[epsilon]
            table.target(f"ε = {epsilon:g}: {ratio:,.0f} times the faster peer, {FASTER} asked", met=ratio >= FASTER)
        words = f"ε = {epsilon:g}: N_w within {ERRORS} standard errors of the definition's"
        table.target(words, met=abs(seen - expected["N_w"]) <= ERRORS * error)
    table.notes.append(
        "Ratio: our tokens a CPU second to the larger of the peer's two rates. Ours replaces every token; the peers' "
        "texts hold stop words, punctuation and unknown words, which mldp-text returns as they are."
    )
    return table


def n_w(at: str, epsilon: float, expected: float) -> tuple[float, float]:
    """Return the share of draws equal to the input on the peers' probe words, and the standard error of a difference.

    The definition's share is a mean of as many draws.
    """
    mechanism = cv.mechanism("cmp", cv.load_space(at))
    probe = (peers.folder() / "probe_words.txt").read_text(encoding="utf-8").split()
    ids = np.repeat(np.array([mechanism.space.id(word) for word in probe], dtype=np.int32), RUNS)
    out = mechanism.privatize(ids, epsilon, Draws.of_tokens(KEY, ids.size, document=f"N_w {epsilon}"))
    return float((out == ids).mean()), float(np.sqrt(2 * max(expected * (1 - expected), 1 / ids.size) / ids.size))


@functools.cache
def space(many: int, *, peer: bool = False, lists: int = 0) -> Path:
    """Return a saved space: of the shared or peers' vectors, or of this many generated vectors."""
    folder = inputs.work() / (("cmp-peers" if peer else f"cmp-{many or 'words'}") + ("-listed" if lists else ""))
    if (folder / "_artifact.json").exists():
        return folder
    path = peers.folder() / "emb.w2v.txt" if peer else Path(inputs.vectors())
    if many:
        path = inputs.work() / f"cmp-{many}.npz"
        rng = np.random.default_rng(2)
        drawn = rng.standard_normal((many, DIMENSIONS), dtype=np.float32) / np.float32(math.sqrt(DIMENSIONS))
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
        names = letters[np.arange(many)[:, None] // 26 ** np.arange(4) % 26]
        np.savez(path, vocab=np.array(["".join(row) for row in names]), vectors=drawn)
    cv.build_space(cv.read_vectors(str(path)), lists=lists).save(str(folder))
    return folder


def fresh(threads: int, **arguments: Any) -> dict[str, Any]:
    return fresh_of("benchmarks.cmp", threads, **arguments)


def fresh_of(module: str, threads: int, **arguments: Any) -> dict[str, Any]:
    """Let a module measure in a new process with this many threads, of the BLAS and of ours."""
    command = [sys.executable, "-m", module, json.dumps(arguments)]
    told = subprocess.run(
        command, cwd=inputs.ROOT, env=held_to(threads), stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    return json.loads(told.splitlines()[-1])


def measure(space: str, epsilon: float, tokens: int) -> dict[str, Any]:
    """Return the rates and shares of one space, epsilon and number of threads."""
    mechanism = cv.mechanism("cmp", cv.load_space(space))
    size, dimensions = mechanism.space.vectors.shape
    ids = np.random.default_rng(0).integers(0, size, tokens).astype(np.int32)
    draws = Draws.of_tokens(KEY, tokens)
    mechanism.privatize(ids[:10], epsilon, Draws.of_tokens(KEY, 10))
    walls, cpus = [], []
    for _ in range(REPEATS):
        wall, cpu = time.perf_counter(), time.process_time()
        out = mechanism.privatize(ids, epsilon, draws)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    wall, peak = sorted(walls)[REPEATS // 2], peak_mb()
    points = np.empty((BLOCK, dimensions))
    part = Draws(KEY, draws.tags, draws.documents[:BLOCK], draws.positions[:BLOCK])
    fill = (ids[:BLOCK], np.full(BLOCK, epsilon), part, points)
    noise = clocked(lambda: slices.in_slices(BLOCK, mechanism._fill, *fill))  # noqa: SLF001
    _, compared = nearest_words.search_of(mechanism.space).search(points, 1)
    left, tile = points.astype(np.float32), np.empty((BLOCK, nearest_words.TILE_COLUMNS), np.float32)
    starts = range(0, size, nearest_words.TILE_COLUMNS)
    vectors = mechanism.space.vectors

    def multiply() -> None:
        for first in starts:
            right = vectors[first : first + nearest_words.TILE_COLUMNS]
            np.matmul(left, right.T, out=tile.ravel()[: BLOCK * len(right)].reshape(BLOCK, -1))

    bare = clocked(multiply)
    each = wall / tokens
    return {
        "words": size, "dimensions": dimensions, "rate": 1 / each, "cpu": sorted(cpus)[REPEATS // 2] / tokens * 1e6,
        "noise": 100 * noise / BLOCK / each, "products": 100 * bare / BLOCK / each, "bare": BLOCK / bare,
        "compared": float((compared > 0).mean()), "unchanged": float((out == ids).mean()), "peak": peak,
        "plain": plain(vectors, epsilon),
    }  # fmt: skip


def clocked(work: Any) -> float:
    """Return the median seconds of some calls."""
    seconds = []
    for _ in range(2 * REPEATS + 1):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return sorted(seconds)[REPEATS]


def plain(vectors: np.ndarray, epsilon: float) -> float:
    """Return the tokens per second of the definition in NumPy, one token at a time."""
    rng, words, k = np.random.default_rng(0), vectors.astype(np.float64), vectors.shape[1]

    def token() -> None:
        direction = rng.standard_normal(k)
        point = words[rng.integers(len(words))] + rng.gamma(k, 1 / epsilon) * direction / np.linalg.norm(direction)
        ((words - point) ** 2).sum(axis=1).argmin()

    return 1 / clocked(token)


def drive(peer: str, mechanism: str | None = None) -> list[dict[str, Any]]:
    """Run a peer's driver unchanged, in a separate environment; return the rows that it writes."""
    data, drivers = peers.folder(), peers.drivers()
    home = inputs.work() / f"peer-{peer}"
    python = str(home / "bin" / "python")
    if not (home / "ready").exists():
        for command in (
            [sys.executable, "-m", "venv", str(home)],
            [python, "-m", "pip", "install", "--quiet", *PACKAGES[peer]],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise Skipped(f"could not be installed: {(done.stderr or done.stdout).strip()[-200:]}")
        (home / "ready").touch()
    results = inputs.work() / "peer-results"
    script, usual = DRIVERS[peer]
    written = results / f"{Path(script).stem}.jsonl"
    written.unlink(missing_ok=True)
    paths = {"BENCH_DATA": str(data), "BENCH_OUT": str(results)}
    quiet = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [python, script, mechanism or usual], cwd=drivers, env={**os.environ, **paths, **quiet, **BRIEF},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode or not written.exists():
        raise Skipped(f"its driver failed: {done.stderr.strip()[-200:]}")
    return [json.loads(line) for line in written.read_text().splitlines()]


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
