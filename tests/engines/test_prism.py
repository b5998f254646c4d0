"""Prism, the runner that ``beam.Pipeline()`` tries first: what ``make engines`` checks of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that, equal_to

import corpusveil as cv
from corpusveil.errors import GO_ON, CapError, user_error_in
from corpusveil.transforms.beam import PrivatizeDocuments
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
        bench.all_is_well(tmp_path)

    def test_nothing_but_the_command_s_own_words(self, bench: Bench, tmp_path: Path) -> None:
        """Prism's log would be a page; a line of it may hold what a worker said."""
        bench.complete(tmp_path, self.engine)
        assert "Prism" not in (tmp_path / "said.log").read_text()


SCRIPT = """
import sys
from corpusveil.errors import BadRowError, CorpusveilError
from corpusveil.jobs.beam import Beam

def wrong(task):
    raise BadRowError("shard 3, row 5: the text is a number; correct it.")

def other(task):
    raise ValueError("canaryinanerror")

if __name__ == "__main__":
    import job
    try:
        Beam("PrismRunner", 1, (f"--prism_location={sys.argv[2]}",)).run(getattr(job, sys.argv[1]), [1, 2])
    except CorpusveilError as error:
        print(error)
        sys.exit(error.exit_status)
"""


@pytest.mark.parametrize(
    ("what", "status", "sentence"),
    [
        ("wrong", 2, "shard 3, row 5: the text is a number; correct it."),
        ("other", 1, f"The Beam pipeline failed: RuntimeError. {GO_ON}"),
    ],
)
def test_what_a_worker_raises_is_one_sentence(what: str, status: int, sentence: str, tmp_path: Path) -> None:
    """Prism itself raises a RuntimeError, whose text is a traceback; what a document may be in is not shown."""
    (tmp_path / "job.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "job.py", what, str(installed("prism"))], cwd=tmp_path, capture_output=True, text=True,
        timeout=HANG_SECONDS, check=False, env=environment(tmp_path, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}"),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (status, f"{sentence}\n")
    assert done.stderr == ""


@pytest.fixture
def prism() -> beam.Pipeline:
    """A pipeline of a user's own program."""
    return beam.Pipeline("PrismRunner", options=PipelineOptions([f"--prism_location={installed('prism')}"]))


class TestAPipelineOfOnesOwn:
    DOCUMENTS = tuple({"id": str(number), "text": f"bababa dekiba {number}", "who": "x"} for number in range(40))

    def test_the_same_texts(self, ground: Ground, prism: beam.Pipeline) -> None:
        release = make_release(ground.space)
        ids, texts = ([row[name] for row in self.DOCUMENTS] for name in ("id", "text"))
        expected = dict(zip(ids, cv.privatize(texts, release, ids=ids), strict=True))
        with prism as pipeline:
            private = pipeline | beam.Create(self.DOCUMENTS) | PrivatizeDocuments(release, id="id")
            assert_that(private | beam.Map(lambda row: (row["id"], row["text"])), equal_to(list(expected.items())))
        assert set(expected.values()) != set(texts)

    def test_a_cap(self, ground: Ground, prism: beam.Pipeline, tmp_path: Path) -> None:
        """A refusal ends the pipeline, and nothing is drawn or entered."""
        release, ledger = make_release(ground.space), cv.Ledger(str(tmp_path / "ledger"), cap=4)
        _ = (
            prism
            | beam.Create(self.DOCUMENTS)
            | PrivatizeDocuments(release, id="id", ledger=ledger, unit="who")
            | beam.Map(lambda row: (tmp_path / row["id"]).touch())
        )
        with pytest.raises(RuntimeError) as caught:
            prism.run().wait_until_finish()
        error = user_error_in(str(caught.value).replace(" [while running", "\n"))
        assert isinstance(error, CapError)
        assert not [path for path in tmp_path.iterdir() if path.name != "ledger"]
        assert list(ledger.spent().releases) == []
