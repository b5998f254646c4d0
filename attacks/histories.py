"""Histories of a ledger: runs that stop at any write, edits, renames and renamed columns, never counted too low."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import corpusveil as cv
from attacks.attempt import Attempt
from corpusveil.errors import UserError
from corpusveil.jobs.local import Local
from corpusveil.spaces import Space
from corpusveil.storage.rows import Columns
from corpusveil.transforms.corpus import privatize_corpus
from corpusveil.transforms.spending import Caps, Spending
from tests.engines.corpora import WORDS, make_space
from tests.transforms.histories import beyond_what_is_owed, release_of

STEPS = 6
COLUMNS = 6


def attack(scale: float) -> Attempt:
    """Play random histories, and spend a budget repeatedly by everything that makes noise fresh."""
    attempt, random = Attempt(), np.random.default_rng(11)
    with tempfile.TemporaryDirectory() as folder:
        space = make_space(Path(folder) / "space", words=WORDS[:120])
        for number in range(int(400 * scale)):
            history = [_step(random) for _ in range(int(random.integers(1, STEPS + 1)))]
            over = beyond_what_is_owed(space, f"{folder}/history-{number}", history)
            attempt.tried("histories of stopped runs, edits and renames")
            attempt.check(over >= -1e-9, f"a ledger counts {-over:.3g} too low after {history}")
        _columns(attempt, space, Path(folder) / "columns")
    return attempt


def _step(random: np.random.Generator) -> tuple[object, ...]:
    kind = random.choice(["run", "run", "edit", "rename"])
    one, other = (int(value) for value in random.integers(0, 3, 2))
    if kind == "run":
        return ("run", one, int(random.integers(0, 41)))
    return (str(kind), one, random.integers(0, 5, random.integers(0, 4)).tolist() if kind == "edit" else other)


def _columns(attempt: Attempt, space: Space, folder: Path) -> None:
    """Release one text under six names of its column, with a cap for one of them."""
    folder.mkdir()
    spending = Spending(str(folder / "ledger"), Caps(total=1.0))
    released = 0
    for number in range(COLUMNS):
        source = folder / f"in-{number}" / "corpus.jsonl"
        source.parent.mkdir()
        source.write_text(f'{{"col{number}": "{WORDS[0]} {WORDS[1]}"}}\n')
        release = cv.Release(release_of(space).mechanism, cv.Budget(1.0, "document"), key=release_of(space).key)
        try:
            privatize_corpus(
                release, [str(source.parent)], str(folder / f"out-{number}"), Local(),
                columns=Columns(f"col{number}"), corpus="corpus", spending=spending,
            )  # fmt: skip
            released += 1
        except UserError:
            attempt.tried("releases beyond a cap, refused")
    attempt.tried("renamed columns under a cap", COLUMNS)
    attempt.check(released == 1, f"{released} releases passed a cap for one, by renaming the text column")
