"""Beam: a pipeline that is killed in the middle ends, run again, with the bytes of an undisturbed run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.crashes import Undisturbed, assert_nothing_is_half_written, kill_in_the_middle, run_again

pytestmark = [pytest.mark.slow, pytest.mark.faults]


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_in_the_middle(undisturbed: Undisturbed, tmp_path: Path, workers: int) -> None:
    output = tmp_path / "output"
    more = ("--engine", "beam", "--workers", workers)
    assert 0 < kill_in_the_middle(undisturbed, output, *more) < undisturbed.shards
    assert_nothing_is_half_written(undisturbed, output)
    run_again(undisturbed, output, "--engine", "beam")
