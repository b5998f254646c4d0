"""Vickrey on the noise of ``cmp`` (Xu, Aggarwal, Feyisetan, Teissier 2021), over the whole vocabulary.

    x = phi(w) + N,   u_1 and u_2 the words nearest to x, at r_1 <= r_2,
    P[u_1 | x] = (1 - t) r_2 / (t r_1 + (1 - t) r_2),   P[u_2 | x] = t r_1 / (t r_1 + (1 - t) r_2)

N as in ``cmp``, whose guarantee holds: u_1, u_2 and the choice look at x and public vectors only. With t = 0 it is
``cmp``. As published, the input itself is not a candidate: ``vickrey-cmp-excluding`` does this, and guarantees nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from corpusveil.mechanisms.base import check_fraction
from corpusveil.mechanisms.cmp import Cmp
from corpusveil.mechanisms.registry import register
from corpusveil.mechanisms.two_nearest import SUMMARY, Excluding, TwoNearest


@register
@dataclass(frozen=True, slots=True)
class VickreyCmp(TwoNearest, Cmp):
    """The nearest word, or sometimes the second-nearest: more often for a larger ``t``."""

    t: float = 0.5

    name: ClassVar[str] = "vickrey-cmp"
    paper: ClassVar[str] = "Vickrey (Xu, Aggarwal, Feyisetan, Teissier 2021)"
    summary: ClassVar[str] = f"cmp noise; {SUMMARY}"

    def __post_init__(self) -> None:
        Cmp.__post_init__(self)
        check_fraction("t", self.t, ends=True)


@register
@dataclass(frozen=True, slots=True)
class VickreyCmpExcluding(Excluding, VickreyCmp):
    """As published: the input word is not among the candidates."""

    name: ClassVar[str] = "vickrey-cmp-excluding"
    summary: ClassVar[str] = f"cmp noise; {SUMMARY}, never the input, as published"
    private: ClassVar[bool] = False
