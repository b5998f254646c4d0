"""Replay: the key confirms whole guesses, and nothing else does."""

from __future__ import annotations

import hashlib

import numpy as np

from corpusveil.budget import Budget
from corpusveil.mechanisms import make
from corpusveil.sampling.keys import Key
from corpusveil.transforms.identities import RowNumbers
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.table import privatize
from corpusveil_evaluate.attacks.leaked_keys import replay
from tests.contracts.spaces import small_space, words_of

WORDS = words_of(40)
KEY, OTHER = (Key(hashlib.sha256(name).digest()) for name in (b"one", b"other"))


def texts(rows: int = 50) -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, 12)) for _ in range(rows)]


def release(epsilon: float = 1.0, **more: object) -> Release:
    return Release(make("santext", small_space(words=WORDS)), Budget(epsilon), key=KEY, **more)  # type: ignore[arg-type]


def test_a_guess_that_is_wrong_anywhere_confirms_nothing() -> None:
    """One letter, or another identity: all the noise is another."""
    made, originals = release(0.01), texts()
    private = privatize(originals, made, ids=list(range(50)))
    near = [text + "." for text in originals]
    assert replay(made, private, near, KEY, ids=list(range(50))).share == 0
    assert replay(made, private, originals, KEY, ids=RowNumbers("corpus")).share == 0
    assert replay(made, private, originals, KEY, ids=list(range(50))).share == 1


def test_what_any_key_confirms_is_shown_as_chance() -> None:
    """Texts without a word, and an epsilon that changes none: the control says that it was no leak."""
    nothing = ["?! ..."] * 5
    rows = RowNumbers("corpus")
    found = replay(release(), privatize(nothing, release(), rows), nothing, OTHER, ids=rows)
    assert found.share == found.by_chance == 1
    kept = replay(release(1e4), texts(), texts(), OTHER, ids=rows)
    assert kept.by_chance > 0.9
