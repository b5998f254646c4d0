"""Choosing by risk: the largest epsilon at which a reader recovered at most a share of the words of public text.

What a reader recovers is data: a table that the space ships, and that its digest covers (``spaces.risk_table``).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from corpusveil.display import rounded_up
from corpusveil.errors import ArtifactError, DataError, SettingError
from corpusveil.mechanisms import Mechanism
from corpusveil.sampling.grid import grid_value
from corpusveil.spaces.risk_table import Recovered, RiskTable
from corpusveil.storage.records import Line, Record
from corpusveil.text.policy import TextPolicy

GRID = [grid_value(index) for index in range(-8 * 8, 8 * 10 + 1)]
"""The epsilons that a risk can choose: 2^(j/8), from 2^-8 to 2^10."""
_DIGEST = re.compile(r" \(sha256 [0-9a-f]+\)")
DIGITS = 9
"""Decimals of a share: interpolation on two machines can differ only beyond these."""


class RiskField(Record):
    """The risk that chose epsilon, as a manifest has it: share, standard error, reader and text of each measurement."""

    risk: float
    recovered: list[tuple[float, float, Line, Line]]


@dataclass(frozen=True, slots=True)
class EpsilonAtRisk:
    """The epsilon of a word that a ``risk`` chose, and what readers ``recovered`` at it, by text; the first decided.

    ``plain_ldp`` is in nats; None without a guarantee.
    """

    risk: float
    epsilon: float
    plain_ldp: float | None
    recovered: tuple[tuple[float, float, str, str], ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields of a manifest; all of them are public."""
        return {"risk": self.risk, "recovered": [list(each) for each in self.recovered]}

    def sentence(self) -> str:
        """Say it in one sentence, which names a reader once and no digest of a text."""
        nats = "no guarantee" if self.plain_ldp is None else f"at most {rounded_up(self.plain_ldp)} nats a word"
        readers = []
        for reader, recovered in itertools.groupby(self.recovered, key=lambda each: each[2]):
            shares = [f"{share:.1%} (± {100 * error:.1f}) of {text}" for share, error, _, text in recovered]
            of_texts = _DIGEST.sub("", ", ".join(shares)).replace(" of ", " of the content words of ", 1)
            readers.append(f"a reader with {reader} recovers about {of_texts}")
        return f"Risk {self.risk:g}: at epsilon {rounded_up(self.epsilon)} ({nats}), {'; '.join(readers)}"


def risk_of(manifest: Mapping[str, Any]) -> EpsilonAtRisk | None:
    """Return what a manifest says about the risk that chose its epsilon; None without a risk."""
    risk = manifest.get("risk")
    if risk is None:
        return None
    epsilon, nats = float(manifest["configuration"]["budget"]["epsilon"]), manifest["guarantee"]["plain_ldp"]
    return EpsilonAtRisk(risk["risk"], epsilon, nats, tuple(map(tuple, risk["recovered"])))


def epsilon_at(mechanism: Mechanism, risk: float, policy: TextPolicy) -> EpsilonAtRisk:
    """Return the largest epsilon at which a reader recovered at most ``risk`` of the content words of a text.

    By the table of the mechanism's space: of several texts, the first. Epsilons are 2^(j/8). Between those of the table
    a share is interpolated by the logarithm of epsilon, and a larger epsilon never has a smaller share. Raises
    UserError without a table for the mechanism, for a table that the law contradicts, and for a risk below all shares.
    """
    texts = _table_of(mechanism, policy)
    lowest, highest = texts[0].points[0], texts[0].points[-1]
    grid = [epsilon for epsilon in GRID if lowest[0] <= epsilon <= highest[0]]
    chosen = [epsilon for epsilon in grid if _at(texts[0], epsilon)[0] <= risk]
    if not chosen:
        raise DataError(
            f"risk = {risk:g}: at epsilon {lowest[0]:g}, the smallest that was measured, a reader recovers "
            f"{lowest[1]:.1%} of the content words of {texts[0].text}; give a larger risk, or an epsilon."
        )
    recovered = tuple((*_at(each, chosen[-1]), each.reader, each.text) for each in texts)
    return EpsilonAtRisk(risk, chosen[-1], mechanism.guarantee(chosen[-1]).plain_ldp, recovered)


def _table_of(mechanism: Mechanism, policy: TextPolicy) -> list[Recovered]:
    space, name = mechanism.space, mechanism.name
    table = RiskTable.read(space.risk) if space.risk else RiskTable(recovered=[])
    where = space.url or "this space"
    if table is None:
        raise ArtifactError(f"{where}: its table of risk is damaged; copy the space again from an undamaged copy.")
    texts = table.about(name, mechanism.parameters(), policy.stop_words)
    if not texts:
        raise SettingError(
            f"risk: the space {where} has no table of what readers recover of {name} with these parameters and stop "
            f"words ({policy.stop_words}); give an epsilon, or make a space with one by 'corpusveil evaluate risk'."
        )
    for each in texts:
        for epsilon, share, _ in each.points:
            if share < (stays := round(mechanism.retention(epsilon), DIGITS)):
                raise ArtifactError(
                    f"{where}: its table of risk says that a reader recovers {share:.2%} of {each.text} at epsilon "
                    f"{epsilon:g}, and {stays:.2%} of words stay unchanged there; measure it again."
                )
    return texts


def _at(measured: Recovered, epsilon: float) -> tuple[float, float]:
    """Return share and standard error at an epsilon within the table."""
    epsilons, shares, errors = np.array(measured.points).T
    log, logs = np.log2(epsilon), np.log2(epsilons)
    share = np.interp(log, logs, np.maximum.accumulate(shares))
    return round(float(share), DIGITS), round(float(np.interp(log, logs, errors)), DIGITS)
