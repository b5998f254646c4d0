"""What lies in the cache decides outputs: put there by somebody else, it is refused or never taken."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from tests.calls import refused
from tests.contracts.spaces import words_of
from tests.mechanisms.spaces import normal

ROOT = os.geteuid() == 0


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CORPUSVEIL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class TestTheCache:
    @pytest.mark.parametrize(
        ("place", "how"),
        [("", "others"), ("artifacts", "owner"), ("artifacts/*", "link"), ("artifacts/*/vectors.npy", "group"),
         ("artifacts/*/lists.npy", "owner"), ("artifacts/*/vectors.npy", "link")],
    )  # fmt: skip
    def test_a_copy_of_a_space_that_others_may_write_to_is_refused(
        self, cache: Path, tmp_path: Path, place: str, how: str
    ) -> None:
        """It is mapped after it was compared with its digest; nobody may change it, its folders or the cache then."""
        space = build_space(Vectors(words_of(30), normal(30, 4))).save("memory://poisoned/space")
        assert cv.load_space("memory://poisoned/space") == space
        paths = cache.glob(place) if place else [cache]
        (path,) = (path for path in paths if not path.name.endswith(".lock"))
        if how == "link":
            shutil.move(path, tmp_path / "elsewhere")
            path.symlink_to(tmp_path / "elsewhere")
        elif how == "owner":
            if not ROOT:
                pytest.skip("only root gives files away")
            os.chown(path, 12345, -1)
        else:
            path.chmod(path.stat().st_mode | (0o020 if how == "group" else 0o002))
        with refused("unusable-address", str(path)):
            cv.load_space("memory://poisoned/space")

    def test_compiled_loops_are_not_loaded_from_a_folder_of_others(self, tmp_path: Path) -> None:
        """numba runs what it finds there."""
        folder = tmp_path / "numba"
        folder.mkdir()
        folder.chmod(0o777)
        call = [sys.executable, "-m", "corpusveil", "mechanisms"]
        done = subprocess.run(
            call, env={**os.environ, "NUMBA_CACHE_DIR": str(folder)}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert done.stderr.startswith(f"corpusveil: {folder}: other users can write to this")
