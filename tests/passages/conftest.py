"""A store of public texts, made once a process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.passages.build import build_store
from tests.passages.stores import SALT, SENTENCES, write


@pytest.fixture(scope="session")
def space() -> cv.Space:
    return cv.load_space("space://en")


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three shards of texts of three sentences."""
    random = np.random.default_rng(5).permutation(len(SENTENCES))[:1800]
    texts = [" ".join(SENTENCES[at] for at in some) for some in random.reshape(-1, 3)]
    return write(tmp_path_factory.mktemp("corpus") / "in", texts, 3)


@pytest.fixture(scope="session")
def reference(corpus: str, space: cv.Space, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("reference") / "store"
    build_store(corpus, output, space, "CC0", size=500, salt=SALT)
    return output
