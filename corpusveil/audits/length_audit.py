"""Audits of a length policy: whether lengths disclose more than stated, and whether fillers have their stated law.

Documents of a single repeated word go through the release's own kernel, with about 65,000 words in all, and are read
back as text. On a grid, all documents of a cell must have the same number of words. With noise, a first batch chooses
an event of the lengths of documents of n and of n + 1 words, and a fresh batch bounds its probabilities
(Clopper-Pearson): their log-ratio must not exceed epsilon with confidence. Fillers follow the words of the text; their
replacements are compared, in the same two steps, between documents of different words, and with public words that are
replaced at the stated epsilon outside the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.audits.guarantee_audit import clopper_pearson
from corpusveil.budget.length import LengthGrid
from corpusveil.errors import ConflictError
from corpusveil.kernel.lengths import filler_weights
from corpusveil.sampling.draws import FILLER, Draws
from corpusveil.sampling.weights import WeightTable
from corpusveil.spaces.vocabulary import parts
from corpusveil.storage.documents import Documents
from corpusveil.transforms.release.release import Release

WORDS = 1 << 16
FEWEST, MOST = 128, 1 << 13
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Sample:
    """The outputs of D documents of ``own`` words: lengths int64 [D], and the ids of fillers, int64 [K]."""

    own: int
    lengths: Ints
    fillers: Ints


def length_reasons(release: Release, words: int, level: float) -> list[str]:
    """Return why the length policy of a release is refuted for documents of about this many words; empty if it is not.

    ``level`` is the chance of refuting a true guarantee. Raises UserError for a space with collocations.
    """
    length, space = release.length, release.mechanism.space
    if length is None:
        return []
    if any(len(parts(word)) > 1 for word in space.vocabulary.words):
        raise ConflictError(
            "length: this space has collocations, which are written as several words; audit one of single words."
        )
    weights = filler_weights(space, release.policy)
    first, second = int(weights.argmax()), int(weights.argmin())  # so that fillers copied from the text show
    if isinstance(length, LengthGrid):
        fewest, longest = _cell(length, words)
        shortest = min(max(fewest, 1), longest)  # an empty text has no words for fillers to repeat
    else:
        fewest, shortest, longest = words, words, words + 1
    short, long = (_sampled(release, first, own) for own in (shortest, longest))
    other = _sampled(release, second, shortest)
    if isinstance(length, LengthGrid):
        lines = _of_grid((short, long, other, _sampled(release, first, fewest)), longest)
    else:
        lines = _of_noise(short, long, length.epsilon, level / 3)
    return lines + _of_fillers(release, short, other, level / 3 * 2)


def _cell(length: LengthGrid, words: int) -> tuple[int, int]:
    """Return the smallest and largest number of words in the grid cell of a document of this many words."""
    point = int(length.released(np.array([words]))[0])
    low, high = 0, point  # the fewest: by bisection, whatever the grid
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if length.released(np.array([middle]))[0] == point else (middle + 1, high)
    return low, point


def _sampled(release: Release, word: int, own: int) -> _Sample:
    space, kernel = release.mechanism.space, release.kernel()
    text = " ".join([space.word(word)] * own)
    count = min(MOST, max(FEWEST, WORDS // max(own, 1)))
    ids = [f"length {word} {own} {number}" for number in range(2 * count)]
    made, _ = kernel.privatize(Documents(pa.array([text] * len(ids), pa.large_string()), ids))
    split = [made_words.split() for made_words in made.to_pylist()]
    fillers = [space.id(token) for some in split for token in some[own:]]
    return _Sample(own, np.array([len(made_words) for made_words in split]), np.array(fillers, dtype=np.int64))


def _of_grid(samples: Sequence[_Sample], point: int) -> list[str]:
    for sample in samples:
        wrong = sample.lengths[sample.lengths != point]
        if wrong.size:
            return [
                f"documents of {sample.own:,} words were released with {int(wrong[0]):,}, where the grid has {point:,}"
            ]
    return []


def _of_noise(short: _Sample, long: _Sample, epsilon: float, level: float) -> list[str]:
    """Check that lengths of n and n + 1 words differ by at most epsilon in log-ratio, in both directions."""
    shown = max(
        _log_ratio(single.lengths, two.lengths, sign, level / 4)
        for single, two in ((short, long), (long, short))
        for sign in (1, -1)
    )
    if shown > epsilon:
        both = f"the released lengths of {short.own:,} and of {long.own:,} words"
        return [f"{both} show an epsilon of {shown:.3g}, and {epsilon:g} is stated"]
    return []


def _log_ratio(first: Ints, second: Ints, sign: int, level: float) -> float:
    """Return a lower bound of the log-ratio of the best event "at least (or at most) k words"."""
    halves = [np.array_split(sign * values, 2) for values in (first, second)]
    places = np.unique(halves[0][0])
    hits = [half[0].size - np.searchsorted(np.sort(half[0]), places, side="left") for half in halves]
    sure = [clopper_pearson(hit, half[0].size, level / 2) for hit, half in zip(hits, halves, strict=True)]
    threshold = places[int(np.argmax(np.log(np.maximum(sure[0][0], 1e-300)) - np.log(sure[1][1])))]
    (low, _), (_, high) = (clopper_pearson((test >= threshold).sum(), test.size, level / 2) for _, test in halves)
    return math.log(max(float(low), 1e-300)) - math.log(float(high))


def _of_fillers(release: Release, first: _Sample, second: _Sample, level: float) -> list[str]:
    if not first.fillers.size:
        return []
    size = len(release.mechanism.space)
    reasons = []
    if _apart(first.fillers, second.fillers, size, level / 2):
        reasons.append("the fillers depend on the words of the text")
    if release.budget.per == "document" and not isinstance(release.length, LengthGrid):
        return reasons  # the words of each document have another epsilon
    share = release.budget.share_of(int(first.lengths[0]))
    fillers = np.concatenate([first.fillers, second.fillers])
    draws = Draws.of_tokens(release.kernel().draw_key, fillers.size, document="public words")
    drawn = WeightTable(filler_weights(release.mechanism.space, release.policy)).cells(draws.uint64(FILLER))
    public = release.mechanism.privatize(drawn, share, draws).astype(np.int64)
    if _apart(fillers, public, size, level / 2):
        reasons.append("the fillers are not words drawn from the public counts and replaced at the stated epsilon")
    return reasons


def _apart(first: Ints, second: Ints, size: int, level: float) -> bool:
    """Say whether two samples of words have different laws: the first halves choose a set, the others decide."""
    ones, others = (np.array_split(np.random.default_rng(0).permutation(values), 2) for values in (first, second))
    counts = [np.bincount(half, minlength=size) / max(half.size, 1) for half in (ones[0], others[0])]
    chosen = counts[0] > counts[1]
    (low, high), (low_other, high_other) = (
        clopper_pearson(chosen[half].sum(), half.size, level / 4) for half in (ones[1], others[1])
    )
    return bool(low > high_other or low_other > high)
