"""Samples: draws follow the stated law and depend on the key, and noise on vectors keeps its guarantee."""

from __future__ import annotations

import contextlib

import numpy as np
import numpy.typing as npt
from scipy import stats

from attacks.attempt import Attempt
from attacks.geometries import as_run, geometries, space_of
from attacks.matrices import euclidean
from corpusveil.errors import NoClosedForm, UserError
from corpusveil.mechanisms import Mechanism, make, names
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.sampling.keys import Key
from tests.contracts.statistics import fit_p_value, independence_p_value
from tests.mechanisms.rays import angles, draw, masses

LEVEL = 1e-10
EPSILON = 1.0


def attack(scale: float) -> Attempt:
    """Draw with a fresh key; each fit has a control at another epsilon that must be rejected somewhere."""
    attempt, powered = Attempt(), set()
    key = DrawKey.derive(Key.generate(), "00" * 32)
    count = int(400_000 * scale)
    fitted: set[str] = set()
    for geometry, vectors in geometries().items():
        space = space_of(vectors)
        for name in names():
            try:
                mechanism = make(name, space)
                law = mechanism.distribution(0, EPSILON)
            except (NoClosedForm, UserError):
                continue
            out = _draw(mechanism, EPSILON, key, count, geometry)
            attempt.tried("draws", 2 * count)
            attempt.tried("fits of samples to a law")
            where = f"{name} on {geometry}"
            attempt.check(fit_p_value(out, law) > LEVEL, f"{where}: samples do not follow the law")
            half = count // 2
            p = independence_p_value(out[:half], out[half : 2 * half], len(space))
            attempt.check(p > LEVEL, f"{where}: two places of a document are not independent")
            fitted.add(name)
            for factor in (1.5, 0.75):  # a law as it was run may have no noise at one of them
                with contextlib.suppress(UserError):
                    if fit_p_value(_draw(mechanism, factor * EPSILON, key, count, geometry), law) < LEVEL:
                        powered.add(name)
                        break
    attempt.tried("controls at 1.5 or 0.75 epsilon, rejected", len(powered))
    fitted = {name for name in fitted if not as_run(name)}
    attempt.check(fitted <= powered, f"no control was rejected for {', '.join(sorted(fitted - powered))}")
    _noise(attempt, key, scale)
    return attempt


def _noise(attempt: Attempt, key: DrawKey, scale: float) -> None:
    """Compare noise on vectors with its exact law along rays in the plane, and audit near pairs by samples."""
    for geometry in ("grid", "circle"):
        space = space_of(geometries()[geometry])
        points = space.vectors.astype(np.float64)
        law = masses(points, 3, EPSILON, angles(20_000)).mean(axis=0)
        count = int(200_000 * scale)
        out = _draw(make("cmp", space), EPSILON, key, count, geometry, word=3)
        attempt.tried("draws", count)
        attempt.tried("fits of samples to a law")
        attempt.check(fit_p_value(out, law / law.sum()) > LEVEL, f"cmp on {geometry}: samples do not follow the law")
        apart = euclidean(space)
        for name in ("cmp", "mahalanobis", "vickrey-cmp", "vickrey-mahalanobis"):
            mechanism = make(name, space)
            for other in (4, 9):
                told = mechanism.distances(3, EPSILON)
                distance = float(apart[3, other] if told is None else told[other])
                found = lower_bound(mechanism, 3, other, EPSILON, distance, count // 2)
                attempt.tried("draws", 2 * count)
                attempt.tried("pairs audited by samples")
                attempt.check(found <= EPSILON, f"{name} on {geometry}: realized at least {found:.4g} epsilon")
    excluding = make("vickrey-cmp-excluding", space_of(geometries()["grid"]))
    found = lower_bound(excluding, 3, 4, EPSILON, 1.0, 20_000)
    attempt.tried("controls: a false theorem, refuted")
    attempt.check(found > EPSILON, "the audit by samples no longer refutes Vickrey without the input")


def _draw(
    mechanism: Mechanism, epsilon: float, key: DrawKey, count: int, document: str, word: int = 0
) -> npt.NDArray[np.int32]:
    draws = Draws.of_tokens(key, count, document=f"{mechanism.name} {document} {epsilon}")
    return mechanism.privatize(np.full(count, word, np.int32), epsilon, draws)


def lower_bound(
    mechanism: Mechanism, w: int, other: int, epsilon: float, distance: float, count: int = 100_000
) -> float:
    """Return what the realized epsilon is at least, refuted at 1e-9: Clopper-Pearson on fresh samples (§15)."""
    space = mechanism.space

    def counts(name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        drawn = [draw(mechanism, word, epsilon, count, name) for word in (w, other)]
        one, two = (np.bincount(ids, minlength=len(space)) for ids in drawn)
        return one, two

    first, second = counts("choose")
    order = np.argsort(-(first + 1) / (second + 1), kind="stable")

    def bound(k: int, l: int) -> float:
        least = stats.beta.ppf(1e-9, k, count - k + 1) if k else 0.0
        most = stats.beta.ppf(1 - 1e-9, l + 1, count - l) if l < count else 1.0
        return float(np.log(max(least, 1e-300) / most))

    tried = [order[:size] for size in range(1, len(space))]
    event = max(tried, key=lambda ids: bound(int(first[ids].sum()), int(second[ids].sum())))
    first, second = counts("test")
    return bound(int(first[event].sum()), int(second[event].sum())) / distance
