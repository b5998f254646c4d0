"""A figure of an evaluation, as reports write it."""

from __future__ import annotations

from dataclasses import dataclass

_WIDEST = 0.4
"""The width of an interval around no difference that is still shown: 20 points either way."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: a mean with the standard deviation over ``repeats``, where there are several.

    ``model`` names the attacker or classifier that computed it; a stronger one may find more. ``mechanism`` was tried
    at ``epsilon``. ``difference`` is the paired mean of private minus original over repeats, with its 95 % interval
    from ``low`` to ``high``; ``risk`` is that of a figure in the group ``equal``. ``of_input`` says that it was
    computed from the original texts, so a publishable report leaves it out.
    """

    group: str
    name: str
    value: float
    unit: str = "share"
    epsilon: float | None = None
    mechanism: str = ""
    deviation: float | None = None
    repeats: int = 1
    model: str = ""
    note: str = ""
    floor: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    risk: float | None = None
    of_input: bool = False

    @property
    def less(self) -> str:
        """The difference from the original texts in points, with its interval; empty without one.

        An interval that is wide and contains 0 excludes neither a loss nor a gain that matters.
        """
        if self.difference is None or self.low is None or self.high is None:
            return ""
        if self.low <= 0 <= self.high and self.high - self.low > _WIDEST:
            return "too few documents or seeds"
        return f"{100 * self.difference:+.1f} ({100 * self.low:+.1f} to {100 * self.high:+.1f}) points"

    def __str__(self) -> str:
        value = _written(self.value, self.unit)
        return value if self.deviation is None else f"{value} ± {_written(self.deviation, self.unit)}"


def _written(value: float, unit: str) -> str:
    if unit == "share":
        return f"{value:.1%}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
