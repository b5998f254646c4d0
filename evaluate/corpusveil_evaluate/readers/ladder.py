"""A ladder of readers: what share of words ever stronger readers of a release guess, each figure with what it is.

The upper side is for text that a model generates. A reader who knows all other original words of a run expects word w
at a place with probability

    m(w) proportional to p(w | u v) p(x | v w) p(y | w x),   where u v _ x y are the words around it

and guesses, of words that count omega(w), the share (Alvim et al. 2012; ``docs/mathematics.md``)

    E sum_u max_w omega(w) m(w) P[w, u] / E sum_w omega(w) m(w)

No reader of such text guesses more: what others see is a function of what this one sees, and of noise that tells
nothing of w. To estimate it without bias, a word is drawn from m and released as u, and the largest term of u is
divided by the sum of its terms, over all words that can occur. The *dial* takes m^beta / Z instead of m, with the beta
at which a mean of h bits of doubt remains at a place.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from corpusveil.arrays import Float32, Float64, Int32, Int64
from corpusveil.compiled import compiled
from corpusveil.display import Card, Shown, Table, round_up
from corpusveil.errors import NoClosedForm, of_other_type
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.on_lists import OnLists
from corpusveil.sampling.draws import TERM, DrawKey, Draws
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import check_epsilon
from corpusveil.text.policy import DEFAULT, TextPolicy
from corpusveil_evaluate.readers.content_words import content_weights, stop_words_of
from corpusveil_evaluate.readers.model_text import WORDS, ModelText, ids_in, model_text
from corpusveil_evaluate.readers.ngrams.channel import public_shares
from corpusveil_evaluate.readers.ngrams.context_risk import precise, reader_of_texts, uniform_of
from corpusveil_evaluate.readers.ngrams.explained import CELLS
from corpusveil_evaluate.readers.ngrams.fixed import ONE
from corpusveil_evaluate.readers.ngrams.laws_on_lists import chances
from corpusveil_evaluate.readers.ngrams.lookup import pair
from corpusveil_evaluate.readers.ngrams.model import LanguageModel, spoken, spoken_by
from corpusveil_evaluate.readers.ngrams.word_risk import TRIGRAMS, Prior, prior_of, word_risk

PLACES = 1000
"""The number of places of the model's text at which all words are weighed: a standard error of about a point."""
PAIRS = 50
"""The number of pairs of words for a reader who is left with two."""
STEPS = (1, 2, 4, 8)
BITS = (5.0, 4.0, 3.0, 2.0)
"""Settings of the dial: mean bits of doubt about a word when all others are known."""
GRID = 2.0 ** (np.arange(129) / 16)
"""The betas between which that of a setting is interpolated."""
_BIN, _BINS = 12, 1024
"""To find it, scores are counted in bins of 2^12 units, a 16th of a nat."""
BEYOND = 2
"""The upper end of a bound that is estimated, in standard errors above the mean."""
MEASURED = "measured on texts that no count has read"
BY_MODEL = f"reads the whole release with {TRIGRAMS}"
ALL_OTHERS = "knows all other original words, and the model of the text"
DOUBT = "knows all other words, and text so well that {:g} bits of doubt remain"
NEEDS_MODEL, NEEDS_TEXT, NO_LAW = "needs a public language model", "needs public texts", "no exact law"
ROWS, SHARED = 20, 400
"""The rows of a form, and the number of words for which such a reader is asked, chosen evenly by frequency."""
OF_FORM = f"sees a word drawn in {ROWS} rows that share it (forms, footers), without a model"


@dataclass(frozen=True, slots=True)
class Rung:
    """A reader, and the shares of all words and of content words that this reader guesses; None: not computed.

    ``figure`` says what the shares are, or why there are none; ``errors`` are the standard errors of measured shares.
    Where no reader of such text can guess more, ``bound`` is set, and the upper ends are shown: ``BEYOND`` errors more.
    """

    reader: str
    figure: str
    every: float | None = None
    content: float | None = None
    errors: Sequence[float] = ()
    bound: bool = False

    @property
    def cells(self) -> tuple[str, ...]:
        """The rung as four cells of a table."""
        if self.bound and self.every is not None and self.content is not None:
            ends = zip((self.every, self.content), self.errors, strict=True)
            written = [f"at most {min(100.0, 100 * (share + BEYOND * error)):.1f} %" for share, error in ends]
            return (self.reader, *written, self.figure)
        errors = [f" ± {100 * error:.1f}" for error in self.errors] or ["", ""]
        shares = zip((self.every, self.content), errors, strict=True)
        written = ["–" if share is None else f"{100 * share:.1f}{error} %" for share, error in shares]
        return (self.reader, *written, self.figure)


@dataclass(frozen=True, slots=True, repr=False)
class Ladder(Shown):
    """The readers of a mechanism at an epsilon of a word, and what holds for every reader.

    The weakest reader is first; the last sees the same word in several rows.

    >>> cv.reader_ladder(cv.RingGeometric(space), epsilon=1.0, dial=False).rungs[0].reader
    'takes the released word for the original'
    """

    mechanism: str
    epsilon: float
    rungs: tuple[Rung, ...]
    note: str

    heads: ClassVar[tuple[str, ...]] = ("the reader", "all words", "content words", "the figure is")

    def card(self) -> Card:
        """Return the rungs as a table."""
        table = Table(self.heads, [rung.cells for rung in self.rungs])
        return Card(f"Readers of {self.mechanism}, epsilon {self.epsilon:.4g} a word", [("", self.note)], [table])


def reader_ladder(
    mechanism: Mechanism, epsilon: float, model: LanguageModel | None = None, texts: Sequence[str] = (), *,
    policy: TextPolicy = DEFAULT, content: Float64 | None = None, dial: bool = True,
) -> Ladder:  # fmt: skip
    """Return the share of words that ever stronger readers guess. Everything is public, and nothing is spent.

    Without a ``model`` of public text, or ``texts`` that it has not counted, the rungs that need them say so.
    ``policy`` says what readers see of stop words, and ``content`` float64 [V] how much each word counts,
    ``content_weights`` by default. ``dial`` adds readers with bits of doubt about other words, in twice the time.
    A pair of words is k places apart on the first list, or a word and its k-th nearest; if pairs differ, the figure is
    the mean over ``PAIRS`` words, chosen evenly by frequency. Raises UserError for an epsilon that is not above 0, and
    if hardly any word of the texts is in the space.

    >>> print(cv.reader_ladder(cv.RingGeometric(space), epsilon=1.0, dial=False))
    Readers of ring-geometric, epsilon 1 a word...
    """
    if not isinstance(mechanism, Mechanism):
        raise of_other_type("mechanism", mechanism, "cv.mechanism(NAME, space)")
    epsilon, space = check_epsilon(epsilon), mechanism.space
    weights = content_weights(space, language=policy.language) if content is None else content
    prior = prior_of(space)
    if model is not None and space.counts is None:
        prior = Prior(prior.words, public_shares(space, model)[0], 1.0)
    risk = word_risk(mechanism, epsilon, prior, policy=policy, content=weights)
    law = "exact" if risk.exact else "estimated"
    shares = prior.shares * np.stack([np.ones(prior.words.size), weights[prior.words]])
    unchanged = Rung("takes the released word for the original", law, risk.unchanged, risk.content.unchanged)
    by_word = Rung("guesses word by word, from the mechanism and word frequencies", law, risk.share, risk.content.share)
    read, bits = Rung(BY_MODEL, NEEDS_MODEL if model is None else NEEDS_TEXT), BITS if dial else ()
    informed = [Rung(reader, NEEDS_MODEL) for reader in (ALL_OTHERS, *map(DOUBT.format, bits))]
    if model is not None:
        if texts:
            found = precise(reader_of_texts(mechanism, model, texts, policy, content).read(epsilon))
            errors = found.error, found.content.error
            read = Rung(BY_MODEL, MEASURED, found.share, found.content.share, errors)
        informed = _informed(mechanism, epsilon, model, model_text(space, model), weights, policy, bits)
    of_two = [_of_two(mechanism, epsilon, prior.words, shares, steps) for steps in STEPS]
    odds = (
        "The odds do: what became of a word changes the odds between any two words at distance d by a factor of at "
        f"most e^({round_up(epsilon, 4):g} d)." if mechanism.private else "This mechanism has no guarantee either."
    )  # fmt: skip
    of_form = _of_form(mechanism, epsilon, prior, shares)
    rungs = (unchanged, by_word, read, informed[0], *of_two, *informed[1:], of_form)
    return Ladder(mechanism.name, epsilon, rungs, f"No figure holds for every reader of every text. {odds}")


def _of_form(mechanism: Mechanism, epsilon: float, prior: Prior, shares: Float64) -> Rung:
    """Return the rung of a reader who sees words drawn in several rows, and multiplies the law of each by the prior."""
    right, words = np.empty((2, SHARED)), prior.words.astype(np.int64)
    key = DrawKey.derive(Key(hashlib.sha256(OF_FORM.encode()).digest()), "00" * 32)
    try:
        for row, share in enumerate(shares):
            at = np.searchsorted(share.cumsum(), (np.arange(SHARED) + 0.5) / SHARED * share.sum())
            draws = Draws.of_tokens(key, SHARED * ROWS, document=f"rows {row}")
            seen = mechanism.privatize(np.repeat(words[at], ROWS).astype(np.int32), epsilon, draws)
            different, places = np.unique(seen, return_inverse=True)
            laws = np.zeros((SHARED, words.size))
            step = max(1, CELLS // 16 // words.size) if isinstance(mechanism, OnLists) else different.size
            for first in range(0, different.size, step):
                some = np.log(np.maximum(_columns(mechanism, epsilon, words, different[first : first + step]), 1e-30))
                for place in np.flatnonzero((places >= first) & (places < first + len(some))):
                    laws[place // ROWS] += some[places[place] - first]
            with np.errstate(divide="ignore"):
                right[row] = (laws + np.log(share)).argmax(axis=1) == at
    except NoClosedForm:
        return Rung(OF_FORM, NO_LAW)
    means = right.mean(axis=1)
    errors = np.sqrt(means * (1 - means) / SHARED).tolist()
    return Rung(OF_FORM, f"measured, of {SHARED} words", float(means[0]), float(means[1]), errors)


def _of_two(mechanism: Mechanism, epsilon: float, words: Int64, shares: Float64, steps: int) -> Rung:
    """Return the rung of a reader who is left with two equally likely words: right with (1 + total variation) / 2."""
    on_list = isinstance(mechanism, OnLists)
    reader = f"is left with two words, {steps} apart {'on the list' if on_list else 'in the order of distance'}"
    if steps >= len(mechanism.space):
        return Rung(reader, "too few words")
    right = np.empty((2, PAIRS))
    try:
        for row, sums in enumerate(shares.cumsum(axis=1)):
            first = words[np.searchsorted(sums, (np.arange(PAIRS) + 0.5) / PAIRS * sums[-1])]
            if on_list:
                order, place = mechanism.space.lists[0], mechanism.space.positions[0][first].astype(np.int64)
                second = order[np.where(place + steps < order.size, place + steps, place - steps)]
            else:
                distances = [mechanism.distances(int(word), epsilon) for word in first]
                if any(each is None for each in distances):
                    return Rung(reader, "no distance between words")
                second = np.argsort(np.array(distances), axis=1, kind="stable")[:, steps]
            laws = (mechanism.distributions(some, epsilon) for some in (first, second))
            right[row] = 0.5 + 0.25 * np.abs(np.subtract(*laws)).sum(axis=1)
    except NoClosedForm:
        return Rung(reader, NO_LAW)
    return Rung(reader, "exact" if np.ptp(right) < 1e-9 else "mean of pairs", *right.mean(axis=1).tolist())


@compiled
def _scores(text: Any, places: Any, length: int, words: Any, arrays: Any, out: Any) -> None:
    """Write ln m of words at places, up to a term of the place; int32 [N, K], 2^-16 nats."""
    unknown = arrays.left2.size
    for n in range(places.size):
        t = places[n]
        at = t % length
        last = np.int64(text[t - 1]) if at >= 1 else np.int64(unknown)
        before = np.int64(text[t - 2]) if at >= 2 and last != unknown else np.int64(unknown)
        after = np.int64(text[t + 1]) if at + 1 < length else np.int64(-1)
        second = np.int64(text[t + 2]) if at + 2 < length and after != unknown else np.int64(-1)
        context = pair(before, last, arrays.regions, arrays.slots) if before != unknown else np.int64(-1)
        for k in range(words.size):
            word = np.int64(words[k])
            own = np.int64(-1)
            if last == unknown:
                score = np.int64(arrays.start[word])
            else:
                own = pair(last, word, arrays.regions, arrays.slots)
                score = spoken_by(own, context, last, word, arrays)
            if after >= 0:
                entry = pair(word, after, arrays.regions, arrays.slots)
                score += spoken_by(entry, own, word, after, arrays)
                if second >= 0:
                    score += spoken(entry, after, second, arrays)
            out[n, k] = score


def _informed(
    mechanism: Mechanism, epsilon: float, model: LanguageModel, text: ModelText, weights: Float64, policy: TextPolicy,
    bits: Sequence[float],
) -> list[Rung]:  # fmt: skip
    """Return the rungs of readers who know all other words; those with fewer ``bits`` of doubt than the model has."""
    ids, on_lists = ids_in(mechanism.space, model), isinstance(mechanism, OnLists)
    said, known = np.flatnonzero(ids >= 0), np.flatnonzero(text.truth >= 0)
    words = ids[said].astype(np.int64)
    count = min(PLACES if on_lists else PLACES // 2, known.size)  # without lists, a law is that of all words at once
    scores, step = np.empty((count, said.size), np.int32), max(1, CELLS // 16 // said.size) if on_lists else count
    _scores(text.said, known[np.arange(count) * known.size // count], WORDS, said, model.arrays, scores)
    scores -= scores.max(axis=1, keepdims=True)
    doubts = _doubts(scores)
    bits = [h for h in bits if h < doubts[0]]
    betas = [1.0, *np.interp(bits, doubts[::-1], GRID[::-1]).tolist()]
    readers = [f"{ALL_OTHERS} ({doubts[0]:.1f} bits of doubt)", *map(DOUBT.format, bits)]
    replaced = ~(stop_words_of(mechanism.space, policy.language)[words] & policy.parts_stop_words())
    counted = np.stack([np.ones(words.size), weights[words]])
    gained = np.empty((len(betas), 2, 2, count))
    for first in range(0, count, step):
        some = slice(first, first + step)
        sharpened = [np.exp(beta / ONE * scores[some]) for beta in betas]
        joints = [each / each.sum(axis=1, keepdims=True) * weight for each in sharpened for weight in counted]
        draws = Draws.of_tokens(text.key, len(joints[0]), document=f"ladder {first}")
        outputs = np.empty((len(joints), len(joints[0])), np.int32)
        for row, joint in zip(outputs, joints, strict=True):  # the same draws for all, so that the dial is smooth
            sums = (joint * replaced).cumsum(axis=1)
            drawn = (sums > uniform_of(draws, TERM)[:, None] * sums[:, -1:]).argmax(axis=1)
            row[:] = mechanism.privatize(ids[said[drawn]], epsilon, draws)
        different, rows = np.unique(outputs, return_inverse=True)
        try:
            laws = _columns(mechanism, epsilon, words, different)
        except NoClosedForm:
            return [Rung(reader, NO_LAW) for reader in readers]
        for at, (joint, each) in enumerate(zip(joints, rows.reshape(outputs.shape), strict=True)):
            others, seen = joint[:, ~replaced], joint * replaced * laws[each]
            # The reader knows where words are that are not replaced, and guesses the likeliest of those not shown.
            kept = others.sum(axis=1) if policy.stop_words == "keep" else others.max(axis=1, initial=0.0)
            right = seen.max(axis=1) / np.maximum(seen.sum(axis=1), 1e-300)
            gained[at // 2, at % 2, :, some] = right * (joint @ replaced) + kept, joint.sum(axis=1)
    gain, whole = gained[:, :, 0], gained[:, :, 1]
    total = np.maximum(whole.sum(axis=2, keepdims=True), 1e-9)
    shares = gain.sum(axis=2, keepdims=True) / total
    errors = np.sqrt(((gain - shares * whole) ** 2).sum(axis=2)) / total[..., 0]
    figures = [f"{BEYOND} standard errors above the mean of {count:,} places", *["estimated"] * len(bits)]
    columns = zip(readers, figures, shares[..., 0].tolist(), errors.tolist(), strict=True)
    rungs = [Rung(reader, figure, every, content, error) for reader, figure, (every, content), error in columns]
    return [replace(rungs[0], bound=True), *rungs[1:]]


def _doubts(scores: Int32) -> Float64:
    """Return the mean entropy of m^beta / Z in bits, for each beta of the grid."""
    counts = np.stack([np.bincount(np.minimum(-row >> _BIN, _BINS - 1), minlength=_BINS) for row in scores])
    nats = np.arange(_BINS)[:, None] * ((1 << _BIN) / ONE)
    terms = np.exp(-nats * GRID)
    whole, weighed = counts.astype(np.float64) @ terms, counts.astype(np.float64) @ (nats * terms)
    return np.asarray((np.log(whole) + GRID * weighed / whole).mean(axis=0) / math.log(2))


def _columns(mechanism: Any, epsilon: float, words: Int64, outputs: Int32) -> Float32:
    """Return the probability of outputs for all of the words, float32 [U, K]."""
    if isinstance(mechanism, OnLists):
        return np.asarray(chances(mechanism, words, outputs[:, None], epsilon), np.float32)
    step = max(1, CELLS // len(mechanism.space))
    portions = (words[first : first + step] for first in range(0, words.size, step))
    laws = [mechanism.distributions(some, epsilon)[:, outputs].astype(np.float32) for some in portions]
    return np.concatenate(laws).T
