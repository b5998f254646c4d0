"""Released lengths: a grid says its cell and nothing else, noise keeps its epsilon exactly and wastes none of it."""

from __future__ import annotations

import decimal
import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import corpusveil as cv
from corpusveil.budget.length import geometric_weights, length_of, two_sided
from corpusveil.errors import BadRecordError
from corpusveil.sampling.draws import DrawKey, Draws
from tests.calls import refused
from tests.engines.corpora import TEST_KEY

EPSILONS = (0.001, 0.3, 1.0, 20.0)


def documents(count: int) -> Draws:
    """Return draws of so many documents."""
    key = DrawKey.derive(cv.Key(TEST_KEY), "00" * 32)
    tags = key.tags("text", list(range(count)), np.empty(0, np.uint8), np.zeros(count + 1, np.int64))
    return Draws(key, tags, np.arange(count), np.zeros(count, np.int64))


@pytest.mark.parametrize("pad", [1, 7])
def test_a_grid_gives_the_least_multiple_that_is_not_below(pad: int) -> None:
    words = [*range(5 * pad + 1), 2**31 - 1]
    points = cv.LengthGrid(pad).released(np.array(words)).tolist()
    for number, point in zip(words, points, strict=True):
        assert point % pad == 0
        assert max(number, 1) <= point < max(number, 1) + pad


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_neighboring_numbers_differ_by_epsilon_and_hardly_less(epsilon: float) -> None:
    """Exactly, in integers: no ratio is above e^epsilon or below 1, and all are within a millionth of e^epsilon."""
    weights, again = geometric_weights(epsilon)
    assert sum(weights) == 1 << 64
    law = [Fraction(weight) for weight in weights]
    law += [weight * Fraction(again, 1 << 64) for weight in law]
    with decimal.localcontext(prec=60):
        for before, after in itertools.pairwise(law):
            ratio = before / after
            nats = (decimal.Decimal(ratio.numerator) / decimal.Decimal(ratio.denominator)).ln()
            assert decimal.Decimal(epsilon) * (1 - decimal.Decimal(2) ** -19) < nats <= decimal.Decimal(epsilon)


@pytest.mark.parametrize("epsilon", [0.2, 1.5])
def test_what_is_drawn_is_two_sided_geometric(epsilon: float) -> None:
    """And not one of another scale: false alarms at 1e-9, a noise of 0.8 of epsilon is noticed."""
    drawn = two_sided(epsilon, documents(40_000))
    for scale, holds in ((1.0, True), (0.8, False)):
        shrink = np.exp(-epsilon * scale)
        edge = int(6 / epsilon)
        law = np.array([(1 - shrink) / (1 + shrink) * shrink ** abs(k) for k in range(-edge, edge + 1)])
        expected = np.append(law, 1 - law.sum()) * drawn.size
        observed = np.bincount(np.where(abs(drawn) <= edge, drawn + edge, 2 * edge + 1), minlength=expected.size)
        assert (stats.chisquare(observed, expected).pvalue > 1e-9) == holds


def test_cuts_are_as_rare_as_is_said_and_a_document_keeps_a_word() -> None:
    noise = cv.LengthNoise(2.0)
    released = noise.released(np.full(40_000, 100), documents(40_000))
    assert (released < 100).mean() == pytest.approx(np.exp(-2) / (1 + np.exp(-2)), rel=0.15)
    assert noise.released(np.zeros(1000, np.int64), documents(1000)).min() == 1


def test_a_manifest_gives_the_policy_back() -> None:
    for policy in (cv.LengthGrid(50), cv.LengthNoise(0.1)):
        assert length_of(policy.as_dict()) == policy
    assert length_of(None) is None
    with pytest.raises(BadRecordError):
        length_of({**cv.LengthGrid(5).as_dict(), "policy": "none of these"})


def test_values_out_of_range_are_refused() -> None:
    for kind, values in (
        (cv.LengthGrid, [(0,), (1.5,), (True,), (10**7,)]),
        (cv.LengthNoise, [(0,), (21.0,), (float("nan"),)]),
    ):
        for arguments in values:
            with refused("wrong-value"):
                kind(*arguments)
