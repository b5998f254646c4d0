"""Audits: whether a mechanism's guarantee, or its paper's claim, is true.

*Exact*, if a mechanism has a distribution: the laws of all words, or in a large vocabulary of some words and their
nearest words, are compared pair by pair and output by output, on the sampled integers; and samples are compared with
the laws. *Sampled*, otherwise (``mechanisms.md`` §15): for each of m ordered pairs, a first batch of draws chooses the
set of outputs that distinguishes the pair best, a fresh batch counts it, and Clopper-Pearson bounds at level alpha/2m
for each count give a log-ratio that is exceeded with confidence 1 - alpha. An audit that does not refute proves no more
than this bound. In both cases outputs have to depend on the key.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from corpusveil.arrays import Float64
from corpusveil.display import Card, Shown
from corpusveil.errors import DataError, NoClosedForm, SettingError
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.distances import discrete
from corpusveil.mechanisms.on_sets import OnSets
from corpusveil.mechanisms.on_vectors import OnVectors
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import EXTRA_LOG_RATIO, check_epsilon

TOLD_APART = 1.0
"""Pairs have epsilon times distance near this value.

Smaller values drown in the error of counts, larger values in rare outputs.
"""
DRAWS, DRAWS_OF_LARGE = 100_000, 5_000
"""The default number of draws per word.

The second if each draw is compared with more than ``LARGE`` numbers of vectors.
"""
LARGE = 1 << 21
PAIRS, WORDS, LEVEL = 14, 192, 0.05
"""The number of pairs compared by samples, of words compared by laws, and the chance of refuting a true guarantee."""
FIT_LEVEL = 1e-9
"""The level of the tests that samples follow the law and depend on the key: a sound mechanism's chance to fail a test.
"""
ROUNDING = 1e-9
FITTED = 4
"""The number of words whose samples are compared with their law."""
LEAST = 5.0
Apart = Callable[[int], Float64]
"""The distances of all words from a word by which a law is checked."""


@dataclass(frozen=True, slots=True, repr=False)
class Audit(Shown):
    """The result of an audit.

    ``kind`` is ``exact`` or ``sampled``. ``checked`` is ``guarantee`` or ``claim``, and ``promised`` states it in
    words.

    ``realised`` is the largest log-ratio divided by epsilon times distance: 1 if the bound is attained. If ``sampled``,
    it is a lower bound of that figure at confidence ``1 - level``. ``plain_ldp`` (nats) is the largest log-ratio seen,
    and ``plain_promised`` its bound (None without a bound).

    ``words`` of the vocabulary were compared, in ``pairs``. ``worst`` names the worst pair and its output. ``reasons``
    says why the audit refutes; it is empty otherwise.

    >>> cv.audit(cv.RingGeometric(space), epsilon=1.0, draws=1000).reasons
    ()
    """

    mechanism: str
    parameters: dict[str, Any]
    epsilon: float
    kind: str
    checked: str
    promised: str
    realised: float
    plain_ldp: float
    plain_promised: float | None
    words: int
    vocabulary: int
    pairs: int
    draws: int
    level: float
    worst: tuple[str, str, str] | None
    reasons: tuple[str, ...]

    @property
    def refuted(self) -> bool:
        """Whether the guarantee, or the claim, is false."""
        return bool(self.reasons)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, infinite numbers as text, for JSON."""
        fields = {**dataclasses.asdict(self), "refuted": self.refuted}
        return {name: repr(value) if isinstance(value, float) and math.isinf(value) else value
                for name, value in fields.items()}  # fmt: skip

    def lines(self) -> list[str]:
        """Return the result in words."""
        where = f"all {self.words:,} words" if self.words == self.vocabulary else f"{self.words:,} words"
        sentences = [f"{self.mechanism} at epsilon {self.epsilon:.4g}, {self.checked}: {self.promised}"]
        if self.kind == "exact":
            sentences.append(f"exact, on the laws of {where} ({self.pairs:,} pairs), and {self.draws:,} draws")
            sentences.append(
                f"realized: {self.realised:.6g} of what is promised; largest log-ratio {self.plain_ldp:.6g}"
            )
        else:
            sentences.append(
                f"sampled: {self.pairs} pairs of {where}, {self.draws:,} draws each, error level {self.level:g}"
            )
            sentences.append(f"realized: at least {self.realised:.4g} of what is promised")
        if self.plain_promised is not None:
            sentences.append(f"for any two words at most {self.plain_promised:.6g} nats are promised")
        if self.worst is not None:
            sentences.append("worst: {!r} against {!r}, output {!r}".format(*self.worst))
        sentences += [f"REFUTED: {reason}" for reason in self.reasons]
        return sentences if self.reasons else [*sentences, "not refuted"]

    def card(self) -> Card:
        """Return the result in words."""
        first, *others = self.lines()
        return Card(first, [("", others)])


def audit(
    mechanism: Mechanism,
    epsilon: float,
    *,
    claim: bool = False,
    draws: int | None = None,
    pairs: int = PAIRS,
    level: float = LEVEL,
    words: int = WORDS,
    key: Key | None = None,
) -> Audit:
    """Check the guarantee of a mechanism, or with ``claim`` the claim of its paper.

    A mechanism without a guarantee is always checked against its claim. ``draws`` per word (100,000; 5,000 if a draw
    takes long), ``pairs`` and ``level`` apply to sampling. ``words`` is the number of words that are compared exactly.
    ``key`` is the key of the draws (default: a fresh key). Raises UserError for numbers that are out of range.

    >>> cv.audit(cv.RingGeometric(space), epsilon=1.0, draws=1000).kind
    'exact'
    """
    epsilon = check_epsilon(epsilon)
    if draws is None:
        draws = DRAWS_OF_LARGE if isinstance(mechanism, OnVectors) and mechanism.space.vectors.size > LARGE else DRAWS
    for name, value, least in (("draws", draws, 1000), ("pairs", pairs, 1), ("words", words, 2)):
        if value < least:
            raise SettingError(f"{name} = {value}: give at least {least:,}.")
    if not 0 < level < 1:
        raise SettingError(f"level = {level}: give a number between 0 and 1.")
    key = key or Key.generate()
    guarantee = mechanism.guarantee(epsilon)
    checked = "claim" if claim or guarantee.epsilon is None else "guarantee"

    def at(word: int) -> Float64:
        law = claimed_distances(mechanism, word, epsilon) if checked == "claim" else mechanism.distances(word, epsilon)
        if law is None:
            raise DataError(
                f"{mechanism.name}: neither its guarantee nor its claim names a distance to check it by; choose "
                "another mechanism."
            )
        return law

    reasons = list(_depends_on_key(mechanism, epsilon, key, draws))
    plain = guarantee.plain_ldp if checked == "guarantee" else None
    chosen = _words(mechanism, at, words)
    try:
        verdict = _exact(mechanism, epsilon, at, chosen)
        kind, realised, largest, worst, excess, count = "exact", *verdict
        reasons += _follows(mechanism, epsilon, key, draws, chosen)
        tolerance = EXTRA_LOG_RATIO + ROUNDING
    except NoClosedForm:
        kind, tolerance = "sampled", 0.0
        realised, largest, worst, excess, count = _sampled(mechanism, epsilon, at, chosen, key, draws, pairs, level)
    if excess > tolerance:
        reasons.append(f"a log-ratio exceeds epsilon times the distance by {excess:.4g}")
    if plain is not None and largest > plain + tolerance:
        reasons.append(f"a log-ratio is {largest:.6g}, but {plain:.6g} is promised for any two words")
    promised = guarantee.claim if checked == "claim" else f"epsilon times {guarantee.metric}"
    named = None if worst is None else tuple(mechanism.space.word(word) for word in worst)
    return Audit(
        mechanism.name, mechanism.parameters(), epsilon, kind, checked, promised, realised, largest, plain,
        chosen.size, len(mechanism.space), count, draws, level, named, tuple(reasons),  # type: ignore[arg-type]
    )  # fmt: skip


def claimed_distances(mechanism: Mechanism, word: int, epsilon: float) -> Float64 | None:
    """Return the distance of the paper's claim, float64 [V]: that of the guarantee, unless it has its own."""
    if isinstance(mechanism, OnSets):  # CusText's paper claims epsilon-LDP over the whole vocabulary
        return discrete(mechanism.space, mechanism.check_id(word))
    claimed: Float64 | None = getattr(mechanism, "claimed_distances", mechanism.distances)(word, epsilon)
    return claimed


def _words(mechanism: Mechanism, at: Apart, words: int) -> npt.NDArray[np.int64]:
    """Return the words to compare: all, or some from a fixed public seed and the nearest words of each."""
    size = len(mechanism.space)
    if size <= words:
        return np.arange(size)
    drawn = np.random.default_rng(0).permutation(size)[: words // 2]
    return np.unique(np.concatenate([drawn, [_nearest(at(int(word))) for word in drawn]])).astype(np.int64)


def _nearest(apart: npt.NDArray[np.float64]) -> int:
    return int(np.argmin(np.where(apart > 0, apart, np.inf)))


def _exact(
    mechanism: Mechanism, epsilon: float, at: Apart, words: npt.NDArray[np.int64]
) -> tuple[float, float, tuple[int, int, int] | None, float, int]:
    """Return realized share, largest log-ratio, worst pair and output, largest excess, and the number of pairs."""
    with np.errstate(divide="ignore"):
        logs = np.log([mechanism.distribution(int(word), epsilon) for word in words])
    share, largest, excess = 0.0, 0.0, -math.inf
    worst: tuple[int, int, int] | None = None
    for row, word in enumerate(words):
        with np.errstate(invalid="ignore"):
            gaps = logs[row] - logs
        gaps[np.isnan(gaps)] = -np.inf  # impossible for both
        tops = gaps.max(axis=1)
        allowed = epsilon * at(int(word))[words]
        over = np.where(np.arange(words.size) == row, -np.inf, tops - allowed)
        if over.max() > excess:
            other = int(over.argmax())
            excess, worst = float(over[other]), (int(word), int(words[other]), int(gaps[other].argmax()))
        apart = allowed > 0
        share = max(share, float((tops[apart] / allowed[apart]).max(initial=0.0)))
        largest = max(largest, float(tops.max()))
    return share, largest, worst, excess, words.size * (words.size - 1)


def _sampled(
    mechanism: Mechanism, epsilon: float, at: Apart, words: npt.NDArray[np.int64], key: Key, draws: int, pairs: int,
    level: float,
) -> tuple[float, float, tuple[int, int, int] | None, float, int]:  # fmt: skip
    """Return the same from samples, exceeded at confidence ``1 - level``, for some pairs in both directions."""
    near: list[tuple[float, int, int]] = []
    for word in words:
        off = np.abs(np.log(np.maximum(epsilon * at(int(word)), 1e-300) / TOLD_APART))
        off[word] = np.inf
        near.append((float(off.min()), int(word), int(off.argmin())))
    chosen = [
        pair for _, near_word, neighbor in sorted(near) for pair in ((near_word, neighbor), (neighbor, near_word))
    ]
    chosen = list(dict.fromkeys(chosen))[:pairs]
    size, each = len(mechanism.space), level / (2 * len(chosen))
    draw_key = DrawKey.derive(key, "00" * 32)

    def counts(word: int, name: str) -> npt.NDArray[np.int64]:
        some = Draws.of_tokens(draw_key, draws, document=f"{name} {word}")
        return np.bincount(mechanism.privatize(np.full(draws, word, np.int32), epsilon, some), minlength=size)

    share, largest, excess = -math.inf, -math.inf, -math.inf
    worst: tuple[int, int, int] | None = None
    for number, (word, neighbor) in enumerate(chosen):
        first, second = counts(word, f"choose {number}"), counts(neighbor, f"choose {number}")
        order = np.argsort(-(first + 0.5) / (second + 0.5), kind="stable")
        bounds = _log_ratio(first[order].cumsum()[:-1], second[order].cumsum()[:-1], draws, each)
        event = order[: int(bounds.argmax()) + 1]
        hits = counts(word, f"test {number}")[event].sum(), counts(neighbor, f"test {number}")[event].sum()
        ratio = float(_log_ratio(np.array([hits[0]]), np.array([hits[1]]), draws, each)[0])
        allowed = epsilon * float(at(word)[neighbor])
        share, largest = max(share, ratio / allowed), max(largest, ratio)
        if ratio - allowed > excess:
            excess, worst = ratio - allowed, (word, neighbor, int(event[0]))
    return share, largest, worst, excess, len(chosen)


def _log_ratio(
    hits: npt.NDArray[np.int64], others: npt.NDArray[np.int64], draws: int, level: float
) -> npt.NDArray[np.float64]:
    """Return ``ln(p_lo / p_hi)`` by Clopper-Pearson, each bound at ``level``; int64 [N] -> float64 [N]."""
    (low, _), (_, high) = (clopper_pearson(counted, draws, level) for counted in (hits, others))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(low) - np.log(high))


def clopper_pearson(
    hits: npt.NDArray[np.int64], draws: int, level: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return lower and upper bounds of probabilities, each at ``level``; numbers, or arrays of one shape."""
    low = stats.beta.ppf(level, np.maximum(hits, 1), draws - np.maximum(hits, 1) + 1)
    high = stats.beta.ppf(1 - level, hits + 1, np.maximum(draws - hits, 1))
    return np.where(hits > 0, low, 0.0), np.where(hits < draws, high, 1.0)


def _depends_on_key(mechanism: Mechanism, epsilon: float, key: Key, draws: int) -> Sequence[str]:
    """Report if outputs under two keys agree more often than two draws under one key."""
    size = len(mechanism.space)
    tokens = min(draws, 10_000)
    ids = np.random.default_rng(0).integers(0, size, tokens).astype(np.int32)
    both = np.tile(ids, 2)
    first = DrawKey.derive(key, "00" * 32)
    second = DrawKey.derive(Key.generate(), "11" * 32)
    out = mechanism.privatize(both, epsilon, Draws.of_tokens(first, both.size, document="key"))
    again = mechanism.privatize(ids, epsilon, Draws.of_tokens(second, tokens, document="key"))
    same_key = int((out[:tokens] == out[tokens:]).sum())
    other_key = int((out[:tokens] == again).sum())
    if other_key <= same_key:
        return ()
    p = stats.fisher_exact([[other_key, tokens - other_key], [same_key, tokens - same_key]], "greater").pvalue
    return ("outputs under two keys agree, so the noise does not come from the key",) if p < FIT_LEVEL else ()


def _follows(mechanism: Mechanism, epsilon: float, key: Key, draws: int, words: npt.NDArray[np.int64]) -> Sequence[str]:
    """Report if samples of some words do not follow their stated law (chi-squared)."""
    draw_key = DrawKey.derive(key, "22" * 32)
    for word in np.unique(words[np.linspace(0, words.size - 1, FITTED).astype(int)]):
        some = Draws.of_tokens(draw_key, draws, document=f"fit {word}")
        out = mechanism.privatize(np.full(draws, word, np.int32), epsilon, some)
        if fit_p_value(out, mechanism.distribution(int(word), epsilon)) < FIT_LEVEL / FITTED:
            return (f"samples of {mechanism.space.word(int(word))!r} do not follow the stated law",)
    return ()


def fit_p_value(samples: npt.NDArray[np.integer[Any]], law: npt.NDArray[np.float64]) -> float:
    """Return the p-value of samples, ids below V, under a law, float64 [V]; rare outputs are counted as one."""
    counts = np.bincount(samples, minlength=law.size).astype(np.float64)
    expected = law / law.sum() * samples.size
    often = expected >= LEAST
    rare, seen = float(expected[~often].sum()), float(counts[~often].sum())
    if (counts[law == 0] > 0).any():
        return 0.0
    if rare < LEAST:
        tail = float(stats.poisson.sf(seen - 1, max(rare, 1e-300)))
        if often.sum() < 2:
            return tail
        scaled = expected[often] * (counts[often].sum() / expected[often].sum())
        return min(1.0, 2 * min(tail, float(stats.chisquare(counts[often], scaled).pvalue)))
    whole = np.append(counts[often], seen), np.append(expected[often], rare)
    return float(stats.chisquare(*whole).pvalue) if often.any() else 1.0
