"""A small store of the words of the tests."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

import corpusveil as cv
from corpusveil.passages.passage_exchange import PassageExchange
from corpusveil.passages.store import Store
from tests.engines.corpora import TEST_KEY, WORDS, make_space

PIECES = [f"{' '.join(WORDS[start : start + 4]).capitalize()}." for start in range(0, 80, 2)]
FIGURES = {"figures": {"like": {"similarity": [0.8, 0.5, 0.45, 0.4, 0.38], "overall": 0.1}}}


@functools.cache
def small_store() -> Store:
    """Return a saved store of forty pieces; the folder goes with the machine's temporary files."""
    folder = Path(tempfile.mkdtemp(prefix="corpusveil-store-"))
    space, info = make_space(folder / "space"), {"licence": "CC0-1.0", **FIGURES}
    return Store.of(pa.array(PIECES, pa.large_string()), space, info).save(folder / "store")


def passage_release(per: Any = "document", epsilon: float = 6.0, **more: Any) -> cv.PassageRelease:
    """Return a release by passages under the key of the tests."""
    return cv.PassageRelease(PassageExchange(small_store()), epsilon, per, key=cv.Key(TEST_KEY), **more)
