"""The steps of the flow, run once on one corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.collocations.corpora import STEPS, make, step, write


@pytest.fixture(scope="session")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpus, ``in``, and what each step made of it, by the step's name."""
    folder = tmp_path_factory.mktemp("flow")
    write(folder / "in", make(300, 3), 2)
    for name in STEPS:
        assert step(name, folder, folder / name).status == 0
    return folder
