"""The contract of an engine that is not on every machine: five promises, each tested the same way on a real one.

An engine's test class inherits ``EngineContract``, names its row in ``tests/engines/table.py``, and says by ``options``
how a command uses it. What a test saw becomes a cell of docs/engines.md.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.periodicsequence import PeriodicImpulse
from apache_beam.transforms.window import FixedWindows

import corpusveil as cv
from corpusveil.transforms.beam import PrivatizeDocuments
from tests.cells import note
from tests.engines.corpora import CANARIES, ROOT, Ground, data_files, make_ground, make_release, rows, write_corpus
from tests.engines.processes import Cluster, answers, end_session, finished, free_port, start, wait_until
from tests.engines.table import ENGINES, PROMISES, Cell
from tests.faults.harm import OPTIONS, Bench, held_environment, spent

TOOLS = ROOT / ".tools"
WITH_WORKERS = "with workers"


def installed(name: str) -> Path:
    """Return a program or file that ``make engines`` installs; skip the test where it is not."""
    path = TOOLS / name
    if not path.exists():
        pytest.skip(f".tools/{name} is not there: make engines installs it")
    return path


def equal_stream(release: cv.Release, folder: Path, runner: str, *options: object) -> None:
    """Privatize an unbounded collection, a window a file, and check that its texts are those of a list."""

    def document(moment: float) -> dict[str, str]:
        return {"id": f"{moment:.0f}", "text": f"bababa dekiba {moment:.0f}"}

    def write(keyed: Any, window: Any = beam.DoFn.WindowParam) -> None:
        (folder / str(window.start.seconds())).write_text(json.dumps(list(keyed[1])))

    with beam.Pipeline(runner, options=PipelineOptions(list(map(str, options)), streaming=True)) as pipeline:
        _ = (
            pipeline
            | PeriodicImpulse(1000, 1020, 1.0)
            | "Document" >> beam.Map(document)
            | PrivatizeDocuments(release, id="id", keep="id")
            | beam.WindowInto(FixedWindows(10))
            | "Line" >> beam.Map(lambda row: (0, row))
            | beam.GroupByKey()
            | "Write" >> beam.Map(write)
        )
    written = {path.name: json.loads(path.read_text()) for path in folder.iterdir()}
    assert {name: len(rows) for name, rows in written.items()} == {"1000": 10, "1010": 10}
    every = [row for rows in written.values() for row in rows]
    ids = [row["id"] for row in every]
    texts = [document(float(name))["text"] for name in ids]
    assert [row["text"] for row in every] == cv.privatize(texts, release, ids=ids) != texts


def no_cluster() -> Cluster:
    raise AssertionError


class EngineContract:
    """What a release is on every engine."""

    engine: ClassVar[str]
    """The row of the table."""

    @pytest.fixture(scope="class")
    @classmethod
    def version(cls) -> str:
        """The version of the engine, as the table shows it."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def options(cls) -> tuple[object, ...]:
        """What the command line ends with; whatever it needs is running then."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def with_workers(cls, options: tuple[object, ...]) -> Any:
        """The same with workers that are processes of their own."""
        return options

    def harm(self, worker: int) -> None:
        """Kill the process that is about to write a shard."""
        os.kill(worker, signal.SIGKILL)

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def plan(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
        """Where the tests write at which moment a process is held: in the environment of whatever is started."""
        plan = tmp_path_factory.mktemp("plan") / "hold.json"
        with pytest.MonkeyPatch.context() as patch:
            for name, value in held_environment(plan).items():
                patch.setenv(name, value)
            yield plan

    @pytest.fixture(scope="class")
    @classmethod
    def bench(
        cls,
        plan: Path,
        options: tuple[object, ...],
        with_workers: tuple[object, ...],
        tmp_path_factory: pytest.TempPathFactory,
    ) -> Bench:
        """The ground of all tests of the class, with the local engine's release to compare with."""
        folder = tmp_path_factory.mktemp("bench")
        engines = {**OPTIONS, cls.engine: options, WITH_WORKERS: with_workers}
        made = Bench(make_ground(folder), plan, no_cluster, options=engines)
        made.undisturbed("local", folder)
        return made

    @pytest.fixture
    def keeps(self, version: str) -> Any:
        """Record that the engine keeps a promise."""

        def record(promise: str, outcome: str) -> None:
            assert promise in PROMISES
            assert self.engine in ENGINES
            note(Cell(self.engine, version, promise, outcome))

        return record

    def refused(self, bench: Bench, folder: Path, *more: object) -> tuple[str, str]:
        """Run a command that has to be refused; return its one sentence, and all that it said."""
        status = finished(bench.start(folder, self.engine, *more))
        said = (folder / "said.log").read_text()
        assert status == 2, said
        assert "Traceback" not in said
        (sentence,) = [line for line in said.splitlines() if line.startswith("corpusveil: ")]
        return sentence, said

    def test_the_same_bytes(self, bench: Bench, tmp_path: Path, keeps: Any) -> None:
        """Every file of the release, and what the ledger counts."""
        bench.complete(tmp_path, self.engine)
        bench.all_is_well(tmp_path)
        keeps("equal bytes", "equal")

    def test_other_bytes_are_noticed(self, bench: Bench, tmp_path: Path) -> None:
        """The control of the comparison: another epsilon."""
        bench.complete(tmp_path, "local", "--epsilon", 2)
        with pytest.raises(AssertionError):
            bench.all_is_well(tmp_path)

    def test_a_killed_worker(self, bench: Bench, tmp_path: Path, keeps: Any) -> None:
        """The engine may try again, or give up in a sentence; then the same command completes the release."""
        with bench.held(tmp_path, WITH_WORKERS, "writing") as (job, worker):
            self.harm(worker)
        outcome = bench.goes_on(job, tmp_path, WITH_WORKERS)
        bench.all_is_well(tmp_path)
        keeps("killed worker", outcome)

    def test_a_cap(self, bench: Bench, tmp_path: Path, keeps: Any) -> None:
        """The largest document has hundreds of words, each of which spends 1."""
        sentence, _ = self.refused(bench, tmp_path, "--cap", 5)
        assert sentence.endswith("[cap-exceeded]")
        assert data_files(tmp_path / "out") == []
        assert spent(tmp_path)[0] == []
        keeps("cap", "refused")

    def test_an_error_is_one_sentence(self, bench: Bench, tmp_path: Path, keeps: Any) -> None:
        """A row whose text is a number, between rows that nobody may see."""
        private = [{"text": word} for word in CANARIES.values()]
        corpus = write_corpus(tmp_path / "wrong", [rows(5, 1), [*private, {"text": 5}, *private]])
        wrong = replace(bench, ground=replace(bench.ground, corpus=corpus))
        sentence, said = self.refused(wrong, tmp_path)
        assert "c4-train.00001-of-00002.json.gz" in sentence
        assert not [word for word in CANARIES.values() if word in said]
        keeps("error sentence", "one, status 2")


LOOPBACK = "--environment_type=LOOPBACK"


class BeamContract(EngineContract):
    """What it is on a runner of Beam, whose workers are threads of the command, or processes of a pool."""

    runner: ClassVar[str]

    @pytest.fixture(scope="class")
    @classmethod
    def with_workers(
        cls, plan: Path, options: tuple[object, ...], tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[tuple[object, ...]]:
        """A pool starts workers as processes of their own."""
        folder, port = tmp_path_factory.mktemp("pool"), free_port()
        command = [sys.executable, "-m", "apache_beam.runners.worker.worker_pool_main", f"--service_port={port}"]
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # it starts a "python"
        pool = start(command, folder, folder / "log", PATH=path)
        where = ("--environment_type=EXTERNAL", f"--environment_config=127.0.0.1:{port}")
        try:
            wait_until(lambda: answers(port), every=0.1)
            yield (*(option for option in options if option != LOOPBACK), *where)
        finally:
            end_session(pool)

    def test_a_stream(self, ground: Ground, options: tuple[object, ...], tmp_path: Path, keeps: Any) -> None:
        """A document becomes the same text in an unbounded collection as in a list."""
        equal_stream(make_release(ground.space), tmp_path, self.runner, *options[options.index("--") + 1 :])
        keeps("stream", "equal")
