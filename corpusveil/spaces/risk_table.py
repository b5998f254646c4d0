"""The table of risk that a space ships: what readers recovered of public texts that mechanisms had released.

Whoever attacks measures it (``corpusveil evaluate risk``). The digest of the space covers it.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated, Any

from pydantic import Field

from corpusveil.storage.records import Line, Record

MOST_BYTES = 1 << 20
"""The largest file of a table."""
_Share = Annotated[float, Field(ge=0, le=1)]
_Epsilon = Annotated[float, Field(gt=0, lt=math.inf)]


class Recovered(Record):
    """What a ``reader`` recovered of a ``text`` that a mechanism had released, with this treatment of stop words.

    The ``points`` are epsilons, which rise, each with the share of content words and its standard error.
    """

    mechanism: Line
    parameters: dict[str, Any]
    stop_words: Line
    reader: Line
    text: Line
    points: list[tuple[_Epsilon, _Share, _Share]] = Field(min_length=1)


class RiskTable(Record):
    """The content of ``risk.json``; of several texts, the first decides what a risk chooses."""

    recovered: list[Recovered]

    @classmethod
    def read(cls, data: bytes) -> RiskTable | None:
        """Return the table of a file; None for a file of anything else."""
        table = cls.parse(data) if len(data) <= MOST_BYTES else None
        if table is not None and all(a < b for each in table.recovered for (a, *_), (b, *_) in pairwise(each.points)):
            return table
        return None

    def about(self, mechanism: str, parameters: dict[str, Any], stop_words: str) -> list[Recovered]:
        """Return what was recovered of a mechanism with these parameters, by text."""
        asked = (mechanism, parameters, stop_words)
        return [each for each in self.recovered if (each.mechanism, each.parameters, each.stop_words) == asked]
