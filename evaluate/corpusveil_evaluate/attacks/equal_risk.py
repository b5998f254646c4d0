"""Choosing epsilon: what a mechanism keeps, what an attacker recovers, and the guarantee, over a grid of epsilons.

With the public prior pi over words and the exact law P, the best possible guess of a word from its replacement is right
with probability ``sum_u max_w pi(w) P[w, u]``: Bayes-optimal reconstruction, the risk; of all words, and of content
words for an attacker who cares for these alone. Curves over the latter compare mechanisms at equal risk; at equal
epsilon they differ in what epsilon means. ``--risk`` chooses epsilon by it (``mechanisms/risk.py``). Every word may be
an input, unless ``inputs`` restricts inputs to the most frequent words (outputs are always all words); the attacker
then knows this restriction.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.display import Card, Shown, Table
from corpusveil.errors import ConflictError, NoClosedForm, UnsetError, UserError
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.distances import euclidean
from corpusveil.mechanisms.risk import Prior, WordRisk, prior_of, word_risk
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.sampling.grid import is_on_grid
from corpusveil.sampling.keys import Key
from corpusveil.storage import files
from corpusveil.transforms.release.pages import Block, render_blocks
from corpusveil.transforms.release.risk import epsilon_for_risk
from corpusveil.waiting import reached, waiting
from corpusveil_evaluate.line_charts import legend, line_chart

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 35.0, 50.0)
LOOKED_AT = 100
"""The number of words for distances and distinct outputs, drawn by the prior."""
RUNS = 100
"""Replacements of a word among which distinct outputs (S_w) are counted, as in the studies."""
RISKS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75)


@dataclass(frozen=True, slots=True)
class Point:
    """One mechanism at one epsilon.

    ``retention``: the share of words that stay unchanged (N_w), by the prior; ``distinct``: expected different outputs
    of 100 (S_w), ``distance``: expected Euclidean distance of vectors of output and input, both over 100 words;
    ``risk``: Bayes-optimal reconstruction of all words, ``content_risk`` of content words, None if not estimated, or if
    no input is a content word; ``plain_ldp``: nats, None without a guarantee.
    ``exact`` is False if figures come from samples. ``on_grid``: epsilon is a value of the public grid 2^(j/8), from
    which a risk chooses; ``chosen_for``: the risk that chose it, if any.
    """

    mechanism: str
    parameters: dict[str, Any]
    epsilon: float
    retention: float
    distinct: float
    distance: float | None
    risk: float | None
    content_risk: float | None
    plain_ldp: float | None
    exact: bool
    on_grid: bool = False
    chosen_for: float | None = None


def curve(
    mechanisms: Iterable[Mechanism], epsilons: Sequence[float] = EPSILONS, inputs: int | None = None,
    risks: Sequence[float] = (),
) -> list[Point]:  # fmt: skip
    """Return a point for each mechanism and each epsilon at which it is defined.

    Each of the ``risks`` adds the epsilon that it chooses. Raises UserError if a mechanism has no point.
    """
    points: list[Point] = []
    for mechanism in mechanisms:
        prior, defined = prior_of(mechanism.space, inputs), 0
        last: UserError | None = None
        chosen = {epsilon_for_risk(mechanism, risk).epsilon: risk for risk in sorted(risks, reverse=True)}
        for epsilon in sorted({*epsilons, *chosen}):
            reached(f"{mechanism.name} at epsilon {epsilon:.4g}")
            try:
                points.append(dataclasses.replace(point(mechanism, epsilon, prior), chosen_for=chosen.get(epsilon)))
                defined += 1
            except UserError as error:
                last = error
        if last is not None and not defined:
            raise last
    return points


def point(mechanism: Mechanism, epsilon: float, prior: Prior, *, estimate: bool = True) -> Point:
    """Return one point of a curve.

    Without an exact law, its risk is estimated from samples, unless this is switched off.
    """
    guarantee = mechanism.guarantee(epsilon)
    looked_at = np.random.default_rng(0).choice(prior.words, LOOKED_AT, p=prior.shares)
    risk: WordRisk | None = None
    with contextlib.suppress(NoClosedForm):
        risk = word_risk(mechanism, epsilon, prior, estimate=estimate)
    exact = risk is not None and risk.exact
    retention = risk.unchanged if risk is not None and exact else mechanism.retention(epsilon)
    distinct, distance = (_exact if exact else _sampled)(mechanism, epsilon, looked_at)
    content = None if risk is None else risk.content.share or None
    return Point(
        mechanism.name, mechanism.parameters(), epsilon, retention, distinct, distance,
        None if risk is None else risk.share, content, guarantee.plain_ldp, exact, is_on_grid(epsilon),
    )  # fmt: skip


def _exact(mechanism: Mechanism, epsilon: float, looked_at: npt.NDArray[np.int64]) -> tuple[float, float | None]:
    """Return the number of distinct outputs and their distance, by the exact law."""
    distinct, distances = [], []
    for word in looked_at.tolist():
        law = mechanism.distribution(word, epsilon)
        distinct.append(float(-np.expm1(RUNS * np.log1p(-np.minimum(law, 1 - 2.0**-53))).sum()))
        distances.append(float(law @ euclidean(mechanism.space, word)))
    return float(np.mean(distinct)), _mean(distances)


def _sampled(mechanism: Mechanism, epsilon: float, looked_at: npt.NDArray[np.int64]) -> tuple[float, float | None]:
    """Return an estimate of what ``_exact`` returns."""
    key = DrawKey.derive(Key.for_tests(), "00" * 32)  # public: nothing is released of it
    ids = np.repeat(looked_at, RUNS).astype(np.int32)
    out = mechanism.privatize(ids, epsilon, Draws.of_tokens(key, ids.size)).reshape(-1, RUNS)
    distinct = float(np.mean([np.unique(row).size for row in out]))
    distances = []
    for word, row in zip(looked_at.tolist(), out, strict=True):
        distances.append(float(euclidean(mechanism.space, word)[row].mean()))
    return distinct, _mean(distances)


def _mean(values: list[float]) -> float | None:
    mean = float(np.mean(values))
    return mean if math.isfinite(mean) else None


@dataclass(frozen=True, slots=True)
class AtRisk:
    """A mechanism at a given risk of content words: its epsilon, and what it keeps, between two points of its curve.

    ``all_words`` is the risk of all words there.
    """

    risk: float
    mechanism: str
    epsilon: float
    retention: float
    distance: float | None
    plain_ldp: float | None
    all_words: float | None


def at_equal_risk(points: Sequence[Point], risks: Sequence[float] = RISKS) -> list[AtRisk]:
    """Return for each risk what every mechanism keeps there, by interpolation in ln epsilon."""
    crossings = []
    names = list(dict.fromkeys((point.mechanism, str(point.parameters)) for point in points))
    for risk in risks:
        for name in names:
            known = [
                (point.content_risk, point)
                for point in points
                if (point.mechanism, str(point.parameters)) == name and point.content_risk is not None
            ]
            for (low, below), (high, above) in itertools.pairwise(known):
                if low <= risk < high:
                    crossings.append(_between(risk, below, above, (risk - low) / (high - low)))
                    break
    return crossings


def _between(risk: float, low: Point, high: Point, part: float) -> AtRisk:
    def mixed(below: float | None, above: float | None) -> float | None:
        return None if below is None or above is None else below + part * (above - below)

    return AtRisk(
        risk, low.mechanism, math.exp(math.log(low.epsilon) + part * math.log(high.epsilon / low.epsilon)),
        low.retention + part * (high.retention - low.retention), mixed(low.distance, high.distance),
        mixed(low.plain_ldp, high.plain_ldp), mixed(low.risk, high.risk),
    )  # fmt: skip


ON_GRID = "*"
GRID = f"{ON_GRID} This epsilon is a value of the public grid 2^(j/8), from which a risk chooses"
UNCHANGED, RECOVERED, CONTENT = "known words unchanged", "known words recovered", "content words recovered"
UNCHANGED_MEANS = (
    "Share of the words in the space, weighted by their frequency. The text policy decides about all other words."
)
RECOVERED_MEANS = (
    "The probability that the best guess of a word from its replacement is right, for an attacker who knows the "
    "mechanism, epsilon and the frequencies of words. Without an exact law, it is estimated from samples, and rather "
    "too high than too low."
)
CONTENT_MEANS = (
    "The same for an attacker who cares for content words alone, as a share of these: the risk by which a release "
    "chooses epsilon without a language model."
)
AT_RISK = (
    "The epsilons of different mechanisms mean different things. Here each mechanism has the epsilon at which the best "
    "attacker recovers this share of content words, interpolated between two points of its curve."
)


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
                point.mechanism, f"{point.epsilon:.4g}{ON_GRID if point.on_grid else ''}",
                _written(point.chosen_for, ""), f"{point.retention:.3f}", f"{point.distinct:.1f}",
                _written(point.distance), _written(point.content_risk),
                f"{_written(point.risk)}{'' if point.exact else ' (sampled)'}",
                _written(point.plain_ldp),
            ]
            for point in self.points
        ]  # fmt: skip
        by_risk = [
            [
                kept.mechanism, f"{kept.risk:g}", f"{kept.epsilon:.3g}", f"{kept.retention:.3f}",
                _written(kept.all_words), _written(kept.distance), _written(kept.plain_ldp),
            ]
            for kept in self.at_equal_risk
        ]  # fmt: skip
        columns = (
            "mechanism", "epsilon", "chosen for risk", UNCHANGED, "distinct of 100", "distance", CONTENT,
            RECOVERED, "plain LDP, nats",
        )  # fmt: skip
        at_risk = ("mechanism", CONTENT, "epsilon", UNCHANGED, RECOVERED, "distance", "plain LDP, nats")
        tables = [Table(columns, by_epsilon), Table(at_risk, by_risk, "at equal risk:")]
        return Card("Risk and utility by epsilon", [("inputs", self.note), ("grid", GRID)], tables)

    def save(self, folder: str) -> str:
        """Write ``curve.json`` and a page, ``curve.html``, into a folder; return the address of the page."""
        folder = files.as_text(folder)
        fields = {
            "note": self.note,
            "points": [dataclasses.asdict(point) for point in self.points],
            "at_equal_risk": [dataclasses.asdict(kept) for kept in self.at_equal_risk],
        }
        files.write_bytes(files.join(folder, "curve.json"), (json.dumps(fields, indent=1) + "\n").encode())
        address = files.join(folder, "curve.html")
        files.write_bytes(address, self.page().encode())
        return address

    def page(self) -> str:
        """Return the page of the curve."""
        tables = [
            Block(title, text, heads=[f"{head[:1].upper()}{head[1:]}" for head in heads], rows=rows,
                  numbers=range(1, len(heads)))
            for title, text, (heads, *rows) in zip(
                ("At equal epsilon", "At equal risk"), (f"{GRID}.", AT_RISK),
                [table.shown() for table in self.card().tables], strict=True,
            )
            if rows
        ]  # fmt: skip
        charts = [
            self._chart("Known words that stay unchanged", UNCHANGED_MEANS, "retention", "unchanged"),
            self._chart("Known words that the best attacker recovers", RECOVERED_MEANS, "risk", "recovered"),
            self._chart("Content words that the best attacker recovers", CONTENT_MEANS, "content_risk", "recovered"),
        ]
        return render_blocks("What epsilon keeps and gives away", self.note, [*charts, *tables])

    def _chart(self, title: str, text: str, field: str, label: str) -> Block:
        lines: dict[str, list[tuple[float, float]]] = {}
        for point in self.points:
            line, value = lines.setdefault(point.mechanism, []), getattr(point, field)
            line += [] if value is None else [(point.epsilon, value)]
        return Block(title, text, line_chart(lines, "epsilon", label, top=1.0), legend(list(lines)))


def _written(value: float | None, missing: str = "–") -> str:
    return missing if value is None else f"{value:.4g}"


@waiting("computing the curve")
def risk_curve(
    mechanisms: Mechanism | Sequence[Mechanism], epsilons: Sequence[float] = EPSILONS, *, inputs: int | None = None,
    risks: Sequence[float] = (),
) -> RiskCurve:  # fmt: skip
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
