"""How far mechanisms are from the best possible: linear programs over all laws of a small vocabulary.

A law P over n words that maximizes the expected similarity of a word and its replacement, by public frequency, where
the best guess from one replacement is right for at most a share of the words, or where P is private for epsilon times a
distance. No law with that risk, or that guarantee, can keep more. Solved by HiGHS.
"""

import functools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linprog

import corpusveil as cv
from benchmarks import contextual, inputs
from benchmarks.report import Skipped, Table
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.risk import prior_of, word_risk
from corpusveil.spaces import Space, Vocabulary
from corpusveil.spaces.public_counts import read_counts
from corpusveil.spaces.vectors import Vectors

WORDS, AMONG, SEEDS = 32, 2000, 3
"""Words of a vocabulary, the number of most frequent words to draw from, and the number of vocabularies."""
RISKS, EPSILONS = (0.3, 0.5, 0.7), (0.5, 1.0, 2.0)
STEPS = 24
FAR = 12.0
"""Bounds of more nats are left out, since their factors are beyond the solver, which cannot lower the optimum."""
Floats = npt.NDArray[np.float64]


def run() -> list[Table]:
    if inputs.data() is None:
        raise Skipped("the shared data are not on this machine.")
    spaces = [{balance: vocabulary(seed, balance) for balance in (0.0, 1.0)} for seed in range(SEEDS)]
    risks = Table(f"Similarity at equal single-word risk, {WORDS} words, mean of {SEEDS}", ("law", *RISKS))
    laws: dict[str, Callable[[dict[float, Space], float], float]] = {
        "best possible": lambda of, risk: best_at_risk(of[0.0], risk),
        "ring-geometric, B = 0": lambda of, risk: at_risk(of, "ring-geometric", 0.0, risk),
        "ring-geometric, B = 1": lambda of, risk: at_risk(of, "ring-geometric", 1.0, risk),
        "tight-exponential, B = 0": lambda of, risk: at_risk(of, "tight-exponential", 0.0, risk),
        "santext, B = 0": lambda of, risk: at_risk(of, "santext", 0.0, risk),
    }
    for name, found in laws.items():
        risks.rows.append((name, *(float(np.mean([found(of, risk) for of in spaces])) for risk in RISKS)))
        print(risks.rows[-1], flush=True)
    private = Table("Similarity at equal epsilon and distance", ("law", *(f"ε {epsilon:g}" for epsilon in EPSILONS)))
    for name, balance, unit in (("ring-geometric", 0.0, 1.0), ("ring-geometric", 1.0, 1.0), ("santext", 0.0, 8.0),
                                ("tight-exponential", 0.0, 8.0)):  # fmt: skip
        rows: dict[str, list[float]] = {"": [], ", best possible": []}
        for epsilon in EPSILONS:
            own, best = [], []
            for of in spaces:
                mechanism = cv.mechanism(name, of[balance])
                own.append(similarity_of(mechanism, unit * epsilon, of[0.0]))
                best.append(best_for_distance(mechanism, unit * epsilon, of[0.0]))
            rows[""].append(float(np.mean(own)))
            rows[", best possible"].append(float(np.mean(best)))
        label = f"{name}, B = {balance:g}{'' if unit == 1 else f', {unit:g} ε'}"
        private.rows += [(label + kind, *values) for kind, values in rows.items()]
        print(private.rows[-2:], flush=True)
    risks.notes.append(f"{WORDS} words drawn among the {AMONG:,} most frequent; cosine of MiniLM's vectors, centered.")
    return [risks, private]


@functools.cache
def vocabulary(seed: int, balance: float) -> Space:
    """Return a small space, the same words for every balance."""
    vectors = cv.read_vectors(inputs.vectors())
    counts = read_counts(contextual.counted(), Vocabulary.from_words(vectors.words))
    frequent = [row for row in np.argsort(-counts, kind="stable").tolist() if vectors.words[row].isalpha()][:AMONG]
    rows = np.sort(np.random.default_rng(seed).permutation(frequent)[:WORDS])
    few = Vectors([vectors.words[row] for row in rows], vectors.vectors[rows], vectors.source)
    return cv.build_space(few, counts=counts[rows], balance=balance, order="improved")


def cosines(space: Space) -> Floats:
    """Return the similarity of all pairs in MiniLM's own vectors, float64 [n, n]."""
    vectors = space.vectors.astype(np.float64)
    vectors = vectors - vectors.mean(axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors @ vectors.T


def similarity_of(mechanism: Mechanism, epsilon: float, plain: Space) -> float:
    law = mechanism.distributions(np.arange(WORDS), epsilon)
    return float(prior_of(plain).shares @ (law * cosines(plain)).sum(axis=1))


def at_risk(of: dict[float, Space], name: str, balance: float, risk: float) -> float:
    """Return a mechanism's similarity at a risk."""
    mechanism = cv.mechanism(name, of[balance])
    low, high = math.log(2.0**-8), math.log(2.0**8)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if word_risk(mechanism, math.exp(middle)).share < risk else (low, middle)
    return similarity_of(mechanism, math.exp(low), of[0.0])


def best_at_risk(space: Space, risk: float) -> float:
    """Return the largest similarity of any law of this risk: variables P and m, ``pi_w P[w, u] <= m_u``."""
    n, shares = WORDS, prior_of(space).shares
    each = sparse.diags(np.repeat(shares, n))
    below = sparse.hstack([each, -sparse.kron(np.ones((n, 1)), sparse.eye(n))])
    total = sparse.csr_matrix(np.concatenate([np.zeros(n * n), np.ones(n)]))
    limits = np.concatenate([np.zeros(n * n), [risk]])
    return _solve(space, sparse.vstack([below, total]), limits, n)


def best_for_distance(mechanism: Mechanism, epsilon: float, space: Space) -> float:
    """Return the largest similarity of any law that is private for epsilon times the mechanism's distance."""
    n = WORDS
    distances = [mechanism.distances(word, epsilon) for word in range(n)]
    assert all(one is not None for one in distances)
    exponents = epsilon * np.array(distances)
    first, second = np.nonzero(~np.eye(n, dtype=bool) & (exponents < FAR))
    factors = np.exp(exponents[first, second])
    pairs = first.size
    one = sparse.csr_matrix((np.ones(pairs), (np.arange(pairs), first)), (pairs, n))
    other = sparse.csr_matrix((factors, (np.arange(pairs), second)), (pairs, n))
    return _solve(space, sparse.kron(one - other, sparse.eye(n)), np.zeros(pairs * n), 0)


def _solve(space: Space, below: sparse.spmatrix, limits: Floats, more: int) -> float:
    n = WORDS
    gain = (prior_of(space).shares[:, None] * cosines(space)).ravel()
    rows = sparse.hstack([sparse.kron(sparse.eye(n), np.ones((1, n))), sparse.csr_matrix((n, more))])
    found = linprog(-np.concatenate([gain, np.zeros(more)]), below, limits, rows, np.ones(n), (0, None), "highs")
    return -float(found.fun)


__all__ = ["run"]
