"""A release checked from outside, by texts alone: against texts that were held out, and against its own law.

**Held-out texts.** Of each of m pairs of candidates a fair coin says which is released (``hold_out``). An auditor who
sees the release guesses which it was, or passes. If the guarantee allows a pair L nats, a guess is right with
probability at most ``1 / (1 + e^-L)``, whatever else is known, and guesses of different pairs are independent given the
release (Steinke, Nasr, Jagielski 2023). So the right ones refute every epsilon at which this number is too unlikely,
and the largest of these is a lower bound. m pairs show at most ``ln(m / ln(1 / level))``.

**The fit.** The owner, who has the originals, sees for each word or piece where the output stands in the law of its
input: by order of probability, or by rank and then by id. These places are uniform if the law is the stated one, at any
epsilon. How many are below each ``2^-j`` and above each ``1 - 2^-j`` is binomial; the least p-value, times their
number, is below ``level`` with at most this probability.

Words need a budget per token and no collocations, and only texts that keep their number of words are read. Texts have
to differ where equal ones get the same noise.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

from corpusveil.arrays import Float64, Int32
from corpusveil.display import Card, Shown, figure
from corpusveil.errors import DataError, SettingError
from corpusveil.kernel.passage_kernel import BETWEEN
from corpusveil.mechanisms import Mechanism
from corpusveil.passages.pieces import pieces_of
from corpusveil.text.classes import WORD
from corpusveil.text.tokens import string_buffers
from corpusveil.transforms.frames import frame_of
from corpusveil.transforms.release.passage_release import PassageRelease
from corpusveil.transforms.release.release import Release
from corpusveil_evaluate.attacks.picked_texts import piece_reader
from corpusveil_evaluate.readers.content_words import stop_words_of
from corpusveil_evaluate.terms import tokenizer_of_space

LEVEL = 0.001
"""The chance of refuting a release that keeps its promise."""
MOST = 4000
"""The words or pieces whose law is computed."""
LARGEST, STEPS = 64.0, 40
_CUTS = 2.0 ** -np.arange(1, 17)


@dataclass(frozen=True, slots=True, repr=False)
class HeldOutAudit(Shown):
    """Of ``guesses`` about ``pairs``, ``right`` were right. That shows epsilon ``shown``; the release has ``stated``.

    ``most`` is what this number of pairs can show at this ``level``. ``cv.audit_held_out`` makes it.

    >>> released, held_out = cv.hold_out(texts, release)
    >>> private = cv.privatize(released, release, ids=range(len(released)))
    >>> cv.audit_held_out(release, released, held_out, private).pairs == len(released)
    True
    """

    pairs: int
    guesses: int
    right: int
    stated: float
    shown: float
    most: float
    level: float

    @property
    def refuted(self) -> bool:
        """Whether more was shown than is stated."""
        return self.shown > self.stated

    def card(self) -> Card:
        """Return what was guessed, and what that shows."""
        at = f"at confidence {1 - self.level:.4g}"
        return Card(f"Held-out texts: {'REFUTED' if self.refuted else 'not refuted'}", [
            ("pairs", f"{self.pairs:,}; {self.guesses:,} guessed, {self.right:,} of them right"),
            ("shown", f"an epsilon of {self.shown:.3g}, {at}; {figure(self.stated)} is stated"),
            ("at most", f"{self.pairs:,} pairs can show {self.most:.3g}"),
        ])  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class LawFit(Shown):
    """The fit of the outputs of ``read`` words or pieces to their law: the p-value ``p``, to compare with ``level``.

    >>> cv.audit_fit(release, texts, cv.privatize(texts, release, ids=["r-1", "r-2"])).level
    0.001
    """

    read: int
    p: float
    level: float

    @property
    def refuted(self) -> bool:
        """Whether the texts do not fit the law, at this level."""
        return self.p < self.level

    def card(self) -> Card:
        """Return the p-value."""
        return Card(f"Fit to the law: {'REFUTED' if self.refuted else 'not refuted'}", [
            ("read", f"{self.read:,} words or pieces"), ("p", f"{self.p:.3g}; below {self.level:g} it is refuted"),
        ])  # fmt: skip


def hold_out(texts: Any, release: Release | PassageRelease, seed: int | None = None) -> tuple[list[str], list[str]]:
    """Return texts to release and, for each, the one that a fair coin held out. Both lists are private.

    Each pair is a text of ``texts`` and a copy with one piece from another text, or with one word replaced by its
    nearest. ``seed`` repeats the coins. Raises UserError if there is no such pair.

    >>> released, held_out = cv.hold_out(texts, release)
    >>> len(released) == len(held_out) > 0
    True
    """
    _stated(release)
    coins, given = np.random.default_rng(seed), [text for text in _texts(texts) if text.strip()]
    pairs = list((_exchanged if isinstance(release, PassageRelease) else _twins)(release, given, coins))
    if not pairs:
        raise DataError("texts: there are no two that a reader could tell apart by their words; give more.")
    turned = [pair if coin else pair[::-1] for pair, coin in zip(pairs, coins.integers(0, 2, len(pairs)), strict=True)]
    return [pair[0] for pair in turned], [pair[1] for pair in turned]


def audit_held_out(
    release: Release | PassageRelease, released: Any, held_out: Any, private: Any, *, level: float = LEVEL
) -> HeldOutAudit:
    """Return whether private texts say more about released texts than about those that a fair coin held out.

    The three are lists or columns [m]: what ``hold_out`` returned, and the private texts of the released ones. The
    ``release`` states the guarantee; its key is not used. Raises UserError for other lengths, and without a guarantee.

    >>> released, held_out = cv.hold_out(texts, release)
    >>> private = cv.privatize(released, release, ids=range(len(released)))
    >>> cv.audit_held_out(release, released, held_out, private).stated
    1.0
    """
    texts, stated = _of_one_size(released, held_out, private), _stated(release)
    of_passages = isinstance(release, PassageRelease)
    scores, losses = _of_pieces(release, *texts) if of_passages else _of_words(release, *texts)
    guessed, right = scores != 0, int((scores > 0).sum())
    shown, most = _least(losses[guessed] / stated, right, level), _least(losses / stated, losses.size, level)
    return HeldOutAudit(losses.size, int(guessed.sum()), right, stated, shown, most, level)


def audit_fit(release: Release | PassageRelease, originals: Any, private: Any, *, level: float = LEVEL) -> LawFit:
    """Return how well private texts fit the stated law of their originals, lists or columns [D], at any epsilon.

    >>> private = cv.privatize(texts, release, ids=["r-1", "r-2"])
    >>> cv.audit_fit(release, texts, private).read > 0
    True
    """
    (texts, out), random = _of_one_size(originals, private), np.random.default_rng(0)
    place = _places_of_pieces if isinstance(release, PassageRelease) else _places_of_words
    places = np.sort(np.fromiter(place(release, texts, out, random), np.float64))[:MOST]
    if not (n := places.size):
        raise DataError("private: no text has as many words or pieces as its original; give those of this release.")
    cuts = np.concatenate([_CUTS, 1 - _CUTS])
    below = np.searchsorted(places, cuts)
    tails = np.minimum(stats.binom.cdf(below, n, cuts), stats.binom.sf(below - 1, n, cuts))
    return LawFit(n, min(1.0, 2 * cuts.size * float(tails.min())), level)


def _texts(data: Any) -> list[str]:
    return [text or "" for text in frame_of(data, "text").texts.to_pylist()]


def _stated(release: Release | PassageRelease) -> float:
    if (stated := release.guarantee().epsilon) is None:
        raise SettingError(f"{release.mechanism.name} has no guarantee, so there is nothing to refute.")
    return stated


def _of_one_size(*columns: Any) -> list[list[str]]:
    texts = [_texts(column) for column in columns]
    if len({len(some) for some in texts}) > 1:
        raise SettingError(f"There are {' and '.join(f'{len(some):,}' for some in texts)} texts; give equal numbers.")
    return texts


def _least(losses: Float64, right: int, level: float) -> float:
    """Return the least epsilon at which ``right`` right guesses, of these losses for 1, are not too unlikely."""
    low, high, (sizes, counts) = 0.0, LARGEST, np.unique(losses, return_counts=True)
    for _ in range(STEPS if right else 0):
        middle, law = (low + high) / 2, np.ones(1)
        for count, chance in zip(counts, 1 / (1 + np.exp(-middle * sizes)), strict=True):
            law = np.convolve(law, stats.binom.pmf(np.arange(count + 1), count, chance))
        low, high = (middle, high) if law[right:].sum() <= level else (low, middle)
    return low


def _split(release: PassageRelease, texts: Sequence[str]) -> Any:
    buffers = string_buffers(pa.array(texts, pa.large_string()))
    return pieces_of(release.mechanism.store.tokenizer, *buffers, release.per, release.most_pieces)


def _exchanged(release: Any, texts: Sequence[str], coins: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Yield texts, each with a copy in which one piece is that of another text."""
    split, between = _split(release, texts), BETWEEN[release.per]
    pieces = [split.text(piece) for piece in range(len(split))]
    for first, last in itertools.pairwise(split.offsets.tolist()):
        own, at, other = pieces[first:last], int(coins.integers(first, last)), int(coins.integers(len(pieces)))
        if not first <= other < last:
            yield between.join(own), between.join([*pieces[first:at], pieces[other], *pieces[at + 1 : last]])


def _ranked(release: PassageRelease, texts: Sequence[str]) -> list[Int32]:
    """Return for each text the ids that rank first for its pieces, int32 [n, K]."""
    store, split = release.mechanism.store, _split(release, texts)
    near = store.search.several(store.encoder.of_pieces(split), release.mechanism.exchange(release.epsilon).neighbors)[
        0
    ]
    return np.split(near, split.offsets[1:-1])


def _of_pieces(
    release: Any, first: Sequence[str], second: Sequence[str], out: Sequence[str]
) -> tuple[Float64, Float64]:
    """Return how much more pieces say of the first text, 0 for nothing, and the nats a pair may differ by; [m]."""
    bound, scores, losses = release.mechanism.exchange(release.epsilon).epsilon, [], []
    read = piece_reader(release)
    for own, other, text in zip(_ranked(release, first), _ranked(release, second), out, strict=True):
        written = read(text, len(own)) if len(own) == len(other) else None
        if written and (apart := int((own != other).any(axis=1).sum())):
            hits, others = ((near == np.array(written)[:, None]).any(axis=1) for near in (own, other))
            scores.append(int(hits.sum()) - int(others.sum()))
            losses.append(apart * bound)
    return np.array(scores), np.array(losses)


def _places_of_pieces(
    release: Any, texts: Sequence[str], out: Sequence[str], random: np.random.Generator
) -> Iterator[float]:
    exchange = release.mechanism.exchange(release.epsilon)
    read, rest = piece_reader(release), exchange.pieces - exchange.neighbors
    hit = exchange.near + (1 - exchange.near) * exchange.neighbors / exchange.pieces
    for first, text in zip(_ranked(release, texts[:MOST]), out, strict=False):
        for own, piece in zip(first, read(text, len(first)) or (), strict=False):
            rank, below = np.flatnonzero(own == piece), int((own < piece).sum())
            if rank.size:
                yield hit * (int(rank[0]) + random.random()) / exchange.neighbors
            else:
                yield hit + (1 - hit) * (piece - below + random.random()) / rest


def _words(release: Any) -> tuple[Mechanism, float, Any]:
    """Return the mechanism, the epsilon of a word and which words are replaced, bool [V]."""
    if not isinstance(release, Release) or release.budget.per != "token" or release.collocations is not None:
        raise SettingError("An audit of words needs a release with a budget per token, without collocations.")
    space, policy = release.mechanism.space, release.policy
    stays = policy.stop_words != "privatize"
    drawn = ~stop_words_of(space, policy.language) if stays else np.ones(len(space), np.bool_)
    return release.mechanism, release.budget.epsilon, drawn


def _twins(release: Any, texts: Sequence[str], coins: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Yield texts, each with a copy in which one word is the nearest other one."""
    mechanism, epsilon, drawn = _words(release)
    numbers = {word: at for at, word in enumerate(mechanism.space.vocabulary.words) if drawn[at]}
    for text in texts:
        words = text.split()
        if known := [at for at, word in enumerate(words) if word in numbers]:
            at = int(coins.choice(known))
            distances = np.asarray(mechanism.distances(numbers[words[at]], epsilon))
            other = int(np.where((distances > 0) & drawn, distances, np.inf).argmin())
            yield text, " ".join([*words[:at], mechanism.space.word(other), *words[at + 1 :]])


def _ids(mechanism: Mechanism, *columns: Sequence[str]) -> Iterator[tuple[Int32, ...]]:
    """Yield the words of texts, -1 for unknown ones, where all columns have equally many."""
    tokenizer, read = tokenizer_of_space(mechanism.space), []
    for texts in columns:
        tokens = tokenizer.tokenize(texts)
        words = [slice(*bounds) for bounds in zip(tokens.offsets, tokens.offsets[1:], strict=False)]
        read.append([tokens.ids[at][tokens.classes[at] == WORD] for at in words])
    return (some for some in zip(*read, strict=True) if len({words.size for words in some}) == 1)


def _of_words(release: Any, first: Sequence[str], second: Sequence[str], out: Sequence[str]) -> tuple[Float64, Float64]:
    """Return the log-likelihood of the first text less that of the second, and the nats they may differ by; [m]."""
    mechanism, epsilon, _ = _words(release)
    scores, losses = [], []
    for texts in _ids(mechanism, first, second, out):
        a, b, seen = (some[(texts[0] != texts[1]) & (texts[2] >= 0)] for some in texts)
        if a.size and min(a.min(), b.min()) >= 0:
            laws = [mechanism.distributions(some, epsilon)[np.arange(some.size), seen] for some in (a, b)]
            scores.append(float(np.subtract(*np.log(np.maximum(laws, 1e-300))).sum()))
            apart = [
                np.asarray(mechanism.distances(int(word), epsilon))[other] for word, other in zip(a, b, strict=True)
            ]
            losses.append(epsilon * float(sum(apart)))
    return np.array(scores), np.array(losses)


def _places_of_words(
    release: Any, texts: Sequence[str], out: Sequence[str], random: np.random.Generator
) -> Iterator[float]:
    mechanism, epsilon, drawn = _words(release)
    left = MOST
    for own, seen in _ids(mechanism, texts, out):
        at = np.flatnonzero((own >= 0) & (seen >= 0) & drawn[own])[:left]
        left -= at.size
        for law, word in zip(mechanism.distributions(own[at], epsilon), seen[at], strict=True):
            yield float(law[law > law[word]].sum() + random.random() * law[law == law[word]].sum())
