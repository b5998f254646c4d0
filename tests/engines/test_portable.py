"""What is said of a Beam runner that cannot be called so: one sentence, before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calls import command
from tests.engines.corpora import Ground


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
        (("--", "--no_wait_until_finish"), "--no_wait_until_finish: a job finishes its release while"),
        (("--runner", "DataflowRunner"), "Missing required option: project"),
    ):
        done = command(*ground.arguments(ground.corpus, tmp_path / "out", "--engine", "beam", *more))
        last = done.err.strip().splitlines()[-1]
        assert (done.status, last.startswith("corpusveil: "), said in last) == (2, True, True), (more, last)
        assert not list(tmp_path.glob("out*"))


def test_a_program_that_can_t_be_downloaded_is_named(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a runner first downloads its program; offline, the error says so, and how to name a copy."""
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("HOME", str(tmp_path))
    for runner, option in (("PrismRunner", "--prism_location"), ("FlinkRunner", "--flink_job_server_jar")):
        done = command(*ground.arguments(ground.corpus, tmp_path / "out", "--engine", "beam", "--runner", runner))
        assert done.status == 1
        assert "could not be fetched" in done.err
        assert f"{option}=PATH" in done.err
