"""What a worker process loads before it begins: nothing that only a driver, or another kind of job, needs."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from corpusveil.collocations.count import count_corpus
from corpusveil.transforms.corpus import privatize_corpus
from tests.collocations.corpora import make, write
from tests.engines.corpora import ROOT, Ground, make_ground, make_release

HEAVY = (
    "gensim",
    "apache_beam",
    "pyspark",
    "torch",
    "sklearn",
    "typer",
    "rich",
    "jinja2",
    "dp_accounting",
    "smart_open",
)
WORKER = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    function, tasks = pickle.load(file)
for task in tasks:
    function(task)
print(*sys.modules)
"""


class Apart:
    """An engine that does each job in a process of its own, and keeps what that had loaded at its end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loaded: list[set[str]] = []

    def slots(self) -> int:
        return 1

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> dict[str, int]:
        job = self.folder / "job"
        job.write_bytes(pickle.dumps((function, list(tasks))))
        command = [sys.executable, "-c", WORKER, str(job)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        self.loaded.append(set(done.stdout.split()))
        return {}


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return make_ground(tmp_path_factory.mktemp("ground"))


def test_of_a_count(tmp_path: Path) -> None:
    """Neither of its two jobs."""
    engine = Apart(tmp_path)
    count_corpus([str(write(tmp_path / "in", make(100, 1), 1))], str(tmp_path / "out"), engine)
    assert [loaded.intersection(HEAVY) for loaded in engine.loaded] == [set(), set()]
    assert all("corpusveil.transforms.job" not in loaded for loaded in engine.loaded)


def test_of_a_release(ground: Ground, tmp_path: Path) -> None:
    engine = Apart(tmp_path)
    privatize_corpus(make_release(ground.space), [str(ground.corpus)], str(tmp_path / "out"), engine)
    assert [loaded.intersection(HEAVY) for loaded in engine.loaded] == [set()]
