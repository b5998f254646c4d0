"""Balances, orders and mechanisms at equal risk of single words: epsilon, nats, unchanged words, similarity.

Risk is exact: how often the best guess from one replacement is right, by public word frequencies, over all words of the
space. ``tight-exponential`` uses no lists, so orders do not affect it.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

import corpusveil as cv
from benchmarks import contextual, inputs
from benchmarks.report import Skipped, Table
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.risk import prior_of
from corpusveil.spaces import Space

RISK, WITHIN, STEPS = 0.5, 0.005, 9
BALANCES = (0.0, 0.16, 0.5, 1.0, 1.3)
ORDERS = ("greedy", "improved")
WORDS, FEWER_WORDS = 12_000, 2_000
"""Mechanisms on lists; mechanisms on all distances, whose cost grows with the square."""
LOOKED_AT = 300
EPSILONS, EXPONENTS = (0.01, 4.0), (3.0, 14.0)


def run() -> list[Table]:
    if inputs.data() is None:
        raise Skipped("the shared data are not on this machine.")
    columns = ("balance", "order", "ε", "nats", "risk", "unchanged", "own vectors", "independent", "of types")
    lists = Table(f"ring-geometric at single-word risk {RISK:g}, {WORDS:,} words", columns)
    for balance in BALANCES:
        for order in ORDERS:
            space = contextual.space(balance, order, WORDS)
            mechanism = cv.mechanism("ring-geometric", space)
            epsilon, risk, unchanged = at_risk(mechanism, EPSILONS)
            nats = mechanism.guarantee(epsilon).plain_ldp
            lists.rows.append((balance, order, epsilon, nats, risk, unchanged, *similarity(mechanism, epsilon)))
            print(lists.rows[-1], flush=True)
    tight = Table(f"tight-exponential at single-word risk {RISK:g}, {FEWER_WORDS:,} words", columns)
    for balance in BALANCES:
        law = cv.mechanism("tight-exponential", contextual.space(balance, "greedy", FEWER_WORDS))
        epsilon, risk, unchanged = at_risk(law, EXPONENTS)
        nats = law.guarantee(epsilon).plain_ldp
        tight.rows.append((balance, "any", epsilon, nats, risk, unchanged, *similarity(law, epsilon)))
        print(tight.rows[-1], flush=True)
    for table in (lists, tight):
        table.notes += [
            f"Similarity: expected cosine of a word and its replacement, of {LOOKED_AT} words drawn by frequency.",
            "Own vectors: MiniLM's; independent: GloVe's of 25 dimensions; of types: these, of words drawn alike.",
        ]
    return [lists, tight]


def at_risk(mechanism: Mechanism, between: tuple[float, float]) -> tuple[float, float, float]:
    """Return the epsilon of the risk, the risk there, and the share of words unchanged."""
    prior = prior_of(mechanism.space)
    low, high = (math.log(one) for one in between)
    for _ in range(STEPS):
        middle = (low + high) / 2
        found = cv.word_risk(mechanism, math.exp(middle), prior, estimate=False)
        if abs(found.share - RISK) <= WITHIN:
            break
        low, high = (middle, high) if found.share < RISK else (low, middle)
    return math.exp(middle), found.share, found.unchanged


def similarity(mechanism: Mechanism, epsilon: float) -> tuple[float, float, float]:
    """Return the expected cosine of a word and its replacement: own vectors, independent ones, these over types."""
    space, prior = mechanism.space, prior_of(mechanism.space)
    own, other, there = _vectors(space)
    rng = np.random.default_rng(0)
    by_frequency = rng.choice(prior.words, LOOKED_AT, p=prior.shares)
    alike = rng.choice(np.flatnonzero(there), LOOKED_AT)

    def mean(words: npt.NDArray[np.int64], cosines: Callable[[int], float]) -> float:
        return float(np.nanmean([cosines(int(word)) for word in words]))

    def in_own(word: int) -> float:
        return float(mechanism.distribution(word, epsilon) @ (own @ own[word]))

    def in_other(word: int) -> float:
        if not there[word]:
            return math.nan
        law = mechanism.distribution(word, epsilon)[there]
        return float(law @ (other[there] @ other[word]) / law.sum())

    return mean(by_frequency, in_own), mean(by_frequency, in_other), mean(alike, in_other)


def _vectors(space: Space) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Return a space's words in MiniLM's vectors and in GloVe's, of length 1, and which of them GloVe has."""
    shared = inputs.data()
    assert shared is not None
    made = []
    for path in (inputs.vectors(), str(shared / "embeddings" / "glove-twitter-25d-12k.txt.gz")):
        vectors = cv.read_vectors(path)
        row = {word: at for at, word in enumerate(vectors.words)}
        at = np.array([row.get(word, -1) for word in space.vocabulary.words])
        centered = vectors.vectors - vectors.vectors.mean(axis=0)
        some = np.where(at[:, None] >= 0, centered[at], 0.0)
        made.append((some / np.maximum(np.linalg.norm(some, axis=1, keepdims=True), 1e-12)).astype(np.float32))
        there = at >= 0
    return made[0], made[1], there
