"""Kept tables: complete, the same integers, mapped by all, and never taken when they are not whole."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from corpusveil.cli.main import run
from corpusveil.mechanisms import exponential_rows, make, table_cache
from corpusveil.mechanisms.exponential_rows import rows_of
from corpusveil.spaces import Space, load_space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from tests.contracts.mechanism import draws_of
from tests.contracts.spaces import words_of
from tests.mechanisms.spaces import normal, space_of


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, on the disk and in this process."""
    monkeypatch.setenv("CORPUSVEIL_CACHE", str(tmp_path / "cache"))
    exponential_rows._cache.clear()
    return tmp_path / "cache"


SPACE = space_of(normal(300, 6))
IDS = np.arange(20_000, dtype=np.int32) % 300


def drawn(space: Space, name: str = "santext", epsilon: float = 3.0) -> np.ndarray:
    return make(name, space).privatize(IDS, epsilon, draws_of(IDS.size))


@pytest.mark.parametrize("name", ["santext", "tem", "tight-exponential", "syntf"])
def test_changes_no_draw(name: str) -> None:
    """Draws from a kept table are the same as without it."""
    before = drawn(SPACE, name, 8.0)
    make(name, SPACE).rows(8.0).keep()  # type: ignore[attr-defined]
    exponential_rows._cache.clear()
    mechanism = make(name, SPACE)
    assert mechanism.rows(8.0).is_kept  # type: ignore[attr-defined]
    assert np.array_equal(drawn(SPACE, name, 8.0), before)
    assert not mechanism.rows(4.0).is_kept  # type: ignore[attr-defined]


def test_holds_all_words_and_nothing_of_a_run(cache: Path) -> None:
    """Two tables that were kept after different texts are equal, byte for byte; a text alone keeps nothing."""
    found = []
    for words in ([0, 1, 2], list(range(100, 200))):
        exponential_rows._cache.clear()
        table = rows_of(SPACE, 1.5)
        table.build(np.array(words))
        assert not list(cache.rglob("*.npy")) or found
        folder = table.keep()
        found.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert found[0] == found[1]
    assert set(found[0]) == {"own.npy", "scales.npy", "totals.npy", "_artifact.json"}


@pytest.mark.parametrize(
    ("name", "how"), [("own.npy", "flip"), ("scales.npy", "cut"), ("totals.npy", "gone"), ("_artifact.json", "flip")]
)
def test_a_table_that_is_not_whole_is_not_taken(name: str, how: str) -> None:
    """A flipped bit, a short file or a missing one: rows are built anew, and keeping them mends it."""
    before = drawn(SPACE)
    folder = rows_of(SPACE, 1.5).keep()
    data = bytearray((folder / name).read_bytes())
    if how == "gone":
        (folder / name).unlink()
    else:
        data[-9] ^= 16
        (folder / name).write_bytes(data if how == "flip" else data[:-8])
    exponential_rows._cache.clear()
    assert not rows_of(SPACE, 1.5).is_kept
    assert np.array_equal(drawn(SPACE), before)
    rows_of(SPACE, 1.5).keep()
    exponential_rows._cache.clear()
    assert rows_of(SPACE, 1.5).is_kept


def test_what_decides_the_integers_is_in_the_name() -> None:
    """Space, exponent, truncation, squares, factors and blocks: another of any is another table."""
    plain = {"space": "a", "s": "0x1p0", "gamma": "inf", "squared": False, "per_block": 1, "factors": None}
    names = {table_cache.key_of(**plain)}
    for name, other in (("space", "b"), ("s", "0x1p1"), ("gamma", "0x1p0"), ("squared", True), ("per_block", 2),
                        ("factors", "f")):  # fmt: skip
        names.add(table_cache.key_of(**{**plain, name: other}))
    assert len(names) == 7


def _keep(_: int) -> str:
    exponential_rows._cache.clear()
    return str(rows_of(SPACE, 2.5).keep())


def test_several_at_once_keep_one() -> None:
    """Two processes: one table, whole, and nothing half-made beside it."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        (folder,) = set(pool.map(_keep, range(2), chunksize=1))
    assert [path.name for path in Path(folder).parent.iterdir()] == [Path(folder).name]
    exponential_rows._cache.clear()
    assert rows_of(SPACE, 2.5).is_kept


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Keeps the table that a release then uses; says if there is nothing to keep."""
    build_space(Vectors(words_of(300), normal(300, 6)), lists=0).save(str(tmp_path / "space"))
    base = ["compile", "--space", str(tmp_path / "space")]
    assert run([*base, "--mechanism", "santext", "--epsilon", "1", "--epsilon", "2"]) == 0
    assert capsys.readouterr().out.count("cache/tables/") == 2
    exponential_rows._cache.clear()
    found = make("santext", load_space(str(tmp_path / "space")))
    assert found.rows(2.0).is_kept  # type: ignore[attr-defined]
    assert run([*base, "--mechanism", "cmp", "--epsilon", "1"]) == 2
    assert "nothing to compile" in capsys.readouterr().err
    assert json.loads(next((tmp_path / "cache/tables").rglob("_artifact.json")).read_text())["kind"] == "rows"
