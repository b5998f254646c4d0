"""Histories of a ledger: runs that stop at any write, edits, gifts, other files and types, never counted too low."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

from attacks.attempt import Attempt
from corpusveil.errors import CapError
from corpusveil.jobs.local import Local
from corpusveil.ledger.caps import Spending
from corpusveil.ledger.units import Unit
from corpusveil.spaces import Space
from corpusveil.storage.rows import Columns
from corpusveil.transforms.release.corpus import privatize_corpus
from tests.engines.corpora import WORDS, make_space
from tests.ledger.books import nats_of, release_of
from tests.ledger.histories import AUTHORS, DOCUMENTS, LINES, beyond_what_is_owed

STEPS = 6
RELEASES = 6
KINDS = {"run": (3, 31), "frame": (3, 31), "edit": (DOCUMENTS, len(LINES)), "give": (DOCUMENTS, AUTHORS),
         "merge": (1, 1), "split": (1, 1), "retype": (3, 1)}  # fmt: skip
"""The steps of histories, and below which numbers theirs are."""


def attack(scale: float) -> Attempt:
    """Play random histories, and spend a budget repeatedly by everything that makes noise fresh."""
    attempt, random = Attempt(), np.random.default_rng(11)
    with tempfile.TemporaryDirectory() as folder:
        space = make_space(Path(folder) / "space", words=WORDS[:120])
        for number in range(int(400 * scale)):
            history = [_step(random) for _ in range(int(random.integers(1, STEPS + 1)))]
            over = beyond_what_is_owed(space, f"{folder}/history-{number}", history)
            attempt.tried("histories of stopped runs, edits, gifts and types")
            attempt.check(over >= -1e-9, f"a ledger counts {-over:.3g} too low after {history}")
        text = f"{WORDS[0]} {WORDS[1]}"
        renamed = [{"id": 1, f"column{n}": text} for n in range(RELEASES)]
        moved = [{"id": n, "text": text} for n in range(RELEASES)]
        edited = [{"id": 1, "text": f"{text} {WORDS[n]}"} for n in range(RELEASES)]
        for what, unit, rows in (
            ("renamed columns", Unit("content", None), renamed),
            ("renamed documents", Unit("content", None), moved),
            ("edited documents", Unit("id", "id"), edited),
        ):
            _again(attempt, space, Path(folder) / what, unit, rows, what)
    return attempt


def _step(random: np.random.Generator) -> tuple[str, int, int]:
    kind = str(random.choice(["run", *KINDS]))
    first, second = (int(random.integers(0, below)) for below in KINDS[kind])
    return kind, first, second


def _again(attempt: Attempt, space: Space, folder: Path, unit: Unit, rows: list[dict[str, object]], what: str) -> None:
    """Release a document repeatedly under one key, changed each time, with a cap for one release."""
    cap = 1.2 * nats_of(release_of(space), str(rows[0][list(rows[0])[1]]))
    spending = Spending(str(folder / "ledger"), cap, (unit,))
    released = 0
    for number, row in enumerate(rows):
        source = folder / f"in-{number}" / "corpus.jsonl"
        source.parent.mkdir(parents=True)
        source.write_text(json.dumps(row) + "\n")
        try:
            privatize_corpus(
                release_of(space), [str(source.parent)], str(folder / f"out-{number}"), Local(),
                columns=Columns(list(row)[1], "id"), corpus="corpus", spending=spending,
            )  # fmt: skip
            released += 1
        except CapError:
            attempt.tried("releases beyond a cap, refused")
    attempt.tried(f"{what} under a cap", len(rows))
    attempt.check(released == 1, f"{released} releases passed a cap for one: {what}")
