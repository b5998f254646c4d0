"""What an evaluation found: figures by group, texts side by side, and the same as JSON and CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from dataclasses import dataclass, field
from typing import Any

GROUPS = {
    "privacy": "What came back, and what could be guessed",
    "attack": "What an attacker learns",
    "utility": "What a model still learns",
    "language": "What the text is like",
    "curve": "What each mechanism promises and gives away",
}
EQUAL = "equal"
"""The group of figures at equal risk, interpolated between epsilons that were tried."""


ALL_WORDS = "of all words of the originals, known to the space or not"
KNOWN_WORDS = "of known words"
OF = {
    "words unchanged": ALL_WORDS,
    "words changed (PP)": ALL_WORDS,
    "words recovered, whole guesses": ALL_WORDS,
    "retention of a word (N_w)": KNOWN_WORDS,
    "words guessed, Bayes-optimal": KNOWN_WORDS,
    "words guessed by the released word": KNOWN_WORDS,
    "words guessed one by one": KNOWN_WORDS,
    "words guessed from context": KNOWN_WORDS,
}
"""What words a share is of."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure: a mean with the standard deviation over ``repeats``, where there are several.

    ``model`` names what computed it: an attacker or classifier of its strength, no stronger one; ``mechanism`` what
    was tried at ``epsilon``. ``difference`` is the mean of private less original over repeats, in pairs, with its 95 %
    interval from ``low`` to ``high``; ``risk`` the one at which a figure of the group ``equal`` stands. ``of_input``
    says that the original texts were counted for it, so that a publishable report leaves it out.
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
    def of(self) -> str:
        """What words the figure is a share of; nothing where it is of no words."""
        return OF.get(self.name, "")

    @property
    def less(self) -> str:
        """The difference to the original texts, with its interval; nothing where there is none."""
        if self.difference is None or self.low is None or self.high is None:
            return ""
        return f"{100 * self.difference:+.1f} ({100 * self.low:+.1f} to {100 * self.high:+.1f})"

    def __str__(self) -> str:
        told = _written(self.value, self.unit)
        return told if self.deviation is None else f"{told} ± {_written(self.deviation, self.unit)}"


@dataclass(frozen=True, slots=True)
class Example:
    """A text and what became of it: (what was done, text) each."""

    original: str
    versions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """All that a report shows. ``examples`` hold original text, ``counted`` are notes with numbers of the input."""

    title: str
    documents: int | None
    looked_at: int | None
    guarantee: tuple[str, ...]
    disclosed: tuple[str, ...]
    measures: tuple[Measure, ...]
    examples: tuple[Example, ...] = ()
    notes: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    seconds: float | None = None
    configuration: dict[str, Any] = field(default_factory=dict)
    private: bool = True

    def publishable(self) -> Findings:
        """Return the same without texts and without what was counted in the input."""
        measures = tuple(one for one in self.measures if not one.of_input)
        return dataclasses.replace(
            self,
            examples=(),
            measures=measures,
            counted=(),
            documents=None,
            looked_at=None,
            seconds=None,
            private=False,
        )

    def at(self, name: str, epsilon: float | None = None, mechanism: str | None = None) -> Measure:
        """Return a figure by its name: of several mechanisms and models the first one's. Raises KeyError for none."""
        for one in self.measures:
            if (one.name, one.epsilon) == (name, epsilon) and mechanism in (None, one.mechanism):
                return one
        raise KeyError(name)

    def as_json(self) -> bytes:
        """Return everything but the texts."""
        told = {name: value for name, value in dataclasses.asdict(self).items() if name != "examples"}
        return (json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()

    def as_csv(self) -> bytes:
        """Return the figures, one a line."""
        names = [one.name for one in dataclasses.fields(Measure)]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([getattr(one, name) for name in names] for one in self.measures)
        return out.getvalue().encode()


def _written(value: float, unit: str) -> str:
    if unit == "share":
        return f"{value:.1%}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
