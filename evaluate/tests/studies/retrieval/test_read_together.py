"""Several variants of a query are one release under the product of their laws."""

from __future__ import annotations

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.language.channel import Candidates
from corpusveil.mechanisms.risk import prior_of
from corpusveil_evaluate.studies.retrieval.obfuscated_queries import combine
from tests.contracts.spaces import small_space, words_of


@pytest.mark.parametrize(("name", "epsilon"), [("ring-geometric", 0.7), ("tem", 6.0)])
@pytest.mark.parametrize("known", [40, 12])
def test_what_they_say_is_the_product_of_their_laws(name: str, epsilon: float, known: int) -> None:
    """Against all words: the same where all are looked at, and of a dozen nearly always; one variant alone is not."""
    space = small_space(words=words_of(40))
    mechanism, shares = cv.mechanism(name, space), prior_of(space).shares
    law = mechanism.distributions(np.arange(40), epsilon)
    rng = np.random.default_rng(0)
    truth = rng.choice(40, 200, p=shares)
    released = np.array([rng.choice(40, 5, p=law[word] / law[word].sum()) for word in truth]).astype(np.int32)
    scores = np.log(shares)[:, None] + np.log(law)[:, released].sum(axis=2)  # [V, R]
    found = combine(Candidates(mechanism, shares, known), epsilon, released, 8)
    same = float((found.words[:, 0] == scores.argmax(axis=0)).mean())
    assert same == 1.0 if known == 40 else same > 0.9
    if known == 40:
        expected = np.exp(scores - np.log(shares)[:, None])
        for place in range(5):
            several = expected[found.words[place], place]
            np.testing.assert_allclose(found.emissions[place], several / several.max(), rtol=1e-6)
    alone = combine(Candidates(mechanism, shares, known), epsilon, released[:, :1], 8)
    assert (found.words[:, 0] == truth).mean() > (alone.words[:, 0] == truth).mean() + 0.1
