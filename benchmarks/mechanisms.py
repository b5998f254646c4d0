"""All mechanisms on the peers' vectors: preparation, tokens per second, memory, N_w and S_w against the definition.

Each figure comes from a separate process with one thread: ``python -m benchmarks.mechanisms JSON``.
"""

import json
import resource
import sys
import time
from typing import Any

import numpy as np

import corpusveil as cv
from benchmarks import peers
from benchmarks.cmp import drive, fresh_of, space
from benchmarks.report import Skipped, Table
from corpusveil.sampling.draws import DrawKey, Draws

KEY = DrawKey.derive(cv.Key.for_tests(), "00" * 32)  # the same draws in every run
EPSILONS = (1.0, 5.0, 10.0)
TOKENS = 1_000_000
NOISY_TOKENS = 8192
ZIPF = 1.1
RUNS, ERRORS, REPEATS = 100, 5, 3
PREPARED = ("santext", "tem", "syntf", "custext", "ring-geometric", "diffractor-geometric", "diffractor-exponential")
NOISY = ("cmp", "mahalanobis", "vickrey-cmp", "vickrey-mahalanobis")
DEFINITIONS = {
    "cmp": "multivariate / CMP",
    "mahalanobis": "Mahalanobis lambda 0.2",
    "santext": "SanText",
    "tem": "TEM beta 0.001",
}
PEERS = {"cmp": "multivariate_calibrated", "mahalanobis": "mahalanobis", "vickrey-cmp": "vickrey", "tem": "tem"}
FASTER, PREPARING, MEMORY = 15.0, 60.0, 600


def run() -> list[Table]:
    table = Table(
        f"mechanisms on the peers' 33,787 × 300, one thread; Zipf text of {TOKENS:,} ({NOISY_TOKENS:,} with noise)",
        ("mechanism", "ε", "prepared in s", "tokens/s", "MiB for it", "N_w", "by definition", "S_w", "by definition "),
    )
    rates = {name: peer_rates(driver, table) for name, driver in PEERS.items()}
    at = str(space(0, peer=True, lists=1))
    measured: dict[str, list[float]] = {}
    for name in (*PREPARED, *NOISY):
        definition = peers.results("definition", DEFINITIONS[name]) if name in DEFINITIONS else {}
        for epsilon in EPSILONS:
            done = fresh_of("benchmarks.mechanisms", 1, at=at, name=name, epsilon=epsilon)
            expected = definition.get(epsilon, {})
            known = expected.get("N_w")
            table.rows.append(
                (name, f"{epsilon:g}", round(done["prepared"], 1), done["rate"], round(done["peak"]),
                 f"{done['n_w']:.4f}", "" if known is None else f"{known:.4f}", f"{done['s_w']:.1f}",
                 f"{expected['S_w_mean']:.1f}" if "S_w_mean" in expected else "")
            )  # fmt: skip
            measured.setdefault(name, []).append(done["rate"])
            if known is not None:
                error = np.sqrt(2 * max(known * (1 - known), 1e-4) / done["draws"]) + 5e-5
                words = f"{name}, ε = {epsilon:g}: N_w within {ERRORS} standard errors of the definition's"
                table.target(words, met=abs(done["n_w"] - known) <= ERRORS * error)
            if name in NOISY or name in PEERS:
                slowest = rates.get(name, {}).get(epsilon)
                if slowest:
                    words = f"{name}, ε = {epsilon:g}: {done['rate'] / slowest:,.0f} times mldp-text ({slowest:.0f}/s)"
                    table.target(f"{words}, {FASTER:g} asked", met=done["rate"] >= FASTER * slowest)
            if name in ("santext", "tem", "syntf"):
                words = f"{name}, ε = {epsilon:g}: prepared within {PREPARING:g} s and {MEMORY} MiB"
                table.target(words, met=done["prepared"] <= PREPARING and done["peak"] <= MEMORY)
    table.notes.append("Prepared: the rows of all words of the text, or what else is built once; the rate is after it.")
    return [table]


def peer_rates(driver: str, table: Table) -> dict[float, float]:
    """Return mldp-text's tokens a second by epsilon, the larger of wall and CPU rate, measured now."""
    try:
        rows = drive("mldp", driver)
    except Skipped as reason:
        table.notes.append(f"mldp-text {driver}: {reason}")
        return {}
    said = {row["epsilon"]: row["tokens_per_s"] for row in rows if "tokens_per_s" in row}
    return {epsilon: max(rate["median"], rate["per_cpu_s"]) for epsilon, rate in said.items()}


def measure(at: str, name: str, epsilon: float) -> dict[str, Any]:
    """Return the figures of one mechanism at one epsilon."""
    mechanism = cv.mechanism(name, cv.load_space(at))
    size = len(mechanism.space)
    rng = np.random.default_rng(0)
    tokens = NOISY_TOKENS if name in NOISY else TOKENS
    ids = ((rng.zipf(ZIPF, tokens) - 1) % size).astype(np.int32)
    mechanism.privatize(ids[:10], 50.0, Draws.of_tokens(KEY, 10))  # machine code, at another epsilon
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = time.perf_counter()
    first = ids[:10] if name in NOISY else np.arange(size, dtype=np.int32)
    mechanism.privatize(first, epsilon, Draws.of_tokens(KEY, first.size))
    prepared = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = []
    for number in range(REPEATS):
        draws = Draws.of_tokens(KEY, tokens, document=f"{number}")
        began = time.perf_counter()
        mechanism.privatize(ids, epsilon, draws)
        seconds.append(time.perf_counter() - began)
    probe = (peers.folder() / "probe_words.txt").read_text(encoding="utf-8").split()
    asked = np.repeat(np.array([mechanism.space.id(word) for word in probe], dtype=np.int32), RUNS)
    out = mechanism.privatize(asked, epsilon, Draws.of_tokens(KEY, asked.size, document="N_w"))
    distinct = [np.unique(row).size for row in out.reshape(-1, RUNS)]
    return {
        "prepared": prepared, "rate": tokens / sorted(seconds)[REPEATS // 2], "draws": asked.size,
        "peak": peak - before,
        "n_w": float((out == asked).mean()), "s_w": float(np.mean(distinct)),
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
