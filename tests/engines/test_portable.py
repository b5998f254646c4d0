"""Runners behind a job server, Beam's own one for Python; and what is said of a runner that can't be called so."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpusveil.jobs.local import Local
from corpusveil.transforms.release.corpus import privatize_corpus
from tests.calls import command, succeeds
from tests.engines.corpora import Ground, make_release, release_files
from tests.engines.processes import answers, end_session, free_port, start, wait_until

SUBPROCESS = (
    "--environment_type=beam:env:harness_subprocess_python:v1",
    f"--environment_config={sys.executable} -m apache_beam.runners.worker.sdk_worker_main",
)
PORTABLE = ("--engine", "beam", "--runner", "PortableRunner")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a job server."""
    folder, port = tmp_path_factory.mktemp("server"), free_port()
    program = [sys.executable, "-m", "apache_beam.runners.portability.local_job_service_main", "--port", str(port)]
    process = start([*program, "--staging_dir", str(folder / "staging")], folder, folder / "log")

    try:
        wait_until(lambda: answers(port), every=0.1)
        yield f"127.0.0.1:{port}"
    finally:
        end_session(process)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_job_server_writes_the_same_bytes(server: str, ground: Ground, tmp_path: Path) -> None:
    """In processes that the server starts."""
    more = ("--", f"--job_endpoint={server}", *SUBPROCESS)
    succeeds(*ground.arguments(ground.corpus, tmp_path / "out", *PORTABLE, *more))
    privatize_corpus(make_release(ground.space), [str(ground.corpus)], str(tmp_path / "local"), Local())
    assert release_files(tmp_path / "out") == release_files(tmp_path / "local")


@pytest.mark.nightly
def test_what_neither_beam_nor_the_server_knows_is_refused(server: str, ground: Ground, tmp_path: Path) -> None:
    more = ("--", f"--job_endpoint={server}", "--environment_typo=LOOPBACK")
    done = command(*ground.arguments(ground.corpus, tmp_path / "out", *PORTABLE, *more))
    assert done.status == 2
    assert "--environment_typo: this is not an option of Beam or of PortableRunner" in done.err


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
