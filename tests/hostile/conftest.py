"""What one process of the hostile suite makes once."""

from __future__ import annotations

import pytest

from tests.engines.corpora import Ground, make_ground


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return make_ground(tmp_path_factory.mktemp("ground"))
