"""Ray: what ``make engines`` checks of the engine and of datasets, and that keys are nowhere where Ray keeps things."""

from __future__ import annotations

import base64
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.errors import EngineError, StoreError, WorkError
from corpusveil.jobs.ray import Ray
from corpusveil.transforms import ray as module
from tests.calls import refused
from tests.contracts.engine import EngineContract
from tests.engines.corpora import (
    CANARIES,
    UNKNOWN,
    Ground,
    make_release,
    of_units,
    release_files,
    run,
    write_large_corpus,
)
from tests.engines.processes import answers, end_session, free_port, start, start_command, tree, wait_until
from tests.faults.crashes import done

ray = pytest.importorskip("ray", reason="Ray is not installed: make engines installs it")
pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.xdist_group("ray")]

FEW = 80 << 20
"""Bytes of Ray's memory for objects: about the least that it takes."""


class TestRay(EngineContract):
    engine = "ray"

    @pytest.fixture(scope="class")
    @classmethod
    def version(cls) -> str:
        return version_of("ray")

    @pytest.fixture(scope="class")
    @classmethod
    def options(cls) -> tuple[object, ...]:
        return ("--engine", "ray", "--workers", 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Ray keeps sessions: logs, sockets, and objects for which there is no memory. A short path, for sockets."""
    return Path(os.path.realpath(tmp_path_factory.getbasetemp())) / "r"


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[Path]:
    """A Ray of this process, with little memory, that writes its log of datasets; its folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_enable_export_api_write", "1")
        patch.setenv("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
        ray.init(
            "local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=FEW,
            _temp_dir=str(folder),
        )  # fmt: skip
        yield folder
        ray.shutdown()


@dataclass(frozen=True)
class Work:
    """A function over tasks that does as a task says; ``secret`` stands for a key."""

    secret: bytes = b""
    ballast: bytes = field(default=b"", repr=False)

    def __call__(self, task: str) -> dict[str, int]:
        if task == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if task == "full":
            message = "disk: could not be written."
            raise StoreError(message)
        if task == "break":
            raise ValueError(UNKNOWN)
        return {"documents": 1}


def test_errors_arrive_as_one_sentence(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreError, match=r"^disk: could not be written\.$"):
        Ray().run(Work(), ["go", "full"])
    with pytest.raises(EngineError, match="ValueError") as broken:
        Ray().run(Work(), ["break"])
    assert UNKNOWN not in str(broken.value)
    with pytest.raises(EngineError, match="killed"):
        Ray().run(Work(), ["die"])

    def import_failed(_: str) -> None:
        raise ModuleNotFoundError("No module named 'corpusveil.jobs'; 'zzcanary'")

    with pytest.raises(EngineError, match="do not have corpusveil") as failed:
        Ray().run(import_failed, ["go"])
    assert "canary" not in str(failed.value)
    monkeypatch.setattr("corpusveil.transforms.handshake.versions", lambda: {"python": "3.11", "numpy": "0.1"})
    with pytest.raises(WorkError, match=r"numpy .* for 0\.1"):
        Ray().run(Work(), ["go"])


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with refused("wrong-value", "workers = 0"):
        Ray(workers=0)
    with refused("conflicting-settings", "workers", "host:1"):
        Ray("host:1", 2)
    monkeypatch.setitem(sys.modules, "ray", None)
    with refused("missing-package", "corpusveil[ray]"):
        Ray().check()


def test_an_address_where_nothing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray would wait ten minutes; a Ray of this process would be used instead of any address."""
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    for where in (f"127.0.0.1:{free_port()}", f"ray://127.0.0.1:{free_port()}"):
        with pytest.raises(EngineError, match=where):
            Ray(where).slots()


def test_a_cluster_at_an_address(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own address, and by Ray's client."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")  # or a client does not send it
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    port, client = free_port(), free_port()
    command = [sys.executable, "-c", "from ray.scripts.scripts import main; main()", "start", "--head", "--block"]
    options = [f"--port={port}", f"--ray-client-server-port={client}", "--num-cpus=2", "--include-dashboard=false",
               f"--temp-dir={tempfile.mkdtemp(prefix='ray-')}", "--node-ip-address=127.0.0.1"]  # fmt: skip
    head = start([*command, *options], tmp_path, tmp_path / "head")
    try:
        wait_until(lambda: (answers(port) and answers(client)) or head.poll() is not None, every=0.2)
        assert head.poll() is None
        outputs = {"local": ("--workers", 1)}
        for where in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{client}"):
            outputs[where.rpartition(":")[2]] = ("--engine", "ray", "--engine-option", f"address={where}")
        for name, engine in outputs.items():
            done = run(*ground.arguments(ground.corpus, tmp_path / name, *engine), home=tmp_path)
            assert done.returncode == 0, done.stderr
        made = [release_files(tmp_path / name) for name in outputs]
        assert made[0] == made[1] == made[2]
    finally:
        end_session(head)


def test_a_signal_ends_the_run_and_every_process(ground: Ground, tmp_path: Path) -> None:
    corpus = write_large_corpus(tmp_path / "large", shards=8, copies=2)
    job = start_command(
        ground.arguments(corpus, tmp_path / "out", "--engine", "ray", "--workers", 2), tmp_path, tmp_path / "said"
    )
    try:
        wait_until(lambda: done(tmp_path / "out") > 0 or job.poll() is not None, every=0.05)
        members = tree(job.pid)
        job.send_signal(signal.SIGTERM)
        assert job.wait(60) == 143
        assert "ended by SIGTERM" in (tmp_path / "said").read_text()
        _, alive = psutil.wait_procs(members, timeout=60)
        assert not alive
    finally:
        end_session(job)


def spilled(folder: Path, kept: list[Any]) -> None:
    """Let Ray write to its folder what it keeps in memory, by keeping more."""
    kept += [ray.put(np.full(FEW // 4, number, np.uint8)) for number in range(12)]
    wait_until(lambda: any(path.is_file() for path in folder.rglob("ray_spilled_objects*/**/*")), every=0.1)


def files_with(folder: Path, secret: bytes) -> list[Path]:
    """Return the files that have a secret, as it is or as somebody would print it."""
    forms = [
        secret,
        secret.hex().encode(),
        base64.b64encode(secret),
        repr(secret).encode(),
        repr(list(secret)).encode(),
    ]
    forms.append(", ".join(map(str, secret[:8])).encode())  # the beginning, as a log of arguments has it
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if any(form in path.read_bytes() for form in forms)]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Whatever this process puts into Ray's store from now on, so that Ray does not forget it."""
    references: list[Any] = []
    put = ray.put

    def keeping(value: Any, **options: Any) -> Any:
        references.append(put(value, **options))
        return references[-1]

    monkeypatch.setattr(ray, "put", keeping)
    return references


def test_no_secret_of_a_function_is_in_rays_files(session: Path, kept: list[Any]) -> None:
    """The control is the same function, put as it is."""
    hidden, shown = os.urandom(32), os.urandom(32)
    ballast = os.urandom(16 << 20)
    assert Ray().run(Work(hidden, ballast), ["go"] * 4) == {"documents": 4}
    kept.append(ray.put(Work(shown, ballast)))
    spilled(session, kept)
    wait_until(lambda: bool(files_with(session, shown)), 60, every=1)
    assert files_with(session, hidden) == []


@pytest.fixture(scope="module")
def table() -> pa.Table:
    texts = ["bade kilo mude", None, "", "nari sode teva", *(f"{word} bade" for word in CANARIES.values())] * 20
    return pa.table(
        {"id": range(len(texts)), "text": pa.array(texts, pa.large_string()), "more": [[1, None]] * len(texts)}
    )


@pytest.fixture(scope="module")
def release(ground: Ground) -> cv.Release:
    return make_release(ground.space)


def rows_of(dataset: Any) -> pa.Table:
    return pa.concat_tables(ray.get(dataset.to_arrow_refs())).sort_by("id")


def test_a_dataset_is_what_a_table_is(session: Path, table: pa.Table, release: cv.Release) -> None:
    dataset = ray.data.from_arrow(table)
    expected = cv.privatize_table(table, release, id="id")
    for blocks in (1, 5):
        private = cv.privatize_dataset(dataset.repartition(blocks), release, id="id")
        assert rows_of(private).equals(expected)
    nested = table.append_column("messages", pa.array([[{"content": "bade kilo"}, {"content": None}]] * len(table)))
    private = cv.privatize_dataset(ray.data.from_arrow(nested), release, "messages[].content", "id")
    assert rows_of(private).equals(cv.privatize_table(nested, release, "messages[].content", "id"))
    other = make_release(release.mechanism.space, epsilon=2.0)
    assert not rows_of(cv.privatize_dataset(dataset, other, id="id")).equals(expected)
    assert cv.privatize_dataset(dataset.filter(lambda row: row["id"] < 0), release, id="id").count() == 0
    apart = [ray.data.from_items([{"id": number, "text": text}]) for number, text in enumerate(["bade kilo", None])]
    private = cv.privatize_dataset(apart[0].union(apart[1]), release, id="id").take_all()
    assert sorted(row["text"] is None for row in private) == [False, True], "a block without any text"
    pseudonymous, of, made = of_units(release.mechanism.space)
    assert rows_of(cv.privatize_dataset(ray.data.from_arrow(of), pseudonymous, id="id", unit="of")).equals(made)
    with refused("missing-setting", "pseudonyms = 'unit'"):
        cv.privatize_dataset(ray.data.from_arrow(of), pseudonymous, id="id")


def test_wrong_calls_with_a_dataset(session: Path, table: pa.Table, release: cv.Release, tmp_path: Path) -> None:
    dataset = ray.data.from_arrow(table)
    with refused("conflicting-settings", "ledger", "cv.privatize_corpus"):
        cv.privatize_dataset(dataset, release, id="id", ledger=cv.Ledger(str(tmp_path / "ledger")))
    with refused("missing-setting", "id="):
        cv.privatize_dataset(dataset, release)
    with refused("wrong-type", "Table"):
        cv.privatize_dataset(table, release, id="id")
    with pytest.raises(ray.exceptions.RayTaskError, match="there is no such column") as wrong:
        cv.privatize_dataset(dataset, release, text="texts", id="id").materialize()
    assert not [canary for canary in CANARIES.values() if canary in str(wrong.value)]


def test_no_key_of_a_release_is_in_rays_files(
    session: Path, kept: list[Any], table: pa.Table, release: cv.Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control is the same call whose function travels as it is."""

    texts = pa.array(["bade aqwertzx"] * len(table), pa.large_string())
    table = table.set_column(1, "text", texts)  # what no other test of this session's Ray has

    def look(key: bytes) -> list[Path]:
        """Privatize a dataset; return the files with what the release draws from, and those of logs with a text."""
        drawn = make_release(release.mechanism.space, key=key)
        cv.privatize_dataset(ray.data.from_arrow(table), drawn, id="id").materialize()
        spilled(session, kept)
        kernel = drawn.kernel().draw_key
        logs = [path for path in files_with(session, b"aqwertzx") if "logs" in path.parts]
        return [path for secret in (key, kernel.aes, kernel.tag) for path in files_with(session, secret)] + logs

    assert look(os.urandom(32)) == []
    from ray import cloudpickle

    monkeypatch.setattr(module, "sealed", lambda value: (cloudpickle.dumps(value), b"no key"))
    monkeypatch.setattr(module, "opened", lambda data, _: cloudpickle.loads(data))
    assert look(os.urandom(32))
