"""Before a run begins: workers agree with the driver on versions, and a Beam runner that cannot be called is named."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from corpusveil.jobs.beam import Beam
from corpusveil.jobs.spark import Spark
from corpusveil.transforms import handshake
from corpusveil.transforms.handshake import SameVersions, versions
from tests.calls import command, refused
from tests.engines.corpora import Ground


def touch(path: str) -> None:
    """Do a task: leave a file."""
    Path(path).touch()


@pytest.fixture(params=[pytest.param(Spark(), marks=pytest.mark.spark), Beam()], ids=["spark", "beam"])
def engine(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.xdist_group("spark")
def test_other_versions_are_named(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which package, which version there and here; no task is begun."""
    driver = {**versions(), "pyarrow": "0.1.2", "corpusveil": "9.9"}
    monkeypatch.setattr(SameVersions, "for_function", classmethod(lambda cls, function: cls(function, driver)))
    with refused("work-failed", "0.1.2", "for 9.9", "same environment"):
        engine.run(touch, [str(tmp_path / "a"), str(tmp_path / "b")])
    assert not list(tmp_path.iterdir())


def test_what_is_compared() -> None:
    """Python by its minor version, and each package that output bytes may depend on; one that is missing differs."""
    found: Mapping[str, str] = versions()
    assert set(found) == {"python", *handshake.PACKAGES}
    assert found["python"].count(".") == 1
    assert found["corpusveil"] == f"{metadata.version('corpusveil')} (code {handshake.code()})"
    with refused("work-failed", "gensim"):
        SameVersions(print, {**found, "gensim": "none"})(1)


def test_a_wrong_call_is_one_sentence(ground: Ground, tmp_path: Path) -> None:
    """It names what is wrong, before anything is written."""
    for more, said in (
        (("--runner", "NoSuchRunner"), "runner = NoSuchRunner: Beam has no such runner; choose one of "),
        (("--runner", "no.such.Runner"), "runner = no.such.Runner: this class could not be found"),
        (("--", "--no_such_option=3"), "--no_such_option: this is not an option of Beam or of FnApiRunner"),
        (("--", "stray"), "stray: this is not an option of Beam"),
        (("--", "--direct_num_workers=many"), "argument --direct_num_workers: invalid int value: 'many'"),
        (("--runner", "PortableRunner"), "--job_endpoint=HOST:PORT"),
        (("--runner", "PortableRunner", "--", "--job_endpoint=127.0.0.1:1"), "no job server answers at"),
        (("--runner", "PortableRunner", "--", "--job_endpoint=nonsense"), "no job server answers at"),
        (("--", "--no_wait_until_finish"), "--no_wait_until_finish: a job runs on"),
        (("--runner", "DataflowRunner"), "Missing required option: project"),
    ):
        done = command(*ground.arguments(ground.corpus, tmp_path / "out", "--engine", "beam", *more))
        last = done.err.strip().splitlines()[-1]
        assert (done.status, last.startswith("corpusveil: "), said in last) == (2, True, True), (more, last)
        assert not list(tmp_path.glob("out*"))
