"""What one process of the engine suite makes once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.corpora import TEST_KEY, Ground, make_ground


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return make_ground(tmp_path_factory.mktemp("ground"))


@pytest.fixture(scope="session")
def key_file(ground: Ground) -> Path:
    assert ground.key.read_bytes() == TEST_KEY
    return ground.key
