"""Loops run compiled wherever the package is installed, keep machine code where they can, and stay in their arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOOP = """
from numba.core import caching
caching.CacheImpl._locator_classes = [caching.UserProvidedCacheLocator]  # not beside the package, nor in a home
import numpy as np
from corpusveil.text.utf8 import encode
print(encode(233, np.zeros(4, np.uint8), 0), *(sum(each.values()) for each in encode.stats[1:]))
"""


def run(cache: str) -> list[str]:
    """Return what a process prints whose machine code can only be kept in this folder."""
    done = subprocess.run(
        [sys.executable, "-c", LOOP], env={**os.environ, "NUMBA_CACHE_DIR": cache}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return done.stdout.split()


def test_loops_run_where_nothing_can_be_written(tmp_path: Path) -> None:
    """Neither the package nor a home nor the folder of NUMBA_CACHE_DIR: each process compiles for itself."""
    tmp_path.joinpath("file").touch()
    assert run(str(tmp_path / "file" / "below")) == ["2", "0", "1"]


def test_what_one_process_compiled_the_next_one_loads(tmp_path: Path) -> None:
    assert [run(str(tmp_path)) for _ in range(2)] == [["2", "0", "1"], ["2", "1", "0"]]


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
