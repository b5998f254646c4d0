"""``custext-per-word``: the contract, its candidates, and why it guarantees nothing."""

from __future__ import annotations

import math

import numpy as np

from corpusveil_evaluate.mechanisms.custext_per_word import CusTextPerWord
from corpusveil_evaluate.mechanisms.nearest_sets import nearest_sets
from tests.contracts.mechanism import Case, RefutedContract, matrix
from tests.mechanisms.spaces import distances, excess, normal, space_of
from tests.mechanisms.test_custext import DUPLICATES, Integers


class TestCusTextPerWord(RefutedContract, Integers):
    name = "custext-per-word"

    @classmethod
    def cases(cls) -> list[Case]:
        return [
            Case("two words", CusTextPerWord(space_of([[-0.7], [0.6]])), None),
            Case("thirty-five", CusTextPerWord(space_of(normal(35, 4))), None),
            Case("duplicates", CusTextPerWord(space_of(DUPLICATES), K=3), None),
        ]


def test_nearest_sets_are_the_nearest() -> None:
    """Each word first, then others by distance and id."""
    space = space_of([*DUPLICATES, [0, 0.5]])
    apart = distances(space)
    for word, members in enumerate(nearest_sets(space, 5).members.tolist()):
        others = sorted((u for u in range(11) if u != word), key=lambda u, w=word: (apart[w, u], u))
        assert members == [word, *others[:4]]


def test_a_set_per_word_is_refuted() -> None:
    """Supports differ, so the ratio of two laws is infinite."""
    law = matrix(CusTextPerWord(space_of(normal(200, 10))), 1.0)
    assert len({tuple(np.flatnonzero(row)) for row in law}) == 200
    assert excess(law, np.ones((200, 200)), 1e9) == math.inf
