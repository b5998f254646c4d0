"""Compiled loops stay inside their arrays: with numba's checks on, no test finds an index outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

OUTSIDE = """
import numba, numpy as np
from corpusveil.wide import blank_bits, lower_sixteen

@numba.njit
def long(array, at):
    return blank_bits(array, at)

@numba.njit
def run(array, at):
    return lower_sixteen(array, at, 16)[0]

array = np.full(70, 65, np.uint8)
print(hex(run(array, 54)), long(array, 6) == 0)
for loop, at in ((run, 55), (run, -1), (long, 7), (long, -1)):
    try:
        loop(array, at)
    except IndexError as error:
        print(error)
"""


def _checked(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    checks = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, *arguments], env=os.environ | checks, capture_output=True, text=True, check=False
    )


def test_a_wide_read_outside_of_its_array_is_refused_where_checks_are_on(tmp_path: Path) -> None:
    found = _checked(tmp_path, "-c", OUTSIDE)
    assert found.stdout.splitlines() == ["0x6161616161616161 True", *["outside of the array"] * 4], found.stderr


@pytest.mark.nightly
def test_no_loop_of_readers_kernel_and_writers_leaves_its_arrays(tmp_path: Path) -> None:
    chosen = "not slow and not spark and not nightly"
    found = _checked(tmp_path, "-m", "pytest", "-q", "-x", "-m", chosen, "tests/text", "tests/storage", "tests/golden")
    assert found.returncode == 0, found.stdout[-4000:]
