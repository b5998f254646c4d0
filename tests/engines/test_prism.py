"""Prism, the runner that ``beam.Pipeline()`` tries first: what ``make engines`` checks of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import pytest

from corpusveil.errors import GO_ON
from tests.contracts.engine import EngineContract, equal_stream, installed
from tests.engines.corpora import HANG_SECONDS, ROOT, Ground, environment, make_release
from tests.engines.processes import tree, worker_pool
from tests.faults.harm import Bench

pytestmark = [pytest.mark.engines, pytest.mark.slow]


class TestPrism(EngineContract):
    engine = "prism"

    @pytest.fixture(scope="class")
    @classmethod
    def version(cls) -> str:
        return version_of("apache-beam")

    @pytest.fixture(scope="class")
    @classmethod
    def options(cls) -> tuple[object, ...]:
        return ("--engine", "beam", "--runner", "PrismRunner", "--", f"--prism_location={installed('prism')}")

    @pytest.fixture(scope="class")
    @classmethod
    def with_workers(
        cls, plan: Path, options: tuple[object, ...], tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[tuple[object, ...]]:
        with worker_pool(tmp_path_factory.mktemp("pool")) as where:
            yield (*options, *where)

    def test_a_stream(self, ground: Ground, tmp_path: Path, keeps: Any) -> None:
        equal_stream(make_release(ground.space), tmp_path, "PrismRunner", f"--prism_location={installed('prism')}")
        keeps("stream", "equal")

    def test_a_killed_prism(self, bench: Bench, tmp_path: Path) -> None:
        """The runner itself, whose worker is a thread of the command: one sentence, and the same command completes."""
        with bench.held(tmp_path, self.engine, "writing") as (job, worker):
            assert worker in {member.pid for member in tree(job.pid)}
            (prism,) = [member for member in tree(job.pid) if member.name() == "prism"]
            prism.kill()
        assert bench.goes_on(job, tmp_path, self.engine) == "again"
        assert "Prism" not in (tmp_path / "said.log").read_text(), "its log may hold what a worker said"
        bench.all_is_well(tmp_path)


SCRIPT = """
import sys
from corpusveil.errors import CorpusveilError
from corpusveil.jobs.beam import Beam

def wrong(task):
    raise ValueError("canaryinanerror")

if __name__ == "__main__":
    import job
    try:
        Beam("PrismRunner", 1, (f"--prism_location={sys.argv[1]}",)).run(job.wrong, [1, 2])
    except CorpusveilError as error:
        print(error)
        sys.exit(error.exit_status)
"""


def test_what_a_worker_raises_is_one_sentence(tmp_path: Path) -> None:
    """Prism itself raises a RuntimeError, whose text is a traceback; what a document may be in is not shown."""
    (tmp_path / "job.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "job.py", str(installed("prism"))], cwd=tmp_path, capture_output=True, text=True,
        timeout=HANG_SECONDS, check=False, env=environment(tmp_path, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}"),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, f"The Beam pipeline failed: RuntimeError. {GO_ON}\n")
    assert done.stderr == ""
