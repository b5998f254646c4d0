"""Ledger and caps: how long a release waits for its verdict, and in how much memory, by how many documents there are.

A ledger with one release of so many documents, of the lengths of C4 (log-normal, 320 words on average), and a second
release planned. Nothing is tokenised: the pass that notes readings is measured by ``corpus``.
"""

import json
import math
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa

from benchmarks import inputs
from benchmarks.report import Table
from corpusveil.budget.accounting import upward
from corpusveil.sampling.grid import share
from corpusveil.storage.ledger import FINGERPRINT, ROWS, Entry, Ledger
from corpusveil.transforms.spending import Caps, refuse_over

C4 = 365_000_000
DOCUMENTS = 10_000_000
OF_AN_ENTRY = 250_000
WORDS = 320
BUDGET = 10.0
CAPS = {
    "sum of epsilons": Caps(total=30.0),
    "plain LDP": Caps(ldp=1e6),
    "at delta 1e-6, by bounds": Caps(total=20.1, delta=1e-6),
    "at delta 1e-6, composed": Caps(total=19.99, delta=1e-6),
}
"""Short documents spend 20 in the two releases: the first is decided by sums, the last by composing some."""


def run(documents: str = str(DOCUMENTS)) -> list[Table]:
    table = Table(
        f"Caps for {int(documents):,} documents, one release in the ledger and one planned",
        ("cap", "read ledger s", "verdict s", "peak MiB", "bytes a document", "C4 GiB", "C4 minutes"),
    )
    for name in CAPS:
        told = subprocess.run(
            [sys.executable, "-m", "benchmarks.ledger", documents, name],
            check=True, capture_output=True, text=True, cwd=inputs.ROOT,
        )  # fmt: skip
        done = json.loads(told.stdout.splitlines()[-1])
        times = C4 / int(documents)
        table.rows.append(
            (name, done["read"], done["verdict"], round(done["peak"] / 2**20), round(done["peak"] / int(documents)),
             round(done["peak"] * times / 2**30), round((done["read"] + done["verdict"]) * times / 60))
        )  # fmt: skip
    return [table]


def entries(documents: int, release: str, random: np.random.Generator) -> list[Entry]:
    """Return a release of so many documents, the same ones in every release, each with noise of its own."""
    lengths = np.random.default_rng(1)
    found = []
    for first in range(0, documents, OF_AN_ENTRY):
        size = min(OF_AN_ENTRY, documents - first)
        tokens = np.maximum(lengths.lognormal(math.log(WORDS) - 0.5, 1.0, size), 20).astype(np.int64)
        largest = share(BUDGET, tokens)
        total = np.minimum(largest * tokens * (1 + 2.0**-40), BUDGET)
        known = np.zeros((size, 16), np.uint8)
        known[:, :8] = np.arange(first, first + size, dtype=np.uint64).view(np.uint8).reshape(-1, 8)
        columns = [
            *(pa.FixedSizeBinaryArray.from_buffers(FINGERPRINT, size, [None, pa.py_buffer(tags.tobytes())])
              for tags in (random.integers(0, 256, (size, 16), np.uint8), known, known)),
            tokens, total, largest, tokens * upward(30),
        ]  # fmt: skip
        about = {
            "version": 2, "corpus": "c4", "column": "text", "shard": str(first), "rows": [0, size], "release": release,
            "metric": "m", "mechanism": "ring-geometric", "space": "0" * 64, "budget": {},
        }  # fmt: skip
        found.append(Entry(about, pa.table(dict(zip(ROWS.names, columns, strict=True)), ROWS)))
    return found


def prepare(folder: str, documents: int) -> tuple[Ledger, list[Entry]]:
    """Return a ledger in the folder that holds one release, and what a second one of the same documents plans."""
    random = np.random.default_rng(0)
    ledger = Ledger.open(folder)
    ledger.enter(entries(documents, "before", random), None)
    return ledger, entries(documents, "planned", random)


def measure(documents: int, caps: Caps) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        ledger, planned = prepare(folder, documents)
        began = time.perf_counter()
        there = list(ledger.entries())
        read = time.perf_counter() - began
        refuse_over(caps, there, planned)
        verdict = time.perf_counter() - began - read
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return {"read": round(read, 2), "verdict": round(verdict, 2), "peak": peak}


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), CAPS[sys.argv[2]])))
