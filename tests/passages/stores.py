"""Public texts of which the tests make stores, and a small store of the words of the tests."""

from __future__ import annotations

import functools
import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import corpusveil as cv
from corpusveil.passages.build import SALT_BYTES
from corpusveil.passages.passage_exchange import PassageExchange
from corpusveil.passages.store import TEXTS, VECTORS, Store
from tests.engines.corpora import TEST_KEY, WORDS, make_space, release_files, write_shard

PIECES = [f"{' '.join(WORDS[start : start + 4]).capitalize()}." for start in range(0, 80, 2)]
FIGURES = {"figures": {"like": {"similarity": [0.8, 0.5, 0.45, 0.4, 0.38], "overall": 0.1}}}


@functools.cache
def small_store() -> Store:
    """Return a saved store of forty pieces; the folder goes with the machine's temporary files."""
    folder = Path(tempfile.mkdtemp(prefix="corpusveil-store-"))
    space, info = make_space(folder / "space"), {"licence": "CC0-1.0", **FIGURES}
    return Store.from_texts(pa.array(PIECES, pa.large_string()), space, info).save(folder / "store")


def passage_release(per: Any = "document", epsilon: float = 6.0, **more: Any) -> cv.PassageRelease:
    """Return a release by passages under the key of the tests."""
    return cv.PassageRelease(PassageExchange(small_store()), epsilon, per, key=cv.Key(TEST_KEY), **more)


SALT, OTHER = "00" * SALT_BYTES, "5a" * SALT_BYTES
GRAMMAR = """\
old new cold warm small large quiet busy clean dirty early late cheap strange
river house train letter garden kitchen bridge market window doctor teacher driver bottle ticket
found opened closed moved cleaned painted watched missed
"""
ADJECTIVES, NOUNS, VERBS = (line.split() for line in GRAMMAR.splitlines())
SENTENCES = [
    f"The {one} {two} {verb} a {three}."
    for one, two, verb, three in itertools.product(ADJECTIVES, NOUNS, VERBS, NOUNS)
    if two != three
]


def write(folder: Path, texts: Sequence[str], shards: int = 1) -> str:
    for shard in range(shards):
        write_shard(folder / f"{shard}.jsonl", [{"text": text} for text in texts[shard::shards]])
    return str(folder)


def content(folder: Path) -> dict[str, str]:
    return {name: digest for name, digest in release_files(folder).items() if name in (TEXTS, VECTORS)}
