"""Regimes, the genetic attacker, measures and curves: promises by construction, brute force, and controls."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusveil.mechanisms import Mechanism, make
from corpusveil.sampling.draws import Draws
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil_evaluate.studies.robustness.encoded_texts import PADDING, Examples
from corpusveil_evaluate.studies.robustness.genetic import Genetic, attack, measure
from corpusveil_evaluate.studies.robustness.network_training import Noise
from corpusveil_evaluate.studies.robustness.networks import Convolutional, Entailment, Trained, vectors_of
from tests.contracts.spaces import small_space
from tests.engines.corpora import TEST_KEY

WORDS = 40
KEY = Key(TEST_KEY)


@pytest.fixture(scope="module")
def space() -> Space:
    return small_space(WORDS)


def noise_of(space: Space, epsilon: float = 1.0, name: str = "santext") -> Noise:
    return Noise(make(name, space), epsilon, KEY)


def made(seed: int, rows: int = 12, *, pairs: bool = False) -> Examples:
    rng = np.random.default_rng(seed)

    def texts(most: int) -> np.ndarray:
        out = np.full((rows, most), PADDING, np.int32)
        for number, row in enumerate(out):
            length = number % (most + 1)  # an empty one is among them
            row[:length] = rng.integers(0, WORDS, length)
        return out

    return Examples(texts(7), rng.integers(0, 2, rows), ("a", "b"), texts(4) if pairs else None)


def random_network(space: Space, seed: int, *, pairs: bool = False) -> Trained:
    network = (Entailment if pairs else Convolutional)(space.dimensions, 2, 5)
    rng = np.random.default_rng(seed)
    sizes = network.sizes
    parameters = {f"{k}.weight": rng.normal(size=v) * math.sqrt(2 / v[0]) for k, v in sizes.items()}
    parameters |= {f"{k}.bias": np.zeros(v[1]) for k, v in sizes.items()}
    return Trained.of(network, parameters, vectors_of(space, np.float64))


class TestRegimes:
    def test_a_variant_replaces_every_word_by_the_law_and_nothing_else(self, space: Space) -> None:
        noise = noise_of(space, 2.0)
        texts = np.full((3000, 4), 7, np.int32)
        texts[:, 3] = PADDING
        found = noise.variant(texts, "x")
        assert (found[:, 3] == PADDING).all()
        law = noise.mechanism.distribution(7, 2.0)
        shares = np.bincount(found[:, :3].ravel(), minlength=WORDS) / 9000
        assert np.abs(shares - law).max() < 5 * math.sqrt(law.max() / 9000)
        other = noise.mechanism.distribution(7, 4.0)
        assert np.abs(shares - other).max() > 5 * math.sqrt(law.max() / 9000), "another epsilon is told apart"


@dataclass(frozen=True, slots=True)
class Recording(Mechanism):
    """A mechanism that adds 1 to each id, so that a word tells how often it was perturbed."""

    name: ClassVar[str] = "recording"
    paper: ClassVar[str] = ""
    summary: ClassVar[str] = ""

    def privatize(self, ids: Any, epsilon: Any, draws: Draws) -> Any:
        self.check_tokens(ids, draws)
        pairs = list(zip(draws.documents.tolist(), draws.positions.tolist(), strict=True))
        assert len(set(pairs)) == len(pairs)
        return ids + 1

    distribution = guarantee = retention = unknown_bound = lambda self, *_: None  # type: ignore[assignment]
    distance: ClassVar[str] = ""  # type: ignore[assignment]


class TestGenetic:
    @settings(max_examples=25, deadline=None)
    @given(st.integers(0, 10_000), st.booleans(), st.sampled_from([0.1, 1.0, 5.0]), st.integers(2, 7))
    def test_never_does_worse_than_one_variant_nor_than_no_attack(
        self, seed: int, pairs: bool, epsilon: float, members: int
    ) -> None:
        """Text by text: what is robust is right unchanged, on its wholly private variant, and on all that was tried."""
        space = small_space(WORDS)
        noise, examples = noise_of(space, epsilon), made(seed, pairs=pairs)
        trained = random_network(space, seed, pairs=pairs)
        variant = noise.variant(examples.texts, "variant")
        tried: list[tuple[np.ndarray, np.ndarray]] = []

        def asked(texts: np.ndarray, premises: np.ndarray | None) -> np.ndarray:
            found = trained.probabilities(texts, premises)
            tried.append((texts, found))
            return found

        found = attack(asked, examples, noise, Genetic(members, 3), seed, variant)
        assert not (found.robust & ~trained.right(examples)).any()
        assert not (found.robust & ~trained.right(examples.with_texts(variant))).any()
        assert ((found.generation == 0) == ~trained.right(examples)).all()
        turned = examples.with_texts(found.texts)
        fell = found.generation > 0
        assert not trained.right(turned)[fell].any(), "the text that is reported deceives the network"
        assert (found.texts[~fell] == examples.texts[~fell]).all()
        told = measure(trained, examples, noise, Genetic(members, 3), seed)
        assert told["adversarial"] <= min(told["private"], told["clean"])
        assert told["adversarial"] == pytest.approx(found.robust.mean())

    def test_a_word_that_deceives_is_found_and_the_search_climbs(self, space: Space) -> None:
        """Six of eight words have to change: populations get there, 48 random variants of one word never do."""
        originals = np.zeros((4, 8), np.int32)
        examples = Examples(originals, np.zeros(4, np.int64), ("a", "b"))

        def probabilities(texts: np.ndarray, premises: np.ndarray | None) -> np.ndarray:
            wrong = (texts == 1).sum(axis=1) / 11
            return np.stack([1 - wrong, wrong], axis=1)

        noise = Noise(Recording(space), 1.0, KEY)
        found = attack(probabilities, examples, noise, Genetic(12, 20), 0)
        assert not found.robust.any()
        assert (found.generation > 3).all()
        assert ((found.texts == 1).sum(axis=1) >= 6).all()
        assert attack(probabilities, examples, noise, Genetic(48, 1), 0).robust.all()
