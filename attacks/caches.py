"""The cache: tables that are changed, swapped, signed by another user or moved never change a draw."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import numpy.typing as npt

from attacks.attempt import Attempt
from corpusveil.mechanisms import exponential_rows, make, table_cache
from tests.contracts.mechanism import draws_of
from tests.mechanisms.spaces import normal, space_of

WORDS = 150
IDS = np.arange(6_000, dtype=np.int32) % WORDS
MECHANISMS = ("santext", "tem", "tight-exponential", "syntf")
EPSILONS = (0.01, 0.5, 2.0)
Ids = npt.NDArray[np.int32]


def attack(scale: float) -> Attempt:
    """Poison tables of every exponential law in every way; a control shows that an accepted table changes draws."""
    attempt = Attempt()
    with tempfile.TemporaryDirectory() as folder:
        places = {"CORPUSVEIL_CACHE": f"{folder}/cache", "XDG_CONFIG_HOME": f"{folder}/config"}
        with mock.patch.dict(os.environ, places):
            for seed in range(max(1, int(3 * scale))):
                for name in MECHANISMS:
                    for epsilon in EPSILONS:
                        _poison(attempt, name, epsilon, seed, Path(folder))
    return attempt


def _poison(attempt: Attempt, name: str, epsilon: float, seed: int, folder: Path) -> None:
    space = space_of(normal(WORDS, 4, seed))

    def drawn() -> Ids:
        exponential_rows._cache.clear()
        return make(name, space).privatize(IDS, epsilon, draws_of(IDS.size))

    def keep() -> Path:
        exponential_rows._cache.clear()
        return Path(make(name, space).rows(epsilon).keep())  # type: ignore[attr-defined]

    shutil.rmtree(folder / "cache", ignore_errors=True)
    honest = drawn()
    ways: dict[str, Callable[[Path], object]] = {
        "every word stays": _plain,
        "a bit of each array": _flip,
        "rows of two words, swapped": _swap,
        "signed under another secret": lambda table: _other_secret(table, folder),
        "the table of a larger epsilon": lambda table: _another(table, Path(make(name, space).rows(50.0).keep())),  # type: ignore[attr-defined]
    }
    for way, change in ways.items():
        table = keep()
        change(table)
        where = f"{name} at epsilon {epsilon:g}"
        attempt.tried("poisoned tables")
        attempt.check(bool(np.array_equal(drawn(), honest)), f"{where}: a table was taken that was poisoned ({way})")
        shutil.rmtree(table)
    table = keep()
    secret = (folder / "config" / "corpusveil" / "cache.key").read_bytes()
    arrays = _arrays(table)
    arrays[0][:] = np.uint64(2**64 - 1)
    _write(table, arrays)
    signed = table_cache._signature(secret, table.name, arrays)
    (table / table_cache.ARTIFACT).write_text(json.dumps({"kind": "rows", "signature": signed}))
    attempt.tried("controls: the user's own signature, taken", int(np.array_equal(drawn(), IDS)))
    attempt.check(bool(np.array_equal(drawn(), IDS)), f"{name}: the control was not taken; these attacks show nothing")


def _arrays(table: Path) -> list[npt.NDArray[np.generic]]:
    return [np.load(table / f"{name}.npy") for name in table_cache.NAMES]


def _write(table: Path, arrays: list[npt.NDArray[np.generic]]) -> None:
    for name, array in zip(table_cache.NAMES, arrays, strict=True):
        np.save(table / f"{name}.npy", array)
        (table / f"{name}.npy").chmod(0o600)


def _plain(table: Path) -> None:
    arrays = _arrays(table)
    arrays[0][:] = np.uint64(2**64 - 1)
    _write(table, arrays)


def _flip(table: Path) -> None:
    for name in table_cache.NAMES:
        data = bytearray((table / f"{name}.npy").read_bytes())
        data[-1] ^= 128
        (table / f"{name}.npy").write_bytes(data)


def _swap(table: Path) -> None:
    arrays = _arrays(table)
    for array in arrays:
        array[[0, 1]] = array[[1, 0]]
    _write(table, arrays)


def _other_secret(table: Path, folder: Path) -> None:
    _plain(table)
    with mock.patch.dict(os.environ, {"XDG_CONFIG_HOME": str(folder / "theirs")}):
        arrays = _arrays(table)
        shutil.rmtree(table)
        table_cache.save_table(table.name, (arrays[0], arrays[1], arrays[2]))  # type: ignore[arg-type]


def _another(table: Path, other: Path) -> None:
    shutil.rmtree(table)
    shutil.copytree(other, table)
