"""Building a language model in bounded memory: n-grams of drawn words by the tens of millions, two processes."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import inputs
from benchmarks.job import peak_mb
from benchmarks.report import Table
from corpusveil.collocations.artifact import write_artifact
from corpusveil.collocations.counting_stages import table_of, write_part
from corpusveil.jobs.local import Local
from corpusveil.language.modelling import build_model

TOKENS = (4_000_000, 16_000_000, 64_000_000)
WORDS, PARTS = 500_000, 64


def run() -> list[Table]:
    table = Table(
        "A language model of drawn words (Zipf's law), two processes",
        ("M tokens", "M bigrams", "M trigrams", "MiB on disk", "seconds", "peak MiB of the driver", "of a worker"),
    )
    for tokens in TOKENS:
        counts, folder = inputs.work() / f"drawn-{tokens}", inputs.work() / f"drawn-model-{tokens}"
        for step in ("count", "build"):  # each in a process of its own, whose peak is its own
            command = [sys.executable, "-m", "benchmarks.model", step, str(tokens), str(counts), str(folder)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
        made = json.loads(done.stdout)
        size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
        table.rows.append(
            (tokens / 1e6, made["bigrams"] / 1e6, made["trigrams"] / 1e6, round(size / 2**20), made["seconds"],
             round(made["driver"]), round(made["worker"]))
        )  # fmt: skip
    table.notes.append("The driver holds what belongs to words and to bigrams, a worker one range of n-grams.")
    return [table]


def draw_counts(tokens: int, output: str) -> None:
    """Write counts as ``corpusveil count`` does, of words that are drawn one by one."""
    rng = np.random.default_rng(7)
    weights = 1.0 / np.arange(1, WORDS + 1)
    text = np.searchsorted(np.cumsum(weights) / weights.sum(), rng.random(tokens)).astype(np.int64)
    names = pa.array([f"w{number:x}" for number in range(WORDS)], pa.large_string())
    unigrams = np.bincount(text, minlength=WORDS)
    some = np.flatnonzero(unigrams)
    write_part(output, 0, PARTS + 1, table_of([names.take(some)], np.ones(some.size, np.int8), unigrams[some]))
    written = some.size
    for part in range(PARTS):
        ngrams, lengths, counts = [], [], []
        for n in (2, 3):
            mine = np.flatnonzero((text[: 1 - n] * 7919) % PARTS == part)
            keys = text[mine] * WORDS + text[mine + 1]
            keys = keys if n == 2 else keys * WORDS + text[mine + 2]
            found, often = np.unique(keys, return_counts=True)
            words = [names.take(found // WORDS**place % WORDS) for place in reversed(range(n))]
            joined = pc.binary_join_element_wise(*words, pa.scalar(" ", pa.large_string()))
            ngrams.append(joined)
            lengths.append(np.full(found.size, n, np.int8))
            counts.append(often)
            written += found.size
        write_part(output, part + 1, PARTS + 1, table_of(ngrams, np.concatenate(lengths), np.concatenate(counts)))
    told = {
        "options": {"max_n": 3, "min_count": 1, "text": "text"}, "hyphens": "split", "over_stops": True,
        "words": tokens, "ngrams": written, "parts": PARTS, "digest": f"{tokens:064d}",
    }  # fmt: skip
    write_artifact(output, "counts", "drawn", told)


def main(step: str, tokens: str, counts: str, folder: str) -> None:
    if step == "count":
        if not (Path(counts) / "_artifact.json").exists():
            draw_counts(int(tokens), counts)
        return
    import resource

    began = time.monotonic()
    made = build_model(counts, folder, Local(2))
    worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    told = {"seconds": round(time.monotonic() - began, 1), "driver": peak_mb(), "worker": worker}
    print(json.dumps(told | {name: made[name] for name in ("bigrams", "trigrams")}))


if __name__ == "__main__":
    main(*sys.argv[1:])
