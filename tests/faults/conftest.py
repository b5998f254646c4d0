"""What one process of the fault suite makes once: a corpus that takes a while, and what becomes of it undisturbed."""

from __future__ import annotations

import pytest

from corpusveil.jobs.local import Local
from corpusveil.transforms.release.corpus import privatize_corpus
from tests.engines.corpora import Ground, make_release, make_space, release_files, write_large_corpus
from tests.faults.crashes import KEY, Undisturbed


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    space = make_space(folder / "space")
    key = folder / "release.key"
    key.touch(mode=0o600)
    key.write_bytes(KEY)
    large = write_large_corpus(folder / "large", shards=8, copies=4)
    ground = Ground(folder, space, key, large)
    output = folder / "output"
    outcome = privatize_corpus(make_release(space, key=KEY), [str(large)], str(output), Local())
    return Undisturbed(ground, outcome.content_sha256, release_files(output))
