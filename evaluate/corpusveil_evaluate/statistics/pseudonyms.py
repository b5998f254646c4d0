"""What equal pseudonyms give away: how many have a count of their own, by which a reader may recognize a name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from corpusveil.errors import DataError
from corpusveil_evaluate.statistics.statistic import Evidence, Reading, register

LABEL = re.compile(r"\b[A-Z][A-Z0-9_]*_[0-9A-F]{12}\b")
"""A pseudonym that is no entry of a list (``kernel/span_texts.py``)."""


def recognizable(privates: Sequence[str]) -> tuple[float, int]:
    """Return the share of pseudonyms whose count in the texts no other has (0 to 1), and the number of pseudonyms.

    A reader who knows how often each name occurs, from the originals or a copy, recognizes exactly these names by their
    counts; a reader who knows it roughly, fewer. Raises UserError for texts without pseudonyms.
    """
    counts = Counter(label for text in privates for label in LABEL.findall(text))
    if not counts:
        raise DataError(
            "The texts have no pseudonyms such as NAME_7F3A1C02D4E6; give texts of a release with pseudonyms."
        )
    how_many = Counter(counts.values())
    return sum(how_many[count] == 1 for count in counts.values()) / len(counts), len(counts)


def _compute(evidence: Evidence) -> Iterator[Reading]:
    if any(LABEL.search(text) for text in evidence.privates):
        share, number = recognizable(evidence.privates)
        note = f"of {number:,}; a reader who knows how often each name occurs recognizes these"
        yield Reading(share, note=note, of_input=False)


register("pseudonyms with a count that no other has", group="privacy", compute=_compute)
