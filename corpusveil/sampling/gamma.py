"""Noise in R^k with density proportional to ``exp(-epsilon |z|)``, from keyed draws.

``z = R v``: v uniform on the sphere and, independently of it, R of the Gamma law with shape k and scale 1/epsilon
(``docs/mathematics.md``). No special function is needed. With ``m = ceil(k/2)`` pairs of uniforms (u, t),

    E = -ln u,   sqrt(2 E) cos(2 pi t),   sqrt(2 E) sin(2 pi t)

are two independent normals (Box and Muller 1958) and E is half the sum of their squares. The first k of the 2m normals
are a Gaussian vector g, whose direction ``v = g/|g|`` depends on neither its length nor a remaining normal; so it does
not depend on ``E_1 + ... + E_m``, which is Gamma(m). With k - m further exponentials that sum is Gamma(k).

A uniform is ``(lane >> 12 + 1/2) / 2^52``: exact in float64, never 0 or 1. Every number of a token is computed from its
own lanes, by the same loop, whatever the batch contains. It is float64 arithmetic: the last bit of a logarithm can
differ between math libraries, and the law holds up to float64 sampling error (Mironov 2012), so only results computed
from a noisy vector may be released, never the vector.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corpusveil.arrays import Float64, UInt64
from corpusveil.compiled import compiled, njit
from corpusveil.sampling.draws import NOISE, Draws

_DROPPED = np.uint64(12)
_STEP = 2.0**-52


@compiled
def _uniform(lane: Any) -> float:
    # The half keeps it from 0, whose logarithm is infinite.
    return (np.float64(lane >> _DROPPED) + 0.5) * _STEP


@njit()
def _fill(lanes: Any, scales: Any, out: Any) -> None:
    tokens, k = out.shape
    m = (k + 1) // 2
    for t in range(tokens):
        total = 0.0
        squares = 0.0
        for j in range(m):
            exponential = -math.log(_uniform(lanes[t, 2 * j]))
            angle = 2 * math.pi * _uniform(lanes[t, 2 * j + 1])
            radius = math.sqrt(2 * exponential)
            total += exponential
            first = radius * math.cos(angle)
            out[t, 2 * j] = first
            squares += first * first
            if 2 * j + 1 < k:
                second = radius * math.sin(angle)
                out[t, 2 * j + 1] = second
                squares += second * second
        for j in range(2 * m, k + m):
            total -= math.log(_uniform(lanes[t, j]))
        factor = total * scales[t] / math.sqrt(squares)
        for j in range(k):
            out[t, j] *= factor


def gamma_noise(draws: Draws, dimensions: int, epsilon: Float64) -> Float64:
    """Return one noise vector per token; ``epsilon`` float64 [T] above 0 -> float64 [T, dimensions]."""
    m = (dimensions + 1) // 2
    # m pairs give the direction, and their exponentials a part of the length; the other lanes give its rest.
    lanes = draws.lanes(NOISE, m + (dimensions - m + 1) // 2)
    out = np.empty((len(draws), dimensions), dtype=np.float64)
    _fill(lanes, 1 / epsilon, out)
    return out


def uniforms(lanes: UInt64) -> Float64:
    """Return 64-bit draws as numbers between 0 and 1, never these; uint64 [T] -> float64 [T]."""
    return ((lanes >> _DROPPED).astype(np.float64) + 0.5) * _STEP
