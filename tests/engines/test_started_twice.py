"""The same command started several times at once, on every engine: one works, the others say so, and all can go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calls import succeeds
from tests.engines.corpora import HANG_SECONDS, Ground, release_files
from tests.engines.processes import end_session, start_command

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.mark.parametrize(("engine", "starts"), [
    pytest.param((), 3, id="local"),
    pytest.param(("--engine", "spark", "--workers", 2), 2, id="spark", marks=pytest.mark.nightly),
    pytest.param(("--engine", "beam"), 2, id="beam", marks=pytest.mark.nightly),
])  # fmt: skip
def test_identical_starts(ground: Ground, tmp_path: Path, engine: tuple[object, ...], starts: int) -> None:
    """With a ledger, whose pass is where they removed one another's records."""
    ledger = ("--ledger", tmp_path / "ledger", "--corpus", "c")
    arguments = ground.arguments(ground.corpus, tmp_path / "out", *engine, *ledger)
    started = [start_command(arguments, tmp_path, tmp_path / f"{number}.log") for number in range(starts)]
    try:
        told = [process.wait(HANG_SECONDS) for process in started]
    finally:
        for process in started:
            end_session(process)
    said = [(tmp_path / f"{number}.log").read_text() for number in range(starts)]
    assert 0 in told, said
    for status, text in zip(told, said, strict=True):
        if status:
            assert status == 1
            assert text.splitlines()[-1].startswith("corpusveil: Another run is in progress ("), text
            assert text.splitlines()[-1].endswith("); nothing was done. [other-run]")
        assert "Traceback" not in text
    succeeds(*arguments)
    succeeds(*ground.arguments(ground.corpus, tmp_path / "once", "--corpus", "c"))
    assert release_files(tmp_path / "out") == release_files(tmp_path / "once")
    assert not list(tmp_path.rglob("lease-*"))
