"""How robust a trained network is: accuracy on original texts, on private ones, under attack, and certified."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corpusveil.errors import DataError
from corpusveil_studies.robustness.encoded_texts import Examples
from corpusveil_studies.robustness.genetic import Genetic, attack
from corpusveil_studies.robustness.interval_bounds import WordBoxes, certified
from corpusveil_studies.robustness.networks import Trained
from corpusveil_studies.robustness.training_regimes import Noise


@dataclass(frozen=True, slots=True)
class Robustness:
    """Shares of ``texts`` test texts, from 0 to 1.

    Attributes:
        clean: right on the original text.
        private: right on one private variant of it, every word replaced.
        adversarial: right on the original, and on everything that the genetic attacker tried.
        certified: right under every allowed substitution; None where that was not asked.
        floor: what the most frequent label of the test texts reaches.
        changed: words that differ between a text and what deceived the network, the mean over texts that the attack
            turned; nan where it turned none.
    """

    clean: float
    private: float
    adversarial: float
    certified: float | None
    floor: float
    changed: float
    texts: int


def measure(
    trained: Trained,
    examples: Examples,
    noise: Noise,
    settings: Genetic,
    seed: int,
    *,
    boxes: WordBoxes | None = None,
    seeded: bool = True,
) -> Robustness:
    """Measure a network on examples under one mechanism at one epsilon.

    With ``seeded`` the private variant that ``private`` is measured on is in the attacker's first population, so that
    ``adversarial`` is never above it; without, the attack is that of the paper. ``boxes`` are what is certified.
    """
    if not len(examples):
        raise DataError("There are no texts to attack; give at least one.")
    variant = noise.variant(examples.texts, "variant")
    right = trained.right(examples)
    private = trained.right(examples.with_texts(variant))
    attacked = attack(trained.probabilities, examples, noise, settings, seed, variant if seeded else None)
    # Scores of one text differ by rounding between batches, so every verdict on a tried text counts.
    robust = attacked.robust & right & (private if seeded else True)
    turned = attacked.generation > 0
    differ = ((attacked.texts != examples.texts) & (examples.texts >= 0)).sum(axis=1)
    return Robustness(
        float(right.mean()),
        float(private.mean()),
        float(robust.mean()),
        None if boxes is None else float(certified(trained, boxes, examples).mean()),
        float(np.bincount(examples.labels).max() / len(examples)),
        float(differ[turned].mean()) if turned.any() else float("nan"),
        len(examples),
    )
