"""A space, a corpus and its release, made once for all tests of the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpusveil.spaces import Space
from evaluate.tests.releases import DOCUMENTS, privatize, texts
from tests.conftest import ground, machine, no_other_session_left, pytest_collection_modifyitems, space
from tests.engines.corpora import write_shard

# as in the package's own tests
__all__ = ["ground", "machine", "no_other_session_left", "pytest_collection_modifyitems", "space"]


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("in")
    for shard in range(2):
        write_shard(folder / f"c4-{shard}.json.gz", texts(DOCUMENTS // 2, shard))
    return folder


@pytest.fixture(scope="session")
def private(source: Path, space: Space, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return privatize(source, space, tmp_path_factory.mktemp("private") / "out", 1.0, "--keep", "url")
