"""A statistic: its names, its computation, and its presentation in reports and studies, in one value.

Each statistic is a file in one of the packages that ``registry`` imports. It makes a ``Statistic`` and registers it;
page, JSON and CSV of ``evaluate release``, and cells and tables of studies, then show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from corpusveil.evaluation.statistics.encoders import Encoder
from corpusveil.evaluation.statistics.figure import Figure
from corpusveil.evaluation.statistics.word_lists import WordList
from corpusveil.spaces import Space

LAST = 1000
"""The default place of a statistic: after all others."""
ALL_WORDS = "of all words of the originals, known to the space or not"
KNOWN_WORDS = "of known words"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Texts with their private versions, and further data to compare them; missing data are None.

    ``perplexity`` is that of a language model, which was not made from the documents ``held_out``. ``causal`` are
    folders of causal language models; ``promised`` is the share of the space's words that should come back unchanged.
    """

    originals: Sequence[str]
    privates: Sequence[str]
    space: Space | None = None
    encoder: Encoder | None = None
    words: WordList | None = None
    perplexity: Callable[[Sequence[str]], float] | None = None
    held_out: slice = field(default_factory=lambda: slice(None))
    causal: tuple[str, ...] = ()
    promised: float | None = None
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
    """Section of the report (``report/findings.py``); without one the report leaves it out."""
    key: str = ""
    """Name in records and tables of studies; without one studies leave it out."""
    unit: str = "share"
    place: int = LAST
    """Reports show statistics in this order."""
    of: str = ""
    """The words of which it is a share."""
    tile: bool = False
    """Whether the top of the page shows it."""
    floor: str = "by chance"
    """The baseline that reaches the floor, in words."""
    floor_of: Callable[[Evidence], float] | None = None
    """The floor itself, computed for reports only."""
    floor_from: str = ""
    """Another statistic whose value is the floor."""
    swept: bool = False
    """Whether it is measured and charted over further epsilons."""
    compared: int = 0
    """Its rank among the statistics that mechanisms are compared by at equal risk; 0 for none."""
    compute: Callable[[Evidence], Iterator[Reading]] | None = None
    combine: Callable[[Mapping[str, Figure]], Iterator[Reading]] | None = None

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
