"""What a notebook has at hand: a saved space, a key file, a release, and a data set of reviews."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import corpusveil as cv
from tests.contracts.spaces import small_space, words_of
from tests.engines.corpora import write_shard

WORDS = words_of(60)


@pytest.fixture(scope="session")
def space(tmp_path_factory: pytest.TempPathFactory) -> cv.Space:
    """A saved space of sixty words with public counts."""
    made = small_space(words=WORDS, counts=range(60, 0, -1))
    return made.save(tmp_path_factory.mktemp("spaces") / "small")


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> cv.Key:
    path = tmp_path_factory.mktemp("keys") / "release.key"
    cv.Key.generate().save(path)
    return cv.Key.load(path)


@pytest.fixture
def release(space: cv.Space, key: cv.Key) -> cv.Release:
    return cv.Release(cv.RingGeometric(space), cv.Budget(1.0), key=key)


@pytest.fixture
def columns() -> dict[str, Any]:
    """Eight reviews: an id, a text of which one is missing, and stars."""
    texts = [None if row == 3 else " ".join(WORDS[row : row + 6]) for row in range(8)]
    return {"id": list(range(100, 108)), "text": texts, "stars": [row % 2 for row in range(8)]}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Two shards of five documents, as files."""
    rows = [{"url": f"u{row}", "text": " ".join(WORDS[row : row + 6]), "stars": row % 2} for row in range(10)]
    for shard in range(2):
        write_shard(tmp_path / "reviews" / f"part-{shard}.jsonl", rows[5 * shard : 5 * shard + 5])
    return tmp_path / "reviews"
