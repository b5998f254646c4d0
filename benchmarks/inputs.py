"""The data of benchmarks: the shared data if available, otherwise generated text and vectors of the same sizes.

``CORPUSVEIL_BENCH_DATA`` names the data folder (default: ``../shared/data`` beside the project);
``CORPUSVEIL_BENCH_WORK`` a folder that is kept from run to run (default: a temporary one, deleted at the end).
"""

import atexit
import functools
import gzip
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import orjson

import corpusveil as cv
from corpusveil.pipelines.python_calls import privatize_corpus

ROOT = Path(__file__).resolve().parents[1]
VECTORS = "embeddings/minilm-words-300d.npz"
SMALLEST = bool(os.environ.get("CORPUSVEIL_BENCH_SMALLEST"))
"""Generated data of the smallest size: a test runs every benchmark, so that none breaks unseen."""
SHARDS, WORDS, DIMENSIONS, CLUSTERS = (2, 600, 16, 20) if SMALLEST else (12, 34_000, 300, 500)
DOCUMENTS, LONGEST = (40, 60) if SMALLEST else (8_200, 650)
"""Documents and words of a generated shard, about as in a shard of c4-like."""


@functools.cache
def work() -> Path:
    """Return the folder for all intermediate files."""
    if kept := os.environ.get("CORPUSVEIL_BENCH_WORK"):
        Path(kept).mkdir(parents=True, exist_ok=True)
        return Path(kept).resolve()
    folder = Path(tempfile.mkdtemp(prefix="corpusveil-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def data() -> Path | None:
    """Return the folder of shared data, None where there is none."""
    folder = Path(os.environ.get("CORPUSVEIL_BENCH_DATA", ROOT.parent / "shared" / "data"))
    if SMALLEST:
        return None
    return folder.resolve() if (folder / "c4-like").is_dir() and (folder / VECTORS).is_file() else None


def origin() -> str:
    return "c4-like, minilm-words" if data() else "generated text and vectors (no shared data here)"


@functools.cache
def shards() -> list[str]:
    """Return the paths of the input shards."""
    if folder := data():
        return sorted(str(path) for path in (folder / "c4-like").glob("*.json.gz"))
    return [str(_generated_shard(number)) for number in range(SHARDS)]


@functools.cache
def vectors() -> str:
    """Return the path of about 34,000 vectors of 300 dimensions."""
    if folder := data():
        return str(folder / VECTORS)
    path = work() / "generated.npz"
    if not path.exists():
        rng = np.random.default_rng(1)
        centres = rng.standard_normal((CLUSTERS, DIMENSIONS), dtype=np.float32)
        drawn = centres[rng.integers(0, CLUSTERS, WORDS)] + rng.standard_normal((WORDS, DIMENSIONS), dtype=np.float32)
        np.savez(path, vocab=np.array(_generated_words()), vectors=drawn)
    return str(path)


@functools.cache
def space() -> str:
    """Return the address of the space with which texts are privatized."""
    folder = work() / "space"
    if not (folder / "_artifact.json").exists():
        cv.build_space(cv.read_vectors(vectors())).save(str(folder))
    return str(folder)


@functools.cache
def key() -> str:
    """Return a key file, which is deleted together with its releases."""
    path = work() / "bench.key"
    if not path.exists():
        cv.Key.generate().save(path)
    return str(path)


def release(at: Path | str, epsilon: float = 1.0, mechanism: str = "ring-geometric") -> cv.Release:
    """Return the release that benchmarks run: epsilon a token, the default text policy."""
    chosen = cv.mechanism(mechanism, cv.load_space(str(at)))
    return cv.Release(chosen, cv.Budget(epsilon), cv.TextPolicy(), key=cv.Key.load(key()))


def shard_in(suffix: str) -> str:
    """Return the first shard's documents in this form, from a release that hardly changes a word."""
    folder = work() / "forms" / suffix.strip(".")
    if not (folder / "manifest.json").exists():
        privatize_corpus(shards()[0], folder, release(space(), epsilon=30.0), format=suffix[1:])
    return str(next((folder / "data").glob("part-*")))


@functools.cache
def count(path: str) -> tuple[int, int]:
    """Return the documents and the white-space words of one shard."""
    with gzip.open(path, "rb") as file:
        lengths = [len(orjson.loads(line)["text"].split()) for line in file]
    return len(lengths), sum(lengths)


def words(paths: list[str]) -> int:
    return sum(count(path)[1] for path in paths)


def _generated_words() -> list[str]:
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    base = len(syllables)
    return [syllables[n % base] + syllables[n // base % base] + syllables[n // base**2] for n in range(WORDS)]


def _generated_shard(number: int) -> Path:
    path = work() / "generated" / f"c4-train.{number:05d}-of-{SHARDS:05d}.json.gz"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        rng = np.random.default_rng(number)
        known = np.array([*_generated_words(), "qu'elle,", "1234.", "unknowable", "X@example.org", "The"])
        zipf = 1 / (np.arange(known.size) + 2.7)
        lengths = rng.integers(50, LONGEST, DOCUMENTS)
        drawn = known[rng.choice(known.size, lengths.sum(), p=zipf / zipf.sum())]
        documents = np.split(drawn, np.cumsum(lengths)[:-1])
        lines = b"".join(orjson.dumps({"text": " ".join(words)}) + b"\n" for words in documents)
        path.write_bytes(gzip.compress(lines, 6, mtime=0))
    return path
