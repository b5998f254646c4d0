"""Audits of whole documents: whether a stated bound is exceeded, and by how much it is too large.

An audit takes two words that the change allows, and two documents, each of one of these words. *By law*: the losses of
the pair, rounded down, are composed over the document's tokens: the ε at δ that the pair really needs. *By samples*:
both documents go through the release's own kernel many times; their stated bound is computed from the readings that a
ledger would get. A first batch chooses a threshold for the sum of log-ratios, a fresh batch counts it, and
Clopper-Pearson bounds p, p' at level α/2 each give ``p - e^ε p'``, which δ has to cover. This reveals a token that is
drawn but not counted, in either part.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from corpusveil.audits.guarantee_audit import LEVEL, clopper_pearson
from corpusveil.audits.length_audit import length_reasons
from corpusveil.budget import Budget
from corpusveil.budget.accounting import Readings, as_float
from corpusveil.budget.length import Length, LengthGrid
from corpusveil.display import Card, Shown, Table, figure
from corpusveil.errors import NoClosedForm, NoGuaranteeError
from corpusveil.mechanisms import Mechanism
from corpusveil.sampling.keys import Key
from corpusveil.storage.documents import Documents
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.release.statement import DocumentFigure, document_figure, neighbors

LOOKED_AT = 64
"""The number of words among which a pair is chosen, by a fixed public seed."""
TOKENS, FEWEST, MOST = 1 << 16, 64, 1 << 13
"""Tokens to draw for each document of a pair, and bounds of the resulting number of documents."""
TOLERANCE = 1e-4
"""Tolerance of ε: rounding of sums, and 2^-19 a token for integer weights."""


@dataclass(frozen=True, slots=True)
class DocumentCheck:
    """One length: the ``stated`` bound, the result for a pair of documents, and the reasons if it is refuted.

    ``needed`` is the ε that the pair needs by its laws, None without laws or without a pair; ``shown`` is a δ that
    samples show with confidence, at the ε computed from the readings.
    """

    stated: DocumentFigure
    budget: Budget
    needed: float | None
    shown: float | None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class DocumentAudit(Shown):
    """The guarantee of documents of several lengths, and the results for pairs of such documents."""

    mechanism: str
    checks: tuple[DocumentCheck, ...]
    length: Length | None = None

    @property
    def refuted(self) -> bool:
        return any(check.reasons for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name, for JSON."""
        checks = [
            {**check.stated.as_dict(), "budget": check.budget.as_dict(), "needed": check.needed, "shown": check.shown,
             "reasons": list(check.reasons)}
            for check in self.checks
        ]  # fmt: skip
        of_length = {} if self.length is None else {"length": self.length.as_dict()}
        return {"mechanism": self.mechanism, **of_length, "documents": checks, "refuted": self.refuted}

    def card(self) -> Card:
        """Return a row for each budget and length."""
        first = self.checks[0].stated
        heads = ("budget", "words", "pure", f"epsilon at delta = {first.delta:g}", "a pair needs", "verdict")
        rows = [
            [f"{check.budget.epsilon:.6g} a {check.budget.per}", f"{check.stated.words:,}", figure(check.stated.pure),
             figure(check.stated.epsilon), _needs(check.needed),
             "REFUTED" if check.reasons else "not refuted"]
            for check in self.checks
        ]  # fmt: skip
        reasons = [f"{check.stated.words:,} words: {reason}" for check in self.checks for reason in check.reasons]
        apart = "by any distance" if math.isinf(first.distance) else f"by at most {first.distance:g}"
        compared = f"documents with the same number of words, in which each word differs {apart}"
        fields = [("between", compared if self.length is None else neighbors(first))]
        fields += [] if self.length is None else [("length", self.length.disclosed)]
        fields += [("REFUTED", reason) for reason in reasons]
        return Card(f"Documents by {self.mechanism}", fields, [Table(heads, rows)])


def _needs(epsilon: float | None) -> str:
    return "" if epsilon is None else f"{epsilon:,.0f}" if epsilon >= 100 else f"{epsilon:.3g}"


def audit_documents(
    mechanism: Mechanism,
    budgets: Sequence[Budget],
    lengths: Sequence[int],
    delta: float = 1e-6,
    distance: float = 1.0,
    *,
    level: float = LEVEL,
    key: Key | None = None,
    length: Length | None = None,
) -> DocumentAudit:
    """Check the guarantee of documents of these lengths at each budget, and with a ``length`` policy that policy.

    ``level`` is the probability, over all checks, of refuting a guarantee that holds. ``key`` is the key of the draws
    (default: a fresh key). Raises UserError for a mechanism without a guarantee, and for numbers out of range.
    """
    if not mechanism.private:
        raise NoGuaranteeError(
            f"{mechanism.name} has no guarantee, so there is nothing to check for a document; choose another mechanism."
        )
    policy = TextPolicy() if length is None else TextPolicy(punctuation="drop", contacts="drop")
    release = Release(mechanism, budgets[0], policy, key=key or Key.generate(), length=length)
    each = level / (len(budgets) * len(lengths))
    return DocumentAudit(
        mechanism.name,
        tuple(
            _check(dataclasses.replace(release, budget=budget), words, delta, distance, each)
            for budget in budgets
            for words in lengths
        ),
        length,
    )


def _check(release: Release, words: int, delta: float, distance: float, level: float) -> DocumentCheck:
    mechanism, budget, length = release.mechanism, release.budget, release.length
    reasons = length_reasons(release, words, level / 2)
    level -= 0 if length is None else level / 2
    if isinstance(length, LengthGrid):  # the documents of the cell with the most words of their own
        words = int(length.released(np.array([words]))[0])
    stated = document_figure(mechanism, budget, words, delta, distance, length)
    share = budget.share_of(words)
    pair = _pair(mechanism, share, distance)
    if pair is None:
        return DocumentCheck(stated, budget, None, None, tuple(reasons))
    if not isinstance(length, LengthGrid):  # documents with noisy lengths have the same number of words only by chance
        release = dataclasses.replace(release, length=None)
    needed = _needed(mechanism, pair, share, words, delta)
    if needed is not None and needed > stated.epsilon * (1 + TOLERANCE) + TOLERANCE:
        reasons.append(f"{needed:.6g} is needed at delta = {delta:g}, but {stated.epsilon:.6g} is stated")
    shown, counted = _shown(release, pair, words, delta, distance, level)
    if shown > delta:
        reasons.append(f"at epsilon {counted:.6g}, by what is counted, samples show a delta of {shown:.3g}")
    return DocumentCheck(stated, budget, needed, shown, tuple(reasons))


def _pair(mechanism: Mechanism, epsilon: float, distance: float) -> tuple[int, int] | None:
    """Return two sampled words as far apart as the change allows; None if all are further apart."""
    size, best = len(mechanism.space), (0.0, -1, -1)
    for word in np.random.default_rng(0).permutation(size)[:LOOKED_AT].tolist():
        apart = mechanism.distances(word, epsilon)
        if apart is not None:
            within = np.where(apart <= distance, apart, 0.0)
            other = int(within.argmax())
            best = max(best, (float(within[other]), word, other))
    return None if best[0] == 0 else best[1:]


def _needed(mechanism: Mechanism, pair: tuple[int, int], share: float, words: int, delta: float) -> float | None:
    """Return the ε at δ of the pair's own laws, every loss rounded down; None without laws."""
    from dp_accounting.pld import pld_pmf

    step = share * (1 - 2.0**-20) / 128  # losses that are whole steps stay whole steps, whatever their last bits
    try:
        first, second = (mechanism.distribution(word, share) for word in pair)
    except NoClosedForm:
        return None
    places = np.floor(np.log(first / second) / step).astype(np.int64)
    law = np.bincount(places - places.min(), weights=first)
    each = pld_pmf.DensePLDPmf(step, int(places.min()), law, 0.0, pessimistic_estimate=False)
    whole = each.self_compose(words, 0.0) if words > 1 else each
    return float(whole.get_epsilon_for_delta(delta))


def _shown(
    release: Release, pair: tuple[int, int], words: int, delta: float, distance: float, level: float
) -> tuple[float, float]:
    """Return the δ that samples show with confidence, and its ε, which is computed from the kernel's readings."""
    kernel, space = release.kernel(), release.mechanism.space
    count = min(MOST, max(FEWEST, TOKENS // words))
    scores = _scores(release.mechanism, pair, release.budget.share_of(words))
    sums = []
    epsilon = math.inf
    for word in pair:
        text = " ".join([space.word(word)] * words)
        texts = pa.array([text] * (2 * count), pa.large_string())
        ids = [f"{word} {number}" for number in range(2 * count)]
        _, spent = kernel.account(Documents(texts[:1], ids[:1]), bytes(32))
        epsilon = min(epsilon, _counted(release.mechanism, spent, delta, distance))
        out, _ = kernel.privatize(Documents(texts, ids))
        sums.append(np.array([sum(scores.get(token, 0.0) for token in written.split()) for written in out.to_pylist()]))
    choose, test = np.split(np.stack(sums), 2, axis=1)
    places = np.unique(choose[0])
    hits = [np.searchsorted(np.sort(sample), places, side="left") for sample in choose]
    excess = (count - hits[0]) - math.exp(min(epsilon, 700.0)) * (count - hits[1])
    threshold = places[int(excess.argmax())]
    lows, highs = clopper_pearson((test >= threshold).sum(axis=1), count, level / 2)
    return float(lows[0] - math.exp(min(epsilon, 700.0)) * highs[1]), epsilon


def _counted(mechanism: Mechanism, spent: Readings, delta: float, distance: float) -> float:  # noqa: ARG001
    """Return the ε of a document by its nats, as in a ledger."""
    return as_float(int(spent.nats[0]))


def _scores(mechanism: Mechanism, pair: tuple[int, int], epsilon: float) -> dict[str, float]:
    """Return the evidence of each output word for the first word of the pair: its log-ratio, if there are laws."""
    names = [mechanism.space.word(number) for number in range(len(mechanism.space))]
    try:
        first, second = (np.log(mechanism.distribution(word, epsilon)) for word in pair)
    except NoClosedForm:
        return {names[pair[0]]: 1.0, names[pair[1]]: -1.0}
    return dict(zip(names, np.round(first - second, 6).tolist(), strict=True))
