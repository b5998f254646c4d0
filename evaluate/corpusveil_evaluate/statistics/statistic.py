"""A statistic: its names, its computation, and its presentation in reports and studies, in one value.

Each statistic is a file in one of the packages with statistics, all of whose modules are imported; there is no list to
edit. It makes a ``Statistic`` and registers it; page, JSON and CSV of ``evaluate release``, and cells and tables of
studies, then show it. Another package names the value that ``register`` returned in its metadata::

    [project.entry-points."corpusveil.statistics"]
    my-statistic = "my_package.my_statistic:STATISTIC"
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from corpusveil.errors import not_a_choice
from corpusveil.registry import Registry
from corpusveil.spaces import Space
from corpusveil_evaluate.statistics.encoders import Encoder

GROUPS = {
    "privacy": "What is unchanged, and what could be guessed",
    "attack": "What an attacker learns",
    "utility": "What a model still learns",
    "language": "What the text is like",
}
"""The sections of a report, in its order, with their titles."""
_WIDEST = 0.4
"""The width of an interval around no difference that is still shown: 20 points either way."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: a mean with the standard deviation over ``repeats``, where there are several.

    ``model`` names the attacker or classifier that computed it; a stronger one may find more. ``difference`` is the
    paired mean of private minus original over repeats, with its 95 % interval from ``low`` to ``high``. ``of_input``
    says that it was computed from the original texts, so a publishable report leaves it out.
    """

    group: str
    name: str
    value: float
    unit: str = "share"
    deviation: float | None = None
    repeats: int = 1
    model: str = ""
    note: str = ""
    floor: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
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


ALL_WORDS = "of all words of the originals, known to the space or not"
KNOWN_WORDS = "of known words"
CONTENT_WORDS = "of known content words"

T = TypeVar("T")


class Paired(Protocol):
    """Words of originals beside what they became (``pairs.Pairs``)."""

    @property
    def texts(self) -> int: ...
    @property
    def left_out(self) -> int: ...
    def share(self, among: Container[str] | None = None) -> tuple[float, int]:
        """Return the share of words that are not the same, and how many words these are."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Texts with their private versions, and further data to compare them; missing data are None.

    ``perplexity`` is that of a language model, which was not made from the documents ``held_out``. ``promised`` is the
    share of the space's words that should come back unchanged, and ``pairs`` the words beside what they became, by the
    release's own tokens. ``aligned`` says whether a released word stands at the place of an original one; of a release
    by passages none does, and ``random`` are public pieces drawn at random in the place of its texts.
    """

    originals: Sequence[str]
    privates: Sequence[str]
    space: Space | None = None
    encoder: Encoder | None = None
    perplexity: Callable[[Sequence[str]], float] | None = None
    held_out: slice = field(default_factory=lambda: slice(None))
    promised: float | None = None
    pairs: Paired | None = None
    aligned: bool = True
    random: Sequence[str] | None = None
    _computed: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def once(self, compute: Callable[[Evidence], T]) -> T:
        """Return the result of a function for this evidence; it is called once for all statistics."""
        if compute not in self._computed:
            self._computed[compute] = compute(self)
        return cast("T", self._computed[compute])


@dataclass(frozen=True, slots=True)
class Reading:
    """A value of a statistic, with what computed it (``model``) and a sentence of explanation (``note``)."""

    value: float
    model: str = ""
    note: str = ""
    of_input: bool = True
    """Whether it was computed from the original texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """One statistic: its names, its computation, its presentation.

    A statistic of texts has ``compute``; one of figures that a report has already has ``combine``, which gets these by
    name. One with neither is found by an attack or a classifier of its room together with others: then this value says
    how it is shown. ``compute`` and ``combine`` yield one reading for each model, nothing where there is none.
    """

    name: str
    """Row of the report, entry in its JSON and CSV."""
    group: str = ""
    """Section of the report, of ``GROUPS``; without one the report leaves it out."""
    key: str = ""
    """Name in records and tables of studies; without one studies leave it out."""
    unit: str = "share"
    of: str = ""
    """The words of which it is a share."""
    tile: bool = False
    """Whether the top of the page shows it."""
    floor: str = "by chance"
    """The baseline that reaches the floor, in words."""
    floor_of: Callable[[Evidence], float | None] | None = None
    """The floor itself, computed for reports only."""
    floor_from: str = ""
    """Another statistic whose value is the floor."""
    compute: Callable[[Evidence], Iterator[Reading]] | None = None
    combine: Callable[[Mapping[str, Figure]], Iterator[Reading]] | None = None

    def __post_init__(self) -> None:
        if self.group and self.group not in GROUPS:
            raise not_a_choice(f"{self.name}: group", self.group, GROUPS)

    def measure(self, reading: Reading, **figures: Any) -> Figure:
        """Return a reading as a figure of the report; ``figures`` are further fields of ``Figure``."""
        return Figure(
            self.group, self.name, reading.value, self.unit, model=reading.model, note=reading.note,
            of_input=reading.of_input, **figures,
        )  # fmt: skip

    def measures(self, evidence: Evidence) -> Iterator[Figure]:
        """Yield the figures of texts for the report."""
        floor = None
        for reading in self.compute(evidence) if self.compute is not None else ():
            if floor is None and self.floor_of is not None:
                floor = self.floor_of(evidence)
            yield self.measure(reading, floor=floor)

    def value(self, evidence: Evidence) -> Reading | None:
        """Return the first model's reading; None where there is none."""
        return None if self.compute is None else next(self.compute(evidence), None)


ROOMS = tuple(f"corpusveil_evaluate.{room}" for room in ("statistics", "utility", "attacks"))
STATISTICS: Registry[Statistic] = Registry("statistic", ROOMS)


def register(name: str, **fields: Any) -> Statistic:
    """Enter a statistic of these ``fields`` (``Statistic``) under its name, and return it."""
    return STATISTICS.enter(name, Statistic(name=name, **fields))


def statistics() -> list[Statistic]:
    """Return all statistics by name, which is their order in reports."""
    return [STATISTICS.find(name) for name in STATISTICS.names()]


def find(name: str) -> Statistic:
    """Return a statistic by its name; for an unknown name, a statistic with only this name."""
    return STATISTICS.find(name) if name in STATISTICS.names() else Statistic(name=name)


def of_texts(evidence: Evidence) -> Iterator[Figure]:
    """Yield every statistic of originals and private texts that a report shows."""
    for statistic in statistics():
        if statistic.group:
            yield from statistic.measures(evidence)


def of_measures(measures: Sequence[Figure]) -> Iterator[Figure]:
    """Yield the figures combined from those of the release itself, by the first of several models."""
    released: dict[str, Figure] = {}
    for measure in measures:
        released.setdefault(measure.name, measure)
    for statistic in statistics():
        for reading in statistic.combine(released) if statistic.combine is not None else ():
            yield statistic.measure(reading)
