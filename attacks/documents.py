"""Documents: the exact law of a whole document against its guarantee, and samples of the kernel against this law.

The share of a token is computed here, in exact fractions, not by the attacked code.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import stats

import corpusveil as cv
from attacks.attempt import Attempt
from attacks.geometries import geometries, space_of
from attacks.matrices import ROUNDING, metric
from corpusveil.budget.accounting import Readings, as_float
from corpusveil.kernel.prepared import public_weights
from corpusveil.mechanisms import Mechanism, make_mechanism
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import EXTRA_LOG_RATIO
from corpusveil.storage.documents import Documents

LEVEL = 1e-10
UNKNOWN = -1
WRONG_EPSILON = "controls at 1.5 epsilon, rejected"
GEOMETRIES = (
    "circle", "dense cluster and one far word", "exact duplicates", "simplex and one far word",
    "Gaussian, 50 dimensions",
)  # fmt: skip
MECHANISMS = ("ring-geometric", "diffractor-geometric", "diffractor-exponential", "santext", "tem", "syntf")
Floats = npt.NDArray[np.float64]


def grid_share(budget: float, weight: int, whole: int) -> float:
    """Return the largest 2^(j/8) that is at most ``budget * weight / whole``, by comparing eighth powers exactly."""
    exact = Fraction(budget) * weight / whole
    j = math.floor(8 * math.log2(exact)) + 2
    while Fraction(2) ** j > exact**8:
        j -= 1
    return 2.0 ** (j / 8)


def shares(budget: cv.Budget, tokens: int) -> list[float]:
    """Return the epsilon of each of the replaced tokens of a document."""
    if budget.per == "token":
        return [budget.epsilon] * tokens
    return [grid_share(budget.epsilon, 1, tokens)] * tokens


BUDGETS = (
    cv.Budget(1.0),
    cv.Budget(0.3),
    cv.Budget(4.0, per="document"),
    cv.Budget(0.7, per="document"),
    cv.Budget(5.0, per="document", allocation="word-share"),
)


class _Laws:
    """The law of each word, and of a token replaced from public counts, by epsilon."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        public = public_weights(mechanism.space).astype(np.float64)
        self.public = public / public.sum()
        self.known: dict[float, Floats] = {}

    def of(self, word: int, epsilon: float) -> Floats:
        if word == UNKNOWN:
            return self.public
        if epsilon not in self.known:
            size = len(self.mechanism.space)
            self.known[epsilon] = np.array([self.mechanism.distribution(one, epsilon) for one in range(size)])
        return np.asarray(self.known[epsilon][word])


def attack(scale: float) -> Attempt:
    attempt = Attempt()
    random = np.random.default_rng(3)
    for geometry in GEOMETRIES:
        space = space_of(geometries()[geometry])
        for name in MECHANISMS:
            mechanism = make_mechanism(name, space)
            laws = _Laws(mechanism)
            where = f"{name} on {geometry}"
            for budget in BUDGETS:
                _cells(attempt, mechanism, laws, budget, random, int(200 * scale), where)
    three = np.array([[1.0], [2.0], [2.5]])
    for mechanism in [make_mechanism(name, space_of(three)) for name in MECHANISMS]:
        for budget in BUDGETS:
            _joint(attempt, mechanism, budget, int(60_000 * scale))
    attempt.check(attempt.counts[WRONG_EPSILON] > 0, f"no {WRONG_EPSILON}")
    return attempt


def _cells(
    attempt: Attempt, mechanism: Mechanism, laws: _Laws, budget: cv.Budget, random: np.random.Generator, count: int,
    where: str,
) -> None:  # fmt: skip
    """Compare pairs of documents of equal length with the guarantee for documents and with the ledger's readings."""
    space = mechanism.space
    release = cv.Release(mechanism, budget, cv.TextPolicy(), key=Key.generate())
    for _ in range(count):
        tokens = int(random.integers(1, 9))
        one, other = random.integers(0, len(space), (2, tokens))
        known_only = bool(random.random() < 0.5)
        if not known_only:
            one[random.random(tokens) < 0.3] = UNKNOWN
            other[random.random(tokens) < 0.3] = UNKNOWN
        given = shares(budget, tokens)
        gaps, spent, far = 0.0, 0.0, 0.0
        for a, b, epsilon in zip(one.tolist(), other.tolist(), given, strict=True):
            with np.errstate(divide="ignore"):
                gaps += float(np.max(np.log(laws.of(a, epsilon)) - np.log(laws.of(b, epsilon))))
            if known_only:
                distance = float(metric_of(mechanism, epsilon)[a, b])
                spent += epsilon * distance
                far = max(far, distance)
        attempt.tried("documents, exact")
        slack = tokens * (EXTRA_LOG_RATIO + ROUNDING)
        what = f"{where}, {budget}"
        if known_only:
            attempt.check(gaps <= spent + slack, f"{what}: {gaps:.6g} nats, epsilon d adds up to {spent:.6g}")
            if budget.per == "document":
                attempt.check(gaps <= budget.epsilon * far + slack, f"{what}: more than E times the largest distance")
        readings = _readings(release, [one, other])
        most = as_float(int(readings.nats.max()))
        attempt.check(gaps <= most + slack, f"{what}: {gaps:.6g} nats, the ledger says {most}")


_METRICS: dict[tuple[int, float], tuple[Mechanism, Floats]] = {}


def metric_of(mechanism: Mechanism, epsilon: float) -> Floats:
    key = (id(mechanism), epsilon if mechanism.name == "tem" else 0.0)
    if key not in _METRICS:
        _METRICS[key] = (mechanism, metric(mechanism, epsilon))
    return _METRICS[key][1]


def _text(space: cv.Space, words: npt.NDArray[np.int64]) -> str:
    return " ".join("zzzzzz" if word == UNKNOWN else space.word(word) for word in words.tolist())


def _readings(release: cv.Release, documents: list[npt.NDArray[np.int64]]) -> Readings:
    space = release.mechanism.space
    texts = pa.array([_text(space, words) for words in documents], pa.large_string())
    return release.kernel().account(Documents(texts, list(range(len(documents)))), bytes(32))[-1]


def _joint(attempt: Attempt, mechanism: Mechanism, budget: cv.Budget, count: int) -> None:
    """Release one document under many identities: its outputs follow the product of the tokens' laws, as one."""
    space = mechanism.space
    words = np.array([0, 2, UNKNOWN, 1])
    release = cv.Release(mechanism, budget, cv.TextPolicy(), key=Key.generate())
    out = cv.privatize([_text(space, words)] * count, release, ids=range(count))
    codes = {space.word(word): word for word in range(len(space))}
    found = np.array([[codes[word] for word in text.split()] for text in out])
    size = len(space)
    cells = np.bincount(np.ravel_multi_index(tuple(found.T), (size,) * words.size), minlength=size**words.size)
    laws = _Laws(mechanism)
    given = shares(budget, words.size)
    law = np.ones(1)
    for word, epsilon in zip(words.tolist(), given, strict=True):
        law = np.outer(law, laws.of(word, epsilon)).ravel()
    p = _p_value(cells, law)
    attempt.tried("documents, sampled", count)
    attempt.tried("joint laws of a document")
    attempt.check(p > LEVEL, f"{mechanism.name}, {budget}: documents do not follow the product of their tokens' laws")
    wrong = np.ones(1)
    for word, epsilon in zip(words.tolist(), given, strict=True):
        wrong = np.outer(wrong, laws.of(word, 1.5 * epsilon)).ravel()
    attempt.tried(WRONG_EPSILON, int(_p_value(cells, wrong) < LEVEL))


def _p_value(cells: npt.NDArray[np.int64], law: Floats) -> float:
    expected = law / law.sum() * cells.sum()
    often = expected >= 5
    if often.all():
        return float(stats.chisquare(cells, expected).pvalue)
    whole = np.append(cells[often], cells[~often].sum()), np.append(expected[often], expected[~often].sum())
    return float(stats.chisquare(*whole).pvalue)
