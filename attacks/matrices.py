"""Exact audits: the whole matrix of every mechanism with a law, on every geometry, against its guarantee.

Distances are computed here, from vectors and lists, not by the attacked code.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attacks.attempt import Attempt
from attacks.geometries import as_run, geometries, space_of
from corpusveil.errors import NoClosedForm, UserError
from corpusveil.mechanisms import Mechanism, find, make_mechanism, names
from corpusveil.sampling.weights import EXTRA_LOG_RATIO
from corpusveil.spaces import Space

EPSILONS = (1e-6, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 1000.0)
ROUNDING = 1e-9
SAMPLED = {"vickrey-cmp", "vickrey-mahalanobis"}
"""Mechanisms without a law in any dimension: tests audit samples of them."""
Floats = npt.NDArray[np.float64]


def euclidean(space: Space) -> Floats:
    points = space.vectors.astype(np.longdouble)
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2)).astype(np.float64)


def steps(space: Space, *, closed: bool) -> Floats:
    """Return the most steps between two words over all lists, float64 [V, V]."""
    size = len(space)
    out = np.zeros((size, size))
    for order in space.lists:
        place = np.empty(size)
        place[order] = np.arange(size)
        gap = np.abs(place[:, None] - place[None])
        out = np.maximum(out, np.minimum(gap, size - gap) if closed else gap)
    return out


def metric(mechanism: Mechanism, epsilon: float) -> Floats:
    """Return the distances of the guarantee: computed here for plain metrics, the mechanism's for groups."""
    space, name = mechanism.space, mechanism.name
    if name == "ring-geometric":
        return steps(space, closed=True)
    if name.startswith("diffractor"):
        return steps(space, closed=False)
    if name in ("cmp", "vickrey-cmp", "santext", "tem", "tight-exponential"):
        return euclidean(space)
    if name == "syntf":
        return 1.0 - np.eye(len(space))
    return np.array([mechanism.distances(word, epsilon) for word in range(len(space))])


def excess(law: Floats, apart: Floats, epsilon: float) -> tuple[float, float]:
    """Return the largest log-ratio less epsilon d, and the largest log-ratio."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(law)
        most, over = -np.inf, -np.inf
        for word in range(len(law)):
            gaps = (logs[word] - logs).max(axis=1)
            most = max(most, float(gaps.max()))
            over = max(over, float((gaps - epsilon * apart[word]).max()))
    return over, most


def attack(scale: float) -> Attempt:
    """Audit every matrix; controls at 2.2 times epsilon must be refuted somewhere."""
    attempt, refuted = Attempt(), set()
    epsilons = EPSILONS if scale >= 1 else (0.1, 2.0)
    promising = [name for name in names() if find(name).private]
    for geometry, vectors in geometries().items():
        for lists in (1, 3):
            space = space_of(vectors, lists, seed=len(geometry))
            for name in promising:
                for epsilon in epsilons:
                    try:
                        mechanism = make_mechanism(name, space)
                        law = _law(mechanism, epsilon)
                    except (NoClosedForm, UserError):
                        continue  # noise in several dimensions is sampled; a flat space is refused
                    guarantee = mechanism.guarantee(epsilon)
                    over, most = excess(law, metric(mechanism, epsilon), epsilon)
                    where = f"{name} at epsilon {epsilon:g} on {geometry}, {lists} lists"
                    attempt.tried("exact matrices")
                    attempt.tried("pairs of words", len(space) * (len(space) - 1))
                    attempt.check(bool(law.min() > 0), f"{where}: an output is impossible")
                    attempt.check(over <= EXTRA_LOG_RATIO + ROUNDING, f"{where}: exceeds epsilon d by {over:.3g}")
                    bound = guarantee.plain_ldp
                    attempt.check(
                        bound is not None and most <= bound + EXTRA_LOG_RATIO + ROUNDING,
                        f"{where}: {most:.6g} nats between two words, {bound} promised",
                    )
                    apart = metric(mechanism, epsilon)
                    if excess(_law(mechanism, 2.2 * epsilon), apart, epsilon)[0] > EXTRA_LOG_RATIO + ROUNDING:
                        attempt.tried("controls at 2.2 epsilon, refuted")
                        refuted.add(name)
    audited = {name for name in set(promising) - SAMPLED if not as_run(name)}
    attempt.check(audited <= refuted, f"no control was refuted for {', '.join(sorted(audited - refuted))}")
    return attempt


def _law(mechanism: Mechanism, epsilon: float) -> Floats:
    return np.array([mechanism.distribution(word, epsilon) for word in range(len(mechanism.space))])
