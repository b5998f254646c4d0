"""``santext``: the contract, its law against the closed form, the promise on random spaces, and laws that break it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from corpusveil.mechanisms.exponential_rows import ExponentialRows
from corpusveil.mechanisms.santext import SanText
from corpusveil.mechanisms.vector_blocks import VectorBlocks
from corpusveil.sampling.weights import TOTAL
from corpusveil.spaces import Space
from tests.contracts.mechanism import Case
from tests.mechanisms.spaces import RowsContract, distances, normal, space_of


class TestSanText(RowsContract):
    name = "santext"

    @classmethod
    def case(cls, name: str, space: Space) -> Case:
        apart = distances(space)
        return Case(name, SanText(space), lambda _epsilon: apart)

    @classmethod
    def cases(cls) -> list[Case]:
        return [
            cls.case("two words", space_of([[-0.7], [0.6]])),
            cls.case("duplicates", space_of([[0, 0], [1, 2], [0, 0], [1, 2], [0, 0], [1, 2.0001], [-1, 3]])),
            cls.case("a cluster and one far word", space_of(np.vstack([normal(40, 2) / 50, [[3, 0]]]))),
        ]


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_every_boundary_draw_falls_where_a_naive_search_puts_it(epsilon: float) -> None:
    """The block search changes nothing: w first, then all other words by id, in one or several chunks a block."""
    space = space_of(normal(75, 6) / 2)
    for blocks in (VectorBlocks.of(space.vectors), VectorBlocks.of(space.vectors, table_bytes=75 * 16)):
        rows = ExponentialRows(blocks, epsilon / 2, math.inf)
        assert blocks.blocks == (3 if blocks.per_block == 1 else 2)
        for word in (0, 40, 74):
            row = [int(weight) for weight in rows.row(word)]
            order = [word] + [u for u in range(75) if u != word]
            bounds = np.cumsum([0] + [row[u] for u in order], dtype=object)
            draws = sorted({d for b in bounds for d in (b - 1, b, b + 1) if 0 <= d < TOTAL})
            expected = [order[int(np.searchsorted(bounds, d, side="right")) - 1] for d in draws]
            out = rows.sample(np.full(len(draws), word, np.int32), np.array(draws, dtype=np.uint64))
            assert out.tolist() == expected


def test_rows_do_not_depend_on_the_order_in_which_they_are_built() -> None:
    """A row built alone, in a batch or later is the same row."""
    space = space_of(normal(200, 7))
    whole, single = (
        ExponentialRows(VectorBlocks.of(space.vectors), 0.7, math.inf),
        ExponentialRows(VectorBlocks.of(space.vectors), 0.7, math.inf),
    )
    whole.build(np.arange(200))
    for word in np.random.default_rng(0).permutation(200):
        single.build(np.array([word]))
    assert np.array_equal(whole.totals, single.totals)
    assert np.array_equal(whole.own, single.own)
