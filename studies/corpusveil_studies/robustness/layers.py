"""Layers over points and over boxes: a network is written once, and returns scores or bounds of scores.

A box is a centre and a radius, arrays of one shape. Interval bound propagation (Gowal et al. 2018; Jia et al. 2019):
``W c + b`` and ``|W| r`` through a linear layer, both ends through a monotone activation, and a sum with weights of at
least 0 on both. Every layer's box contains the layer's output for any point of the box before it.

Arrays are NumPy's for inference and ``autograd``'s for training (``array`` module).
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from corpusveil.errors import PackageError


class Layers(Protocol):
    """The layers of networks. A value is an array, or a box of two arrays of one shape."""

    def linear(self, x: Any, weight: Any, bias: Any) -> Any:
        """Return ``x W + b`` over the last axis."""

    def relu(self, x: Any) -> Any:
        """Return the larger of x and 0."""

    def scaled(self, x: Any, factor: Any) -> Any:
        """Return x times constants of at least 0: masks, dropout."""

    def windows(self, x: Any) -> Any:
        """Return each position beside the one before and the one after; [B, L, c] -> [B, L, 3 c], 0 beyond the ends."""

    def summed(self, x: Any) -> Any:
        """Return the sum over positions; [B, L, c] -> [B, c]."""

    def joined(self, x: Any, y: Any) -> Any:
        """Return two values side by side on the last axis."""


@dataclass(frozen=True, slots=True)
class Points:
    """Layers over arrays."""

    array: Any

    def linear(self, x: Any, weight: Any, bias: Any) -> Any:
        return _product(x, weight) + bias

    def relu(self, x: Any) -> Any:
        return x * (x > 0)

    def scaled(self, x: Any, factor: Any) -> Any:
        return x * factor

    def windows(self, x: Any) -> Any:
        shift = _shift if self.array is np else _traced_shift()
        return self.array.concatenate([shift(x, 1), x, shift(x, -1)], axis=2)

    def summed(self, x: Any) -> Any:
        return self.array.sum(x, axis=1)

    def joined(self, x: Any, y: Any) -> Any:
        return self.array.concatenate([x, y], axis=-1)


@dataclass(frozen=True, slots=True)
class Boxes:
    """The same layers over boxes (centre, radius)."""

    array: Any

    def linear(self, x: Any, weight: Any, bias: Any) -> Any:
        centre, radius = x
        return _product(centre, weight) + bias, _product(radius, self.array.abs(weight))

    def relu(self, x: Any) -> Any:
        centre, radius = x
        low, high = (Points(self.array).relu(end) for end in (centre - radius, centre + radius))
        return 0.5 * (low + high), 0.5 * (high - low)

    def scaled(self, x: Any, factor: Any) -> Any:
        return x[0] * factor, x[1] * factor

    def windows(self, x: Any) -> Any:
        return tuple(Points(self.array).windows(part) for part in x)

    def summed(self, x: Any) -> Any:
        return tuple(Points(self.array).summed(part) for part in x)

    def joined(self, x: Any, y: Any) -> Any:
        return tuple(Points(self.array).joined(one, other) for one, other in zip(x, y, strict=True))


def _product(x: Any, weight: Any) -> Any:
    """Return the product over the last axis as a single matrix product, several times as fast as a stack."""
    if len(x.shape) == 2:
        return x @ weight
    return (x.reshape((-1, x.shape[-1])) @ weight).reshape((*x.shape[:-1], weight.shape[1]))


def _shift(x: Any, by: int) -> Any:
    """Return positions moved by one, to the later (1) or the earlier (-1), 0 where nothing moved in."""
    out = np.zeros_like(x)
    if by == 1:
        out[:, 1:] = x[:, :-1]
    else:
        out[:, :-1] = x[:, 1:]
    return out


@functools.cache
def _traced_shift() -> Any:
    """Return the shift with its derivative, the shift back: that of a slice would add number by number."""
    extend = autograd("extend")
    shift = extend.primitive(_shift)
    extend.defvjp(shift, lambda _, __, by: lambda g: shift(g, -by), None)
    return shift


def autograd(module: str = "") -> Any:
    """Return a module of autograd. Raises UserError where it is not installed."""
    try:
        return importlib.import_module(f"autograd.{module}".rstrip("."))
    except ImportError:
        raise PackageError("Networks are trained with autograd: pip install 'corpusveil[evaluate]'.") from None
