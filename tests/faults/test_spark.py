"""Spark: a driver that is killed, and a worker of a cluster that is, change nothing in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.corpora import HANG_SECONDS, release_files
from tests.engines.processes import cluster, end_session, kill_tree, wait_until
from tests.faults.crashes import Undisturbed, assert_nothing_is_half_written, done, kill_in_the_middle, run_again

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.faults]


def test_a_killed_driver_and_all_its_workers(undisturbed: Undisturbed, tmp_path: Path) -> None:
    output = tmp_path / "output"
    assert 0 < kill_in_the_middle(undisturbed, output, "--engine", "spark", "--workers", 2) < undisturbed.shards
    assert_nothing_is_half_written(undisturbed, output)
    run_again(undisturbed, output, "--engine", "spark", "--workers", 2)


def test_a_cluster_completes_when_one_of_its_workers_is_killed(undisturbed: Undisturbed, tmp_path: Path) -> None:
    output = tmp_path / "output"
    with cluster(tmp_path) as made:
        arguments = undisturbed.ground.arguments(undisturbed.ground.corpus, output, "--engine", "spark")
        job = made.submit(arguments, tmp_path / "submit.log")
        try:
            wait_until(lambda: done(output) > 0 or job.poll() is not None)
            assert done(output) < undisturbed.shards
            kill_tree(made.workers[0])
            status = job.wait(HANG_SECONDS)
        finally:
            end_session(job)
    said = (tmp_path / "submit.log").read_text()
    assert status == 0, said
    assert undisturbed.content in said
    assert release_files(output) == undisturbed.files
