"""Engines by name: another package adds one by a file and an entry point, and it writes the bytes of ours."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpusveil.jobs.spark import Spark
from tests.calls import refused, succeeds
from tests.engines.corpora import make_ground, release_files, rows, run

THREADS = '''
"""An engine of a package of its own: tasks in the threads of this process."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Threads:
    workers: int = 3

    def slots(self) -> int:
        return self.workers

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
        with ThreadPoolExecutor(self.workers) as pool:
            list(pool.map(function, tasks))
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package, as pip leaves one: a module, and metadata with an entry point."""
    folder = tmp_path / "site"
    metadata = folder / "threads_engine-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / "threads_engine.py").write_text(THREADS)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: threads-engine\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[corpusveil.engines]\nthreads = threads_engine:Threads\n")
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("threads_engine", None)


def test_another_packages_engine_writes_the_same_bytes(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Privatize and count, on the command line, by the name that the package gave it."""
    monkeypatch.setenv("PYTHONPATH", str(installed))
    ground = make_ground(tmp_path, rows(300, 0))
    digests = {}
    for engine in ("local", "threads"):
        release, counts = tmp_path / f"release-{engine}", tmp_path / f"counts-{engine}"
        workers = () if engine == "local" else ("--workers", "2")
        succeeds(*ground.arguments(ground.corpus, release, "--engine", engine, *workers))
        succeeds("count", ground.corpus, "--output", counts, "--engine", engine, *workers)
        ngrams = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in (counts / "ngrams").iterdir()}
        digests[engine] = release_files(release), ngrams
    assert digests["threads"] == digests["local"]
    assert all(digests["local"])
    assert "threads" in run("count", "--help", home=tmp_path).stdout


def test_what_spark_connect_cannot_do_is_refused() -> None:
    with refused("wrong-setting", "Spark Connect", "privatize_frame"):
        Spark("sc://host").slots()
