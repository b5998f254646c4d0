"""Every harm at every moment on every engine: the same release in the end, and a ledger that is right."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest
from moto.server import ThreadedMotoServer

from tests.cells import note as record
from tests.engines.corpora import COMMAND, WORDS, Ground, make_ground, rows, write_corpus
from tests.engines.processes import Cluster, end_session, finished, kill_tree, start, wait_until
from tests.faults.harm import COUNTED, OPTIONS, WHERE, Bench, held_environment
from tests.faults.matrix import ENGINES, Cell
from tests.objects.proxy import proxied
from tests.objects.store import Store
from tests.passages.stores import small_store

HERE, THERE = "10.203.0.1", "10.203.0.2"
SPACE, LINK = "corpusveil-cut", "cv-cut0"


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=not check)


class _Parted(Cluster):
    def place(self, number: int) -> tuple[list[str], str]:
        return (["ip", "netns", "exec", SPACE], THERE) if number else ([], self.host)


@contextlib.contextmanager
def parted(folder: Path) -> Iterator[tuple[Cluster, str, Callable[[], None]]]:
    """Yield a cluster, the network namespace of its second worker, and what cuts that off. It takes root."""
    folder.mkdir()
    _ip("netns", "del", SPACE, check=False)
    _ip("link", "del", LINK, check=False)
    _ip("netns", "add", SPACE)
    try:
        _ip("link", "add", LINK, "type", "veth", "peer", "name", "cv-cut1")
        _ip("link", "set", "cv-cut1", "netns", SPACE)
        _ip("addr", "add", f"{HERE}/24", "dev", LINK)
        _ip("link", "set", LINK, "up")
        _ip("-n", SPACE, "addr", "add", f"{THERE}/24", "dev", "cv-cut1")
        for name in ("cv-cut1", "lo"):
            _ip("-n", SPACE, "link", "set", name, "up")
        machines = _Parted(folder, HERE)
        try:
            machines.start()
            yield machines, f"net:[{os.stat(f'/run/netns/{SPACE}').st_ino}]", lambda: _ip("link", "set", LINK, "down")
        finally:
            machines.stop()
    finally:
        _ip("netns", "del", SPACE, check=False)
        _ip("link", "del", LINK, check=False)


pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.spark]
IN_WORKERS = ("looking", "piece", "writing", "recording", "joining")


@pytest.fixture(scope="session")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Cluster]]:
    """A cluster that is started when first asked for."""
    made: list[Cluster] = []
    yield made
    for one in made:
        one.stop()


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory, machines: list[Cluster]) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("bench")
    plan = folder / "hold.json"

    def get() -> Cluster:
        if machines and any(worker.poll() is not None for worker in machines[0].workers):
            machines.pop().stop()
        if not machines:
            place = tmp_path_factory.mktemp("cluster")
            machines.append(Cluster(place))
            machines[0].start()
        return machines[0]

    with pytest.MonkeyPatch.context() as patch:
        for name, value in held_environment(plan).items():
            patch.setenv(name, value)
        yield Bench(make_ground(folder), plan, get)


@dataclass(frozen=True)
class ByPassages(Ground):
    """The same ground, whose texts are replaced by passages."""

    def arguments(self, source: Path | str, output: Path | str, *more: object) -> list[str]:
        words = ["privatize", source, "--store", small_store().url, "--epsilon", 6, "--key", self.key]
        return [str(word) for word in (*words, "--output", output, "--progress", "none", *more)]


def note(bench: Bench, engine: str, fault: str, moment: str, outcome: str, began: float) -> None:
    record(Cell(engine, fault, moment, outcome, time.monotonic() - began - bench.seconds[engine]))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("moment", WHERE)
def test_the_run_is_killed(bench: Bench, tmp_path: Path, engine: str, moment: str) -> None:
    """Driver and, but on a cluster, all its workers: SIGKILL, as when a machine loses its power."""
    bench.undisturbed(engine, tmp_path)
    began = time.monotonic()
    killed_and_completed(bench, tmp_path, engine, moment)
    note(bench, engine, "kill -9 of the run", moment, "again", began)


def killed_and_completed(bench: Bench, folder: Path, engine: str, moment: str) -> None:
    with bench.held(folder, engine, moment) as (job, _):
        kill_tree(job)
        end_session(job)
        bench.nothing_is_half_written(folder)
    bench.complete(folder, engine)
    bench.all_is_well(folder)


@pytest.mark.parametrize("engine", ["local", "spark", "beam"])
def test_a_run_by_passages_is_killed_at_each_moment(bench: Bench, tmp_path: Path, engine: str) -> None:
    """Its bytes and what it spent are those of a run that nothing disturbed, as they are by words."""
    passages = Bench(ByPassages(**vars(bench.ground)), bench.plan, bench.cluster)
    passages.undisturbed(engine, tmp_path)
    for moment in WHERE:
        folder = tmp_path / moment
        folder.mkdir()
        killed_and_completed(passages, folder, engine, moment)


def kill_executor(worker: int, machines: list[Cluster]) -> None:
    above = psutil.Process(worker).parents()
    executor = next(one for one in above if "CoarseGrainedExecutorBackend" in " ".join(one.cmdline()))
    for process in [*executor.children(recursive=True), executor]:
        process.kill()


def lose_machine(worker: int, machines: list[Cluster]) -> None:
    """Kill a worker of the cluster with its executor and everything below."""
    above = {parent.pid for parent in psutil.Process(worker).parents()}
    kill_tree(next(process for process in machines[0].workers if process.pid in above))


HARMS: dict[str, Callable[[int, list[Cluster]], None]] = {
    "kill -9 of the worker": lambda worker, _: os.kill(worker, signal.SIGKILL),
    "kill -9 of the executor": kill_executor,
    "loss of a machine": lose_machine,
}


@pytest.mark.parametrize(
    ("harm", "engine"),
    [("kill -9 of the worker", name) for name in ENGINES if name != "beam"]
    + [("kill -9 of the executor", "cluster"), ("loss of a machine", "cluster")],
)
@pytest.mark.parametrize("moment", IN_WORKERS)
def test_a_worker_is_killed(
    bench: Bench, tmp_path: Path, machines: list[Cluster], harm: str, engine: str, moment: str
) -> None:
    """The process that works on the shard, and what it is below; its engine may try again, or give up in a sentence."""
    bench.undisturbed(engine, tmp_path)
    began = time.monotonic()
    with bench.held(tmp_path, engine, moment) as (job, worker):
        HARMS[harm](worker, machines)
    outcome = bench.goes_on(job, tmp_path, engine)
    bench.all_is_well(tmp_path)
    note(bench, engine, harm, moment, outcome, began)


def gave_up(job: subprocess.Popen[bytes], log: Path) -> None:
    """Check that a run ended in a sentence."""
    status = finished(job)
    said = log.read_text()
    assert status == 1, said
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("corpusveil: ")


def started_twice(bench: Bench, folder: Path, engine: str, moment: str) -> float:
    """Start the same command again while a run is held at a moment; return when the first was begun."""
    began = time.monotonic()
    with bench.held(folder, engine, moment) as (job, _):
        arguments = bench.arguments(folder, engine)
        again = folder / "again.log"
        if engine == "cluster":
            second = bench.cluster().submit(arguments, again, *bench.settings)
        else:
            second = start([*COMMAND, *arguments], folder, again)
        status = finished(second)
        told = [line for line in again.read_text().splitlines() if line.startswith("corpusveil: ")]
        assert status == 1, again.read_text()[-2000:]
        assert [line.startswith("corpusveil: Another run is in progress (") for line in told] == [True], told
    assert bench.goes_on(job, folder, engine) == "went on"
    bench.complete(folder, engine)
    return began


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("moment", ["begin", "writing"])
def test_the_run_is_started_twice(bench: Bench, tmp_path: Path, engine: str, moment: str) -> None:
    """Like a pod that is retried during the first: the second says so and changes nothing, the first continues."""
    bench.undisturbed(engine, tmp_path)
    began = started_twice(bench, tmp_path, engine, moment)
    bench.all_is_well(tmp_path)
    note(bench, engine, "started twice", moment, "went on", began)


@pytest.mark.parametrize("engine", ["local", "spark", "beam"])
def test_the_disk_is_full(bench: Bench, tmp_path: Path, engine: str) -> None:
    """A real one, that is given more room afterwards."""
    bench.undisturbed(engine, tmp_path)
    disk = tmp_path / "disk"
    disk.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)]
    assert subprocess.run(options, check=False).returncode == 0, "a small disk has to be mounted, which takes root"
    began = time.monotonic()
    try:
        gave_up(bench.start(disk, engine), disk / "said.log")
        bench.nothing_is_half_written(disk)
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        bench.complete(disk, engine)
        bench.all_is_well(disk)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
    note(bench, engine, "disk full", "in the middle", "again", began)


LIMIT, LIMIT_OF_BEAM = 1800 << 20, 3600 << 20
"""Of address space. Beam's libraries alone take more than the others' work."""


@pytest.mark.parametrize("engine", ["local", "spark", "beam"])
def test_a_document_is_larger_than_memory(bench: Bench, tmp_path: Path, engine: str) -> None:
    """A worker that may not take as much: a sentence, then, with room, the release."""
    giant = [{"text": " ".join(random.Random(0).choices(WORDS, k=24_000_000))}]
    corpus = write_corpus(tmp_path / "giant", [rows(50, 1), giant, rows(50, 2)])
    large = Bench(replace(bench.ground, corpus=corpus), bench.plan, bench.cluster)
    large.undisturbed(engine, tmp_path)
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "spark-defaults.conf").write_text(f"spark.executor.pyspark.memory {LIMIT >> 20}m\n")
    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        if engine == "spark":
            patch.setenv("SPARK_CONF_DIR", str(settings))
        job = large.start(tmp_path, engine)
        if engine != "spark":
            most = LIMIT_OF_BEAM if engine.startswith("beam") else LIMIT
            resource.prlimit(job.pid, resource.RLIMIT_AS, (most, most))
        gave_up(job, tmp_path / "said.log")
    large.nothing_is_half_written(tmp_path)
    large.complete(tmp_path, engine)
    large.all_is_well(tmp_path)
    note(large, engine, "a document that memory does not hold", "in the middle", "again", began)


def test_a_machine_is_cut_off(bench: Bench, tmp_path: Path) -> None:
    """A worker in a separate network, whose link goes down: it continues to write; another repeats its tasks."""
    with parted(tmp_path / "parted") as (machines, namespace, cut):
        alone = Bench(bench.ground, bench.plan, lambda: machines)
        alone.settings = (
            "--conf", "spark.network.timeout=20s", "--conf", "spark.executor.heartbeatInterval=4s",
            "--conf", "spark.rpc.askTimeout=20s", "--conf", "spark.network.timeoutInterval=10s",
        )  # fmt: skip
        alone.undisturbed("cluster", tmp_path)
        alone.network = namespace
        began = time.monotonic()
        with alone.held(tmp_path, "cluster", r"/out/data/part-|/pieces/part-") as (job, _):
            cut()
        outcome = alone.goes_on(job, tmp_path, "cluster")
        alone.all_is_well(tmp_path)
        note(alone, "cluster", "network of a machine down", "in the middle", outcome, began)


DOWN_SECONDS = 60


@pytest.mark.parametrize("engine", ["local", "spark", "beam"])
def test_the_store_is_down_for_a_minute(bench: Bench, tmp_path: Path, engine: str) -> None:
    """Input on a disk; release, records and ledger at a store that answers 503 from the first shard on."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    store = Store(f"http://{host}:{port}")
    with proxied(f"{host}:{port}") as proxy, pytest.MonkeyPatch.context() as patch:
        store.use(proxy.url, patch, attempts=5)
        seconds = []
        for down in (False, True):
            bucket = store.bucket()
            folder = tmp_path / f"down-{down}"
            folder.mkdir()
            ledger = ("--ledger", f"s3://{bucket}/ledger", *COUNTED)
            output = f"s3://{bucket}/out"
            arguments = bench.ground.arguments(bench.ground.corpus, output, *OPTIONS[engine], *ledger)
            began, outcome = time.monotonic(), "went on"
            job = start([*COMMAND, *arguments], folder, folder / "said.log")
            if down:
                wait_until(lambda: proxy.seen("PUT", "out/data/part-") > 0)
                rule = proxy.rule("GET PUT POST HEAD DELETE", ".", "refuse", status=503, code="ServiceUnavailable")
                threading.Timer(DOWN_SECONDS, proxy.clear).start()
            if finished(job):
                said = (folder / "said.log").read_text()
                assert down, said
                assert "Traceback" not in said
                assert said.splitlines()[-1].startswith("corpusveil: ")
                wait_until(lambda: not proxy.rules, seconds=2 * DOWN_SECONDS, every=0.5)
                outcome = "again"
                assert finished(start([*COMMAND, *arguments], folder, folder / "said.log")) == 0
            assert not down or rule.hits, "the run was over before the store was down"
            seconds.append(time.monotonic() - began)
            for part in ("out", "out.records", "ledger"):
                store.client.get(f"{bucket}/{part}", str(folder / part), recursive=True)
            store.client.get(f"{bucket}/out.report.html", str(folder / "out.report.html"))
            proxy.clear()
        bench.undisturbed("local", tmp_path)
        bench.all_is_well(folder)
    server.stop()
    record(Cell(engine, f"store down for {DOWN_SECONDS} s", "in the middle", outcome, seconds[1] - seconds[0]))
