"""A small space, corpora with everything in them that can go wrong, and the command line: what these suites share."""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

import corpusveil as cv
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "corpusveil"]
HANG_SECONDS = 900
"""After so long, a test that waits for an event fails: only a hang takes it, also on a busy machine."""
BLOCK = 8192
SYLLABLES = ("ba", "de", "ki", "lo", "mu", "na", "ri", "so", "ta", "ve")
WORDS = [a + b + c for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES[:4]]
UNKNOWN = "zyxwquux"
"""A word outside the vocabulary, out of which every canary is made."""
CANARIES = {
    "unknown word": UNKNOWN,
    "capitals": "Qvortexia",
    "number": "90210773311",
    "e-mail": "jane.canaryfield@canary-mail.example",
    "address": "https://canary-host.example/pathcanary?q=secretcanary",
    "handle": "@canaryhandle",
    "emoji": "\U0001f9ff",
    "letters": "\u540d\u524d\u79d8\u5bc6",
}
COLUMN_CANARY = "canaryinacolumn"
NAME_CANARY = "canaryinaname"
TEST_KEY = bytes(range(100, 132))


def make_space(folder: Path, seed: int = 0, words: Sequence[str] = WORDS) -> Space:
    """Save a space of a few hundred words with random vectors and counts under ``folder``; return it."""
    return _built(seed, tuple(words)).save(str(folder))


@functools.cache
def _built(seed: int, words: tuple[str, ...]) -> Space:
    rng = np.random.default_rng(seed)
    vectors = Vectors(list(words), rng.standard_normal((len(words), 8)).astype(np.float32))
    return cv.build_space(vectors, counts=rng.integers(1, 1000, len(words)))


def make_release(space: Space, epsilon: float = 1.0, key: bytes = TEST_KEY, **policy: Any) -> cv.Release:
    """Return a release with a fixed key."""
    mechanism = cv.mechanism("ring-geometric", space)
    return cv.Release(mechanism, cv.Budget(epsilon), cv.TextPolicy(**policy), key=cv.Key(key))


def text_of(rng: random.Random, words: int) -> str:
    """Return a text of so many words, some of them capitals, now and then with punctuation or something rare."""
    chosen = rng.choices(WORDS, k=words)
    for at in range(0, words, 7):
        chosen[at] = chosen[at].capitalize()
    for at in range(5, words, 11):
        chosen[at] += rng.choice((",", ".", "!", " \u2014", "\u2026"))
    if words and rng.random() < 0.3:
        rare = ("caf\u00e9", "\u0130stanbul", "e\u0301te\u0301", "12,5", "\u0663\u0664", "don\u2019t")
        chosen[rng.randrange(words)] = rng.choice((*CANARIES.values(), *rare))
    return rng.choice((" ", " ", "  ", "\n", "\u00a0", "\t")).join(chosen)


def rows(count: int, seed: int, words: int = 5) -> list[dict[str, Any]]:
    """Return documents: short texts of many kinds, an ``id``, a nested ``extra`` and a ``secret``."""
    rng = random.Random(seed)
    odd = ("", " ", "\n\n", "\x00\x01", "\u200d\U0001f469", "...", "a\u0300" * 20)
    return [
        {
            "text": rng.choice(odd) if number % 97 == 5 else text_of(rng, rng.randrange(2 * words)),
            "id": f"{seed}/{number}",
            "extra": {"n": number, "of": [seed, None, 0.5, "\u00fc"]},
            "secret": COLUMN_CANARY,
        }
        for number in range(count)
    ]


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, 1, mtime=0),
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def packed(data: bytes, name: str) -> bytes:
    """Compress as the ending of a name says."""
    return COMPRESS.get(name.rsplit(".", 1)[-1], bytes)(data)


def encode(documents: Iterable[dict[str, Any]]) -> bytes:
    """Return documents as JSON lines."""
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in documents)


def write_shard(path: Path, documents: Iterable[dict[str, Any]]) -> Path:
    """Write one shard of JSON lines, gzipped where its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed(encode(documents), path.name))
    return path


def write_corpus(folder: Path, shards: Sequence[Sequence[dict[str, Any]]]) -> Path:
    """Write shards as ``c4-train.0000N-of-M.json.gz``; return their folder."""
    for number, documents in enumerate(shards):
        write_shard(folder / f"c4-train.{number:05d}-of-{len(shards):05d}.json.gz", documents)
    return folder


def write_large_corpus(folder: Path, shards: int, copies: int) -> Path:
    """Write shards that each take a while: the same rows ``copies`` times over, each a gzip member."""
    folder.mkdir(parents=True)
    member = gzip.compress(encode(rows(4000, 1, words=40)), 1, mtime=0)
    for number in range(shards):
        first = gzip.compress(encode(rows(10 + number, 2 + number)), 1, mtime=0)
        (folder / f"large.{number:05d}.json.gz").write_bytes(first + member * copies)
    return folder


def read_shard(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a shard."""
    data = path.read_bytes()
    return [json.loads(line) for line in (gzip.decompress(data) if path.name.endswith(".gz") else data).splitlines()]


def data_files(output: Path) -> list[Path]:
    """Return the shards of a release."""
    return sorted(path for path in (output / "data").glob("*") if not path.name.startswith("."))


def release_files(output: Path) -> dict[str, str]:
    """Return every file of a release folder, hidden ones too, with the SHA-256 of its bytes as they lie there."""
    return {
        path.relative_to(output).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(output.rglob("*"))
        if path.is_file()
    }


def manifest(output: str | Path) -> dict[str, Any]:
    """Return the manifest of a release."""
    written: dict[str, Any] = json.loads(Path(output, "manifest.json").read_bytes())
    return written


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return the environment of a command that leaves this user's folders alone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "CORPUSVEIL_KEY"))}
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**kept, "HOME": str(home), "PYTHONPATH": paths, "COLUMNS": "200", **more}


def run(
    *arguments: object, home: Path, cwd: Path | None = None, timeout: float = HANG_SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run a command line of corpusveil in a process of its own."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        env=environment(home),
        cwd=cwd or home,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@dataclass(frozen=True)
class Ground:
    """A folder with a space, a key and a small corpus: one shard of several blocks, short, empty and long ones."""

    folder: Path
    space: Space
    key: Path
    corpus: Path

    @property
    def space_folder(self) -> Path:
        """Where the space is saved."""
        return self.folder / "space"

    def arguments(self, source: Path | str, output: Path | str, *more: object) -> list[str]:
        """Return the arguments of an ordinary ``privatize`` on this ground."""
        words = ["privatize", source, "--space", self.space_folder, "--output", output, "--mechanism", "ring-geometric"]
        return [str(word) for word in (*words, "--epsilon", "1", "--key", self.key, "--progress", "none", *more)]


def make_ground(folder: Path, *first: Sequence[dict[str, Any]]) -> Ground:
    """Make the ground of a suite under ``folder``, its corpus perhaps with other first shards."""
    key = folder / "release.key"
    cv.Key(TEST_KEY).save(key)
    shards = [*(first or (rows(2 * BLOCK + 700, 0), rows(BLOCK, 1, words=3))), [], rows(40, 2, words=400), rows(1, 3)]
    return Ground(folder, make_space(folder / "space"), key, write_corpus(folder / "c4", shards))


def records_text(output: Path) -> str:
    """Return all that the records of an output say."""
    folder = output.with_name(output.name + ".records")
    return "".join(path.read_text() for path in folder.rglob("*.json"))
