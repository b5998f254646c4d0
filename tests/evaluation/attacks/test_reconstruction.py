"""Bayes-optimal reconstruction against brute force over whole matrices."""

from __future__ import annotations

import numpy as np
import pytest

from corpusveil.errors import NoClosedForm, UserError
from corpusveil.evaluation.attacks.reconstruction import bayes_token
from corpusveil.mechanisms import make
from corpusveil.mechanisms.risk import prior_of
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from tests.contracts.mechanism import matrix
from tests.contracts.spaces import words_of
from tests.mechanisms.spaces import normal

SIZE = 24
COUNTS = np.random.default_rng(3).integers(1, 300, SIZE)


@pytest.fixture(scope="module")
def space() -> Space:
    return build_space(Vectors(words_of(SIZE), normal(SIZE, 3), counts=COUNTS))


@pytest.mark.parametrize("name", ["santext", "ring-geometric", "custext"])
@pytest.mark.parametrize("epsilon", [0.2, 2.0, 20.0])
@pytest.mark.parametrize("inputs", [SIZE, 10])
def test_guesses_are_those_of_brute_force(space: Space, name: str, epsilon: float, inputs: int) -> None:
    """Every output: inputs sorted by prior times law; custext has inputs that can't give an output at all."""
    mechanism, prior = make(name, space), prior_of(space, inputs)
    law = matrix(mechanism, epsilon)
    found = bayes_token(mechanism, epsilon, prior, top=4)
    recovered = np.zeros(4)
    for output in range(SIZE):
        joint = {int(w): float(p * law[w, output]) for w, p in zip(prior.words, prior.shares, strict=True)}
        best = sorted((w for w in joint if joint[w] > 0), key=lambda w: (-joint[w], w))[:4]
        assert found.guesses[output].tolist() == best + [-1] * (4 - len(best))
        whole = sum(joint.values())
        expected = [joint[w] / whole for w in best] + [0.0] * (4 - len(best))
        np.testing.assert_allclose(found.posterior[output], expected, rtol=1e-12)
        recovered += np.cumsum([joint[w] for w in best] + [0.0] * (4 - len(best)))
    np.testing.assert_allclose(found.recovered, recovered, rtol=1e-12)
    assert found.unchanged == pytest.approx(sum(p * law[w, w] for w, p in zip(prior.words, prior.shares, strict=True)))
    assert found.recovered[0] >= max(found.unchanged, found.unseen) - 1e-12
    assert bayes_token(mechanism, epsilon, prior).recovered[0] == pytest.approx(found.recovered[0], rel=1e-12)


def test_sampled_guesses_are_right_as_often_as_computed(space: Space) -> None:
    """Words by the prior, released by the library, guessed; a mechanism of another epsilon would not fit."""
    mechanism, prior, draws = make("santext", space), prior_of(space), 100_000
    found = bayes_token(mechanism, 1.5, prior)
    truth = np.random.default_rng(8).choice(prior.words, draws, p=prior.shares).astype(np.int32)
    some = Draws.of_tokens(DrawKey.derive(Key.for_tests(), "00" * 32), draws)
    right = np.mean(found.guesses[mechanism.privatize(truth, 1.5, some), 0] == truth)
    error = np.sqrt(found.recovered[0] * (1 - found.recovered[0]) / draws)
    assert abs(right - found.recovered[0]) < 5 * error
    assert abs(right - bayes_token(mechanism, 2.5, prior).recovered[0]) > 5 * error


def test_noise_without_a_law_is_refused_in_a_sentence(space: Space) -> None:
    with pytest.raises(NoClosedForm, match="cmp: explaining a released word needs the exact law"):
        bayes_token(make("cmp", space), 1.0, prior_of(space))
    with pytest.raises(UserError, match="top = 25"):
        bayes_token(make("santext", space), 1.0, prior_of(space), top=25)
