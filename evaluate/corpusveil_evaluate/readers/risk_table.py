"""The table of what a reader recovers, measured for a mechanism and put into a copy of its space."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import orjson

from corpusveil.errors import DataError
from corpusveil.mechanisms import Mechanism
from corpusveil.spaces import Space
from corpusveil.spaces.risk_table import Recovered, RiskTable
from corpusveil.text.policy import TextPolicy
from corpusveil_evaluate.readers.ngrams.context_risk import GRID, precise, reader_of_texts
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from corpusveil_evaluate.readers.ngrams.word_risk import TRIGRAMS

EPSILONS = GRID[::4]
DIGITS = 6


def measured_space(mechanism: Mechanism, model: LanguageModel, texts: Sequence[str], policy: TextPolicy) -> Space:
    """Return the mechanism's space with what a reader with the ``model`` recovers of public texts.

    What the space knows of other mechanisms, and of other treatments of stop words, stays. The space is not saved.
    """
    space, reader, points = mechanism.space, reader_of_texts(mechanism, model, texts, policy), []
    for epsilon in EPSILONS:
        content = precise(reader.read(epsilon)).content
        # What is written is right as often as words stay: a sample may say a little less.
        stays = math.ceil(10**DIGITS * mechanism.retention(epsilon)) / 10**DIGITS
        points.append((epsilon, min(1.0, max(round(content.share, DIGITS), stays)), round(content.error, DIGITS)))
    made = Recovered(
        mechanism=mechanism.name,
        parameters=mechanism.parameters(),
        stop_words=policy.stop_words,
        reader=TRIGRAMS,
        text=f"public text that was given (sha256 {hashlib.sha256(orjson.dumps(texts)).hexdigest()[:12]})",
        points=points,
    )
    known = RiskTable.read(space.risk) if space.risk else RiskTable(recovered=[])
    if known is None:
        raise DataError("The table of risk in this space is damaged; copy the space again from an undamaged copy.")
    again = known.about(mechanism.name, mechanism.parameters(), policy.stop_words)
    return space.with_risk(RiskTable(recovered=[made, *(each for each in known.recovered if each not in again)]))
