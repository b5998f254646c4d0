"""Contextual risk: how many words the best guess from a whole sentence gets right, and the epsilon for a given risk.

The attacker has the mechanism's law (or public samples of it), word frequencies and a language model, and searches as
``denoise`` does. The text is genuine C4, which the model has not seen. The attacker's share is never below that of the
guess from one word, nor below that of the released word itself: the largest of the three counts.

``cv.context_risk`` does not replace this: the model itself generates its text, which is guessed 4 to 5 points more
often (``docs/readable.md``), and the epsilons of its grid are too far apart to compare mechanisms at one risk.
"""

import functools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

import corpusveil as cv
from benchmarks import inputs
from benchmarks.report import Skipped
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.collocations.model import LanguageModel
from corpusveil.collocations.modelling import build_model
from corpusveil.jobs.local import Local
from corpusveil.mechanisms import Mechanism
from corpusveil.spaces import Space, Vocabulary, read_counts
from corpusveil.storage import formats
from corpusveil.storage.artifacts import is_artifact
from corpusveil.storage.rows import Columns
from corpusveil.text.tokens import string_buffers
from corpusveil.transforms.denoise import Denoiser, Search, reader_of

BALANCE = 1.0
TOKENS = 8_000
"""The number of attacked words of public text; a share of .5 has a standard error of .006."""
WITHIN, STEPS = 0.006, 7
"""The tolerance of the requested risk, and the most epsilons to try."""
FLAT = 0.008
"""A difference of risks at a quarter of epsilon that may be chance."""
ALIGNED = cv.TextPolicy(numbers="keep", unknown_words="mask", layout="keep")
"""Keeps every replaced word in the place of its original, so that guesses can be compared."""


@functools.cache
def model() -> LanguageModel:
    """Return a model of all shards but the last."""
    counts, folder = counted(), inputs.work() / "utility-model"
    if not is_artifact(str(folder)):
        build_model(counts, str(folder), Local())
    return cv.load_model(str(folder))


@functools.cache
def counted() -> str:
    """Return the address of the n-grams of all shards but the last."""
    folder = str(inputs.work() / "utility-counts")
    if not is_artifact(folder):
        count_corpus(inputs.shards()[:-1], folder, Local(), CountOptions(3, 2))
    return folder


@functools.cache
def space(balance: float, order: str, words: int) -> Space:
    """Return the space of the most frequent words that a reader finds again, 0 for all of them."""
    folder = inputs.work() / f"utility-space-{words or 'all'}-{balance:g}-{order}"
    if not is_artifact(str(folder)):
        vectors = cv.read_vectors(inputs.vectors())
        counts = read_counts(counted(), Vocabulary.from_words(vectors.words))
        order_of = np.argsort(-counts, kind="stable").tolist()
        only = [word for row in order_of if (word := vectors.words[row]).isalpha() and word.islower()]
        cv.build_space(vectors, counts=counts, order=order, balance=balance, only=only[: words or None]).save(
            str(folder)
        )
    return cv.load_space(str(folder))


@functools.cache
def public_text() -> pa.Array:
    """Return texts to attack, of genuine C4."""
    shared = inputs.data()
    if shared is None:
        raise Skipped("the shared data are not on this machine.")
    (shard,) = sorted(str(path) for path in (shared / "c4-genuine").glob("*.json.gz"))
    with open(shard, "rb") as file:
        texts = next(formats.find(formats.form_of(shard)).batches(file, shard, Columns())).texts
    words = np.cumsum([len(text.split()) for text in texts.to_pylist()])
    return texts[: int(np.searchsorted(words, TOKENS)) + 1]


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of correct words: as released, guessed one by one, and searched in their sentences."""

    unchanged: float
    alone: float
    searched: float
    words: int

    @property
    def risk(self) -> float:
        return max(self.unchanged, self.alone, self.searched)

    @property
    def single(self) -> float:
        return max(self.unchanged, self.alone)


def shares(mechanism: Mechanism, epsilon: float, search: Search | None = None) -> Shares:
    """Attack a release of the public text."""
    release = cv.Release(mechanism, cv.Budget(epsilon), ALIGNED, cv.Key.for_tests(), accept_no_guarantee=True)
    before, kernel = public_text(), release.kernel()
    drawn, _ = kernel.privatize(before, list(range(len(before))), "text")
    denoiser = Denoiser(mechanism, release.budget, ALIGNED, model(), search or Search())
    reader = reader_of(denoiser)
    originals, _ = kernel.known(*string_buffers(before))
    tokens, replaced, kept = denoiser.read(reader, *string_buffers(drawn))
    if originals.size != int(replaced.sum()):
        raise SystemExit("The words of a release can't be told apart here; look at the policy of this benchmark.")
    found = denoiser.guesses(reader, tokens, replaced, kept)[replaced]
    seen = tokens.ids[replaced]
    alone = reader.candidates.words[reader.candidates.rows(epsilon, seen), 0]
    return Shares(*(float((guess == originals).mean()) for guess in (seen, alone, found)), originals.size)


STARTS = {
    "custext": 2.0,
    "custext-per-word": 2.0,
    "santext": 15.0,
    "tem": 16.0,
    "truncated-gumbel": 15.0,
    "tight-exponential": 11.0,
    "syntf": 30.0,
    "cmp": 90.0,
    "mahalanobis": 90.0,
    "vickrey-cmp": 110.0,
    "vickrey-mahalanobis": 110.0,
}
"""Starting epsilons of mechanisms that are not on lists; found by trial."""


class OutOfReach(Exception):
    """No epsilon has this risk; the message names the neighboring epsilons."""


def epsilon_at(
    name: str, mechanism: Mechanism, risk: float, attack: Callable[[Mechanism, float], Shares] = shares
) -> tuple[float, dict[str, float]]:
    """Return the epsilon at which the contextual attacker has this risk, and the shares there.

    All trials are kept in the work folder, so that other risks begin with narrower brackets.
    """
    path = inputs.work() / "utility-risks.json"
    tried: dict[str, dict[str, float]] = _kept(path).get(name, {})

    def at(epsilon: float) -> float:
        known = f"{epsilon:.6g}"
        if known not in tried:
            one = attack(mechanism, float(known))
            tried[known] = {"risk": one.risk, "unchanged": one.unchanged, "single": one.single, "words": one.words}
            path.write_bytes(orjson.dumps({**_kept(path), name: tried}, option=orjson.OPT_INDENT_2))
            print(f"  {name} at {known}: {tried[known]}", flush=True)
        return float(tried[known]["risk"])

    for _ in range(STEPS):
        points = sorted((float(one), at(float(one))) for one in tried)
        near = min(points, key=lambda point: abs(point[1] - risk), default=None)
        if near is not None and abs(near[1] - risk) <= WITHIN:
            break
        if _flat(points, risk):
            break
        at(_next(points, risk, mechanism))
    points = [(float(one), figures) for one, figures in tried.items()]
    epsilon, figures = min(points, key=lambda point: abs(point[1]["risk"] - risk))
    if abs(figures["risk"] - risk) > 0.03:
        lowest, highest = (f([one["risk"] for one in tried.values()]) for f in (min, max))
        raise OutOfReach(f"{name}: no epsilon has risk {risk:g}; tried ones have {lowest:.2f} to {highest:.2f}.")
    return epsilon, figures


def _flat(points: list[tuple[float, float]], risk: float) -> bool:
    """Say whether the risk has stopped falling, or rising, before it reaches the requested risk."""
    if len(points) < 2:
        return False
    falling, rising = points[0][1] - risk, risk - points[-1][1]
    return (falling > 0 and points[1][1] - points[0][1] < FLAT) or (rising > 0 and points[-1][1] - points[-2][1] < FLAT)


def _kept(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_bytes())) if path.exists() else {}


def _next(points: list[tuple[float, float]], risk: float, mechanism: Mechanism) -> float:
    """Return the next epsilon to try: between the nearest two by the logit of the risk, or beyond the last."""
    below = [point for point in points if point[1] < risk]
    above = [point for point in points if point[1] > risk]
    if below and above:
        (low, least), (high, most) = below[-1], above[0]
        part = (_logit(risk) - _logit(least)) / (_logit(most) - _logit(least))
        return math.exp(math.log(low) + min(0.9, max(0.1, part)) * math.log(high / low))
    if not points:
        return STARTS.get(mechanism.name, 0.3)
    known = mechanism.name in STARTS
    return points[-1][0] * (1.25 if known else 2) if below else points[0][0] / (1.4 if known else 4)


def _logit(share: float) -> float:
    share = min(max(share, 1e-3), 1 - 1e-3)
    return math.log(share / (1 - share))
