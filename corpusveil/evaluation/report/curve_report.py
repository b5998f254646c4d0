"""What mechanisms keep and disclose over a grid of epsilons, as one value: ``cv.risk_curve``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass

from corpusveil.display import Card, Shown, Table
from corpusveil.errors import ConflictError, UnsetError
from corpusveil.evaluation.attacks.risk_curve import EPSILONS, AtRisk, Point, at_equal_risk, curve
from corpusveil.evaluation.report.curve_page import render_curve
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.risk import prior_of
from corpusveil.storage import files
from corpusveil.waiting import waiting

ON_GRID = "*"
UNCHANGED, RECOVERED = "known words unchanged", "known words recovered"


@dataclass(frozen=True, slots=True, repr=False)
class RiskCurve(Shown):
    """The points of a curve, the results at equal risk, and a note that describes the inputs. All of it is public."""

    points: tuple[Point, ...]
    at_equal_risk: tuple[AtRisk, ...]
    note: str

    def card(self) -> Card:
        """Return both tables and the note."""
        by_epsilon = [
            [
                one.mechanism, f"{one.epsilon:.4g}{ON_GRID if one.on_grid else ''}", _share(one.chosen_for),
                f"{one.retention:.3f}", f"{one.distinct:.1f}", _figure(one.distance),
                f"{_figure(one.risk)}{'' if one.exact else ' (sampled)'}", _figure(one.plain_ldp),
            ]
            for one in self.points
        ]  # fmt: skip
        by_risk = [
            [
                f"{one.risk:g}", one.mechanism, f"{one.epsilon:.3g}", f"{one.retention:.3f}", _figure(one.distance),
                _figure(one.plain_ldp),
            ]
            for one in self.at_equal_risk
        ]  # fmt: skip
        columns = (
            "mechanism",
            "epsilon",
            "chosen for risk",
            UNCHANGED,
            "distinct of 100",
            "distance",
            RECOVERED,
            "plain LDP",
        )
        at_risk = (RECOVERED, "mechanism", "epsilon", UNCHANGED, "distance", "plain LDP")
        tables = [Table(columns, by_epsilon), Table(at_risk, by_risk, "at equal risk:")]
        fields = [
            ("inputs", self.note),
            ("grid", f"{ON_GRID} epsilon is a value of 2^(j/8), from which a risk chooses"),
        ]
        return Card("Risk and utility by epsilon", fields, tables)

    def save(self, folder: str) -> str:
        """Write ``curve.json`` and a page, ``curve.html``, into a folder; return the address of the page."""
        folder = files.as_text(folder)
        told = {
            "note": self.note,
            "points": [one.as_dict() for one in self.points],
            "at_equal_risk": [dataclasses.asdict(one) for one in self.at_equal_risk],
        }
        files.write_bytes(files.join(folder, "curve.json"), (json.dumps(told, indent=1) + "\n").encode())
        page = files.join(folder, "curve.html")
        files.write_bytes(page, render_curve(self.points, self.at_equal_risk, self.note).encode())
        return page


@waiting("computing the curve")
def risk_curve(
    mechanisms: Mechanism | Sequence[Mechanism],
    epsilons: Sequence[float] = EPSILONS,
    *,
    inputs: int | None = None,
    risks: Sequence[float] = (),
) -> RiskCurve:
    """Return what mechanisms on one space keep, and what the best attacker recovers, at each epsilon and at equal risk.

    ``inputs`` is how many of the most frequent words may be inputs. The default is all, and the time grows with their
    number times the vocabulary for a mechanism on vectors. Each of the ``risks`` adds the epsilon that it chooses
    (``cv.epsilon_for_risk``), over all words. Raises UserError without a mechanism, and for a
    mechanism that is defined at none of the epsilons.
    """
    several = [mechanisms] if isinstance(mechanisms, Mechanism) else list(mechanisms)
    if not several:
        raise UnsetError("mechanisms: none is given; give cv.RingGeometric(space), or several.")
    if risks and inputs is not None:
        raise ConflictError("risks: these are for all words; leave inputs out.")
    points = curve(several, sorted(epsilons), inputs, risks)
    prior = prior_of(several[0].space, inputs)
    among = f"all {prior.words.size:,} words" if inputs is None else f"the {prior.words.size:,} most frequent words"
    note = (
        f"Inputs are {among} ({prior.covered:.1%} of public counts); guessing without looking is right in "
        f"{prior.guess:.1%}."
    )
    return RiskCurve(tuple(points), tuple(at_equal_risk(points)), note)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
