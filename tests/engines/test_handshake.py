"""Driver and workers agree on versions before any work, or the run ends with a sentence and nothing written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from corpusveil.errors import WorkError
from corpusveil.jobs.spark import SparkEngine
from corpusveil.pipelines.beam import BeamEngine
from corpusveil.transforms import handshake
from corpusveil.transforms.handshake import SameVersions, versions


def touch(path: str) -> None:
    """Do a task: leave a file."""
    Path(path).touch()


@pytest.fixture(params=[pytest.param(SparkEngine(), marks=pytest.mark.spark), BeamEngine()], ids=["spark", "beam"])
def engine(request: pytest.FixtureRequest) -> Any:
    return request.param


def other_driver(monkeypatch: pytest.MonkeyPatch, **changed: str) -> None:
    """Let this process, as the driver, believe in other versions."""
    real = SameVersions.of.__func__  # type: ignore[attr-defined]

    def of(cls: Any, function: Any) -> SameVersions:
        made = real(cls, function)
        return SameVersions(made.function, {**made.driver, **changed})

    monkeypatch.setattr(SameVersions, "of", classmethod(of))


def test_equal_versions_work(engine: Any, tmp_path: Path) -> None:
    engine.run(touch, [str(tmp_path / "a"), str(tmp_path / "b")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_other_versions_are_named(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which package, which version there and here; no task is begun."""
    other_driver(monkeypatch, pyarrow="0.1.2", corpusveil="9.9")
    with pytest.raises(WorkError, match=r"pyarrow \S+ for 0\.1\.2") as told:
        engine.run(touch, [str(tmp_path / "a"), str(tmp_path / "b")])
    assert "for 9.9" in str(told.value)
    assert "same environment" in str(told.value)
    assert not list(tmp_path.iterdir())


def test_what_is_compared() -> None:
    """Python by its minor version, and each package that output bytes may depend on; one that is missing differs."""
    found: Mapping[str, str] = versions()
    assert set(found) == {"python", *handshake.PACKAGES}
    assert found["python"].count(".") == 1
    with pytest.raises(WorkError, match="gensim"):
        SameVersions(print, {**found, "gensim": "none"})(1)
