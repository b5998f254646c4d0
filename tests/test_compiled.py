"""Loops run compiled wherever the package is installed, and machine code is kept where that is possible."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
