"""Passages: whole texts of some pieces against their guarantee, by a reader who knows store, ranking and law.

From text in to text out: texts without a known word, of other lengths, with equal vectors, stores with equal pieces and
pieces without a vector, K up to N, epsilon up to the largest. The budget of a text is attained, and never exceeded.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import corpusveil as cv
from attacks.attempt import Attempt
from attacks.documents import LEVEL, _p_value
from corpusveil.budget.accounting import as_float
from corpusveil.passages.law import Exchange
from corpusveil.passages.pieces import pieces_of
from corpusveil.passages.store import Store
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import TOTAL
from corpusveil.storage.documents import Documents
from corpusveil.text.tokens import string_buffers
from tests.engines.corpora import WORDS
from tests.passages.stores import PIECES, small_store

CONTROL = "controls at 1.2 epsilon, rejected"
ALIKE = [PIECES[0], " ".join(reversed(PIECES[0][:-1].lower().split())) + ".", "Zzzz zz.", "Qqqq qq.", *PIECES[20:24]]
"""Two pieces with one vector, and two without."""
ODD = [
    "",
    "zzzz",
    "Zzzz zz.",
    WORDS[0],
    PIECES[0],
    ALIKE[1],
    " ".join(WORDS[60:64] * 800),
    "\u4f60\u597d",
    *PIECES[30:36],
]
EPSILONS = (0.01, 1.0, 8.0, 14.0, 40.0, math.inf)


def attack(scale: float) -> Attempt:
    attempt = Attempt()
    stores = [Store.from_texts(pa.array(texts, pa.large_string()), small_store().space) for texts in
              (PIECES[:2], PIECES[:7], ALIKE, PIECES)]  # fmt: skip
    attained = 0
    for store, epsilon in itertools.product(stores, EPSILONS):
        for size in sorted({1, 2, len(store) // 2, len(store) - 1, len(store)} - {0}):
            attained += _exact(attempt, store, size, epsilon)
    attempt.check(attained > 0, "no two texts attain their epsilon: the audit is blind")
    attempt.tried("laws in which two texts attain epsilon", attained)
    _rankings(attempt, int(400 * scale))
    for size, per in itertools.product((1, 3), ("document", "sentence")):
        _sampled(attempt, stores[1], size, per, int(60_000 * scale))
    attempt.check(attempt.counts[CONTROL] > 0, f"no {CONTROL}")
    return attempt


def _law(store: Store, size: int, epsilon: float) -> tuple[cv.PassageExchange, float]:
    """Return the mechanism and the epsilon, the largest that it has for one beyond it."""
    largest = Exchange(len(store), size, TOTAL - 1).epsilon
    return cv.PassageExchange(store, size), min(epsilon, largest)


def _exact(attempt: Attempt, store: Store, size: int, epsilon: float) -> int:
    """Compare all pairs of odd texts, and texts of up to three of them, in integers; return 1 if a pair attains it."""
    mechanism, epsilon = _law(store, size, epsilon)
    exchange, where = mechanism.exchange(epsilon), f"N = {len(store)}, K = {size}, epsilon = {epsilon:.4g}"
    ranked, _ = store.search.several(store.encoder.encode(pa.array(ODD, pa.large_string())), size)
    weights = [exchange.weights(row.astype(np.int64)) for row in ranked]
    worst = Fraction(1)
    for one, other in itertools.permutations(weights, 2):
        worst = max(worst, *(Fraction(a, b) for a, b in zip(one, other, strict=True)))
        attempt.tried("pairs of texts, exact")
    attempt.check(worst <= 1 + exchange.odds, f"{where}: two texts differ by more than the law's bound")
    release = cv.PassageRelease(mechanism, epsilon, "sentence", key=Key.generate())
    for pieces in (1, 2, 3):  # the noise of pieces is independent: ratios multiply
        text = " ".join(PIECES[30 : 30 + pieces])
        readings = release.kernel().account(Documents(pa.array([text], pa.large_string()), [0]), bytes(32))[-1]
        spent = as_float(int(readings.nats[0]))
        attempt.tried("texts of several pieces, exact")
        attempt.check(pieces * _log(worst) <= spent, f"{where}: {pieces} pieces exceed the ledger's {spent}")
        attempt.check(spent <= pieces * exchange.epsilon + 1e-6, f"{where}: the ledger overstates {pieces} pieces")
    return int(_log(worst) > exchange.epsilon - 1e-6)


def _log(ratio: Fraction) -> float:
    return math.log1p(float(ratio - 1))


def _rankings(attempt: Attempt, count: int) -> None:
    """Rankings as an enemy would choose them: any orders, so that first pieces are the same, other or shifted."""
    random = np.random.default_rng(5)
    for _ in range(count):
        pieces = int(random.integers(2, 12))
        exchange = Exchange.at(float(random.choice([0.1, 3.0, 12.0])), pieces, int(random.integers(1, pieces + 1)))
        one, other = (exchange.weights(random.permutation(pieces)[: exchange.neighbors]) for _ in range(2))
        worst = max(Fraction(a, b) for a, b in zip(one, other, strict=True))
        attempt.tried("adversarial rankings, exact")
        attempt.check(worst <= 1 + exchange.odds, f"{exchange}: two rankings differ by more than epsilon")


def _sampled(attempt: Attempt, store: Store, size: int, per: str, count: int) -> None:
    """Release one of two texts under many identities: the joint law of its pieces, and a reader who tells the two."""
    mechanism, epsilon = _law(store, size, 2.0)
    texts = [f"{PIECES[0]} {PIECES[3]}", f"{PIECES[6]} {PIECES[6]}"]
    release = cv.PassageRelease(
        mechanism, epsilon, per, key=Key.generate(), accept_overlap=True  # type: ignore[arg-type]
    )  # fmt: skip
    kernel, where = release.kernel(), f"K = {size}, per {per}"
    found = []
    for text in texts:
        alike = pa.array([text] * count, pa.large_string())
        out = kernel.apply(Documents(alike, list(range(count))))[0].to_pylist()
        cells = np.bincount(_codes(store, out), minlength=len(store) ** (1 + (per == "sentence")))
        laws = [np.ones(1), np.ones(1)]
        given = string_buffers(pa.array([text], pa.large_string()))
        points = store.encoder.of_pieces(pieces_of(store.tokenizer, *given, kernel.per))
        for point, (at, factor) in itertools.product(points, enumerate((1.0, 1.2))):
            laws[at] = np.outer(laws[at], mechanism.distribution(point, factor * epsilon)).ravel()
        attempt.tried("texts, sampled", count)
        attempt.check(
            _p_value(cells, laws[0]) > LEVEL, f"{where}: texts do not follow the product of their pieces' laws"
        )
        attempt.tried(CONTROL, int(_p_value(cells, laws[1]) < LEVEL))
        found.append((cells, laws[0]))
    (first, p), (second, q) = found
    right = (first[p >= q].sum() + second[p < q].sum()) / (2 * count)
    nats = epsilon * len(points)
    attempt.tried("readers who guess which of two texts was released")
    bound = 1 / (1 + math.exp(-nats)) + 6 * math.sqrt(0.125 / count)
    attempt.check(right <= bound, f"{where}: told apart in {right:.4f}, {nats:g} nats allow {bound:.4f}")


def _codes(store: Store, out: list[str | None]) -> npt.NDArray[np.int64]:
    """Return one number for the pieces of each released text."""
    ids = {text[:-1]: number for number, text in enumerate(store.texts.to_pylist())}
    codes = []
    for text in out:
        code = 0
        for piece in (text or "")[:-1].split(". "):
            code = code * len(store) + ids[piece]
        codes.append(code)
    return np.array(codes, np.int64)
