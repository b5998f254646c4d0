"""What lies in the cache decides outputs: put there by somebody else, it is refused or never taken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.errors import TrustError
from corpusveil.mechanisms import exponential_rows, make, table_cache
from corpusveil.mechanisms.exponential_rows import rows_of
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage import home
from tests.calls import refused
from tests.contracts.mechanism import draws_of
from tests.contracts.spaces import words_of
from tests.mechanisms.spaces import normal, space_of

SPACE = space_of(normal(200, 4))
IDS = np.arange(4_000, dtype=np.int32) % 200
EPSILON = 0.01
ROOT = os.geteuid() == 0


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CORPUSVEIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    exponential_rows._cache.clear()
    return tmp_path / "cache"


def drawn() -> np.ndarray:
    """Return what a new process would draw at an epsilon that leaves next to no word as it is."""
    exponential_rows._cache.clear()
    return make("santext", SPACE).privatize(IDS, EPSILON, draws_of(IDS.size))


def table() -> Path:
    """Keep the table of that law; return where."""
    exponential_rows._cache.clear()
    folder = make("santext", SPACE).rows(EPSILON).keep()  # type: ignore[attr-defined]
    exponential_rows._cache.clear()
    return folder


def plain(arrays: table_cache.RowArrays) -> table_cache.RowArrays:
    """Return a table by which every word stays as it is."""
    own, scales, totals = arrays
    return np.full_like(own, np.uint64(2**64 - 1)), np.array(scales), np.array(totals)


class TestATable:
    def test_that_somebody_else_signed_is_not_taken(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Whoever can write into the cache cannot make santext at epsilon 0.01 write plain text."""
        honest = drawn()
        folder = table()
        found = table_cache.read_table(folder.name)
        assert found is not None
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "theirs"))
        shutil.rmtree(folder)
        table_cache.save_table(folder.name, plain(found))
        assert np.array_equal(drawn(), IDS)  # it would work: taken, it undoes the mechanism
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        assert np.array_equal(drawn(), honest)
        assert (honest == IDS).mean() < 0.1

    @pytest.mark.parametrize("digest", ["0" * 128, None])
    def test_that_nobody_signed_is_not_taken(self, digest: object) -> None:
        """Nor one with the digest that lay beside it once, or with none."""
        honest, folder = drawn(), table()
        found = table_cache.read_table(folder.name)
        assert found is not None
        for name, array in zip(table_cache.NAMES, plain(found), strict=True):
            np.save(folder / f"{name}.npy", array)
            (folder / f"{name}.npy").chmod(0o600)
        (folder / table_cache.ARTIFACT).write_text(json.dumps({"kind": "rows", "signature": digest, "digest": digest}))
        assert np.array_equal(drawn(), honest)

    def test_of_another_law_is_not_taken_under_this_name(self) -> None:
        """The user's own table of epsilon 50, moved to where that of 0.01 belongs."""
        honest, folder = drawn(), table()
        other = make("santext", SPACE).rows(50.0).keep()  # type: ignore[attr-defined]
        shutil.rmtree(folder)
        shutil.copytree(other, folder)
        assert np.array_equal(drawn(), honest)

    @pytest.mark.parametrize(
        ("place", "how"),
        [("", "others"), ("tables", "owner"), ("tables/*", "link"), ("tables/*/own.npy", "group"),
         ("tables/*/_artifact.json", "owner"), ("tables/*/own.npy", "link")],
    )  # fmt: skip
    def test_that_others_may_write_to_is_refused(self, cache: Path, tmp_path: Path, place: str, how: str) -> None:
        """The cache, its folders and its files: each by itself, by a sentence that names it."""
        table()
        (path,) = cache.glob(place) if place else [cache]
        if how == "link":
            shutil.move(path, tmp_path / "elsewhere")
            path.symlink_to(tmp_path / "elsewhere")
        elif how == "owner":
            if not ROOT:
                pytest.skip("only root gives files away")
            os.chown(path, 12345, -1)
        else:
            path.chmod(path.stat().st_mode | (0o020 if how == "group" else 0o002))
        with refused("untrusted-file") as told:
            rows_of(SPACE, EPSILON / 2)
        assert str(told.value).startswith(f"{path}: ")

    def test_is_closed_to_others_whatever_the_umask(self, cache: Path) -> None:
        before = os.umask(0)
        try:
            table()
        finally:
            os.umask(before)
        assert all(path.stat().st_mode & 0o022 == 0 for path in [cache, *cache.rglob("*")])
        assert (home.configuration_path() / "cache.key").stat().st_mode & 0o077 == 0

    def test_is_not_vouched_for_by_a_secret_that_others_know(self) -> None:
        table()
        (home.configuration_path() / "cache.key").chmod(0o644)
        with refused("untrusted-file", "cache.key"):
            drawn()


class TestTheRest:
    def test_a_copy_of_a_space_that_others_may_write_to_is_refused(self, cache: Path) -> None:
        """It is mapped after it was compared with its digest; nobody may change it then."""
        space = build_space(Vectors(words_of(30), normal(30, 4))).save("memory://poisoned/space")
        assert cv.load_space("memory://poisoned/space") == space
        (copy,) = (cache / "artifacts").glob("*/vectors.npy")
        copy.chmod(0o666)
        with pytest.raises(TrustError):
            cv.load_space("memory://poisoned/space")

    def test_a_copy_of_a_space_is_known_by_its_content(self, cache: Path) -> None:
        space = build_space(Vectors(words_of(31), normal(31, 4))).save("memory://poisoned/other")
        cv.load_space("memory://poisoned/other")
        copy = cache / "artifacts" / space.digest / "vectors.npy"
        vectors = np.load(copy)
        np.save(copy, vectors * 1000)
        with refused("damaged-artefact"):
            cv.load_space("memory://poisoned/other")

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
