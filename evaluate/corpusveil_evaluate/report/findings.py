"""The findings of an evaluation: figures by group, texts side by side, and both as JSON and CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from dataclasses import dataclass, field
from typing import Any

from corpusveil.display import Card, Shown, Table
from corpusveil_evaluate.statistics.statistic import Figure, find

FIRST: tuple[tuple[str, ...], ...] = (
    ("texts picked from a list",),
    (
        "content words guessed from context",
        "content words guessed, Bayes-optimal",
        "words guessed from context",
        "words guessed, Bayes-optimal",
        "words guessed by the released word",
        "content words that come back",
    ),
    ("content words guessed with half of the originals",),
    ("attribute, best attack",),
    ("accuracy, private to private", "similarity of meaning", "shared words (Jaccard)"),
)
"""The figures to read first, each with others in its place where it was not measured: readers, and what is useful."""


@dataclass(frozen=True, slots=True)
class Example:
    """A text and its versions, each as (what was done, text)."""

    original: str
    versions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Findings(Shown):
    """The content of a report. ``examples`` hold original text; ``counted`` are notes with numbers of the input.

    >>> cv.evaluate_release(texts, cv.privatize(texts, release, ids=["r-1", "r-2"]), release).publishable().examples
    ()
    """

    title: str
    documents: int | None
    looked_at: int | None
    guarantee: tuple[str, ...]
    disclosed: tuple[str, ...]
    measures: tuple[Figure, ...]
    examples: tuple[Example, ...] = ()
    notes: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    seconds: float | None = None
    configuration: dict[str, Any] = field(default_factory=dict)
    private: bool = True

    def card(self) -> Card:
        """Return the figures, without any text."""
        rows = [
            [
                figure.name,
                str(figure),
                figure.less,
                figure.model,
            ]
            for figure in self.measures
        ]
        columns = ("figure", "value", "difference from original", "model")
        title = f"{self.title} ({'private: figures of original text' if self.private else 'publishable'})"
        return Card(title, [("promise", self.guarantee)] if self.guarantee else [], [Table(columns, rows)])

    def publishable(self) -> Findings:
        """Return the findings without texts, and without figures counted in the input."""
        measures = tuple(measure for measure in self.measures if not measure.of_input)
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

    def first(self) -> tuple[Figure, ...]:
        """Return the figures to read first: what is guessed of words and of an attribute, and what is still useful."""
        own = {figure.name: figure for figure in reversed(self.measures)}
        every = (next((own[name] for name in names if name in own), None) for names in FIRST)
        return tuple(figure for figure in every if figure is not None)

    def lines(self) -> list[str]:
        """Return all figures as lines of text, those to read first on top."""
        first = self.first()
        others = [_line(figure) for figure in self.measures if figure not in first]
        return [*map(_line, first), *(["", "All other figures:"] if first else []), *others]

    def at(self, name: str) -> Figure:
        """Return a figure by name, that of the first model. Raises KeyError if there is none."""
        for measure in self.measures:
            if measure.name == name:
                return measure
        raise KeyError(name)

    def as_json(self) -> bytes:
        """Return everything but the texts."""
        fields = {name: value for name, value in dataclasses.asdict(self).items() if name != "examples"}
        return (json.dumps(fields, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()

    def as_csv(self) -> bytes:
        """Return the figures, one per line."""
        names = [column.name for column in dataclasses.fields(Figure)]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([getattr(measure, name) for name in names] for measure in self.measures)
        return out.getvalue().encode()


def _line(figure: Figure) -> str:
    of = find(figure.name).of
    where = [
        f" ({of})" if of else "",
        f" [{figure.model}]" if figure.model else "",
    ]
    floor = "" if figure.floor is None else f" (floor {figure.floor:.1%})"
    less = f"; difference from original {figure.less}" if figure.less else ""
    return f"{figure.name}{''.join(where)}: {figure}{floor}{less}"
