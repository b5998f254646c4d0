"""What the code of the comparative analysis runs (Meisenbacher, Nandakumar, Klymenko, Matthes 2024), for its figures.

Its public code differs from the papers that it names, and its printed rows are those of the code:

    santext-as-run           distances of the first three coordinates only
    vickrey-cmp-as-run       not the word nearest to the noisy vector, whichever that is; of the next two, by exp(-t r)
    truncated-gumbel-as-run  below the floor of epsilon, b of the real part of a complex W; K is never n, except at n
    syntf-as-run             of a word's synonyms each alike, since each has the word's own score, whatever epsilon is

The first two read the input by three coordinates, or by its noisy vector alone: what is proved of SanText and of CMP
holds for them. The others guarantee nothing. WordNet's synonyms are the K nearest words here.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from corpusveil.arrays import Float64, Int32
from corpusveil.errors import DataError
from corpusveil.mechanisms.distances import diameter_bound, euclidean
from corpusveil.mechanisms.exponential_rows import ExponentialRows, rows_of
from corpusveil.mechanisms.on_sets import SetTable, set_table
from corpusveil.mechanisms.on_vectors import search_of
from corpusveil.mechanisms.registry import register
from corpusveil.mechanisms.santext import SanText
from corpusveil.mechanisms.vickrey import VickreyCmp
from corpusveil.sampling.weights import check_epsilon
from corpusveil.spaces import Space
from corpusveil.spaces.space import content_digest
from corpusveil_evaluate.mechanisms.custext_per_word import CusTextPerWord
from corpusveil_evaluate.mechanisms.nearest_sets import nearest_sets
from corpusveil_evaluate.mechanisms.truncated_gumbel import TruncatedGumbel, extent

COORDINATES = 3
ALIKE = 1e-9
"""An epsilon at which candidates have equal weights."""
_PAPER = "as run by the comparative analysis (Meisenbacher, Nandakumar, Klymenko, Matthes 2024)"


@functools.lru_cache(maxsize=4)
def _first(space: Space) -> Space:
    """Return the space of the first three coordinates."""
    vectors = np.ascontiguousarray(space.vectors[:, :COORDINATES])
    return Space(space.vocabulary, vectors, space.lists, content_digest(space.vocabulary, vectors, space.lists))


@register
@dataclass(frozen=True, slots=True)
class SanTextAsRun(SanText):
    """SanText on the first three coordinates, which are those of its distance.

    >>> cv.SanTextAsRun(space).guarantee(1.0).metric
    'the Euclidean distance of the first 3 coordinates of vectors'
    """

    name: ClassVar[str] = "santext-as-run"
    paper: ClassVar[str] = f"SanText {_PAPER}"
    summary: ClassVar[str] = "SanText on the first three coordinates of vectors, as a study ran it"

    def exponential_rows(self, epsilon: float) -> ExponentialRows:
        return rows_of(_first(self.space), check_epsilon(epsilon) / 2)

    def diameter(self) -> float:
        return diameter_bound(_first(self.space))

    def distances(self, word: int, epsilon: float) -> Float64:  # noqa: ARG002 - the same at any
        return euclidean(_first(self.space), self.check_id(word))

    @property
    def distance(self) -> str:
        return f"the Euclidean distance of the first {COORDINATES} coordinates of vectors"


@register
@dataclass(frozen=True, slots=True)
class VickreyCmpAsRun(VickreyCmp):
    """The second or the third of the words nearest to the noisy vector.

    >>> cv.VickreyCmpAsRun(space).guarantee(1.0).holds
    True
    """

    name: ClassVar[str] = "vickrey-cmp-as-run"
    paper: ClassVar[str] = f"Vickrey {_PAPER}"
    summary: ClassVar[str] = (
        "cmp noise; the second or third of the words nearest to the noisy vector, as a study ran it"
    )

    def candidates(self, points: Float64, ids: Int32) -> Int32:  # noqa: ARG002 - of the noisy vector alone
        if len(self.space) < 3:
            raise DataError(f"{self.name}: it needs a space of at least three words.")
        return np.asarray(search_of(self.space).several(points, 3)[:, 1:])

    def chances(self, points: Float64, near: Int32) -> Float64:
        gaps = (points[:, None, :] - self.space.vectors[near]).astype(np.float64)
        apart = np.sqrt((gaps**2).sum(axis=2))
        return np.asarray(1 / (1 + np.exp(-self.t * (apart[:, 1] - apart[:, 0]))))


@register
@dataclass(frozen=True, slots=True)
class TruncatedGumbelAsRun(TruncatedGumbel):
    """Truncated Gumbel as a study ran it: refused only just below its floor of epsilon, where b is negative.

    >>> cv.TruncatedGumbelAsRun(space).guarantee(1.0).holds
    False
    """

    name: ClassVar[str] = "truncated-gumbel-as-run"
    paper: ClassVar[str] = f"Truncated Gumbel {_PAPER}"
    summary: ClassVar[str] = "truncated Gumbel by the real part of a complex Lambert W, as a study ran it"
    flaw: ClassVar[str] = (
        "Below (2 (1 + ln n) + 3) / D0 no b is defined. The real part of a complex W gives one that hardly depends on "
        "epsilon, and a word becomes one of a few near words only, which no epsilon bounds."
    )

    def check(self, epsilon: float) -> float:
        return check_epsilon(epsilon)

    def scale(self, epsilon: float) -> float:
        from scipy import special  # loaded late, as in ``on_vectors``

        least, most = extent(self.space)
        alpha = (check_epsilon(epsilon) - 2 * (1 + np.log(len(self.space))) / least) / 3
        divisor = float(special.lambertw(2 * alpha * most).real)
        if alpha > 0:
            divisor = min(divisor, float(np.log(alpha * least)))
        if not divisor > 0:
            raise DataError(f"epsilon = {epsilon:g}: {self.name} has no positive b in this space; choose another.")
        return 2 * most / divisor

    def counts(self) -> Float64:
        return _at_most(len(self.space))


@functools.lru_cache(maxsize=16)
def _at_most(n: int) -> Float64:
    """Return the law of a Poisson(ln n) number that is drawn again above n, 0 as 1; float64 [n]."""
    from scipy import stats

    law = stats.poisson.pmf(np.arange(n + 1), np.log(n))
    law[1] += law[0]
    return np.asarray(law[1:] / law[1:].sum())


@register
@dataclass(frozen=True, slots=True)
class SynTfAsRun(CusTextPerWord):
    """One of ``K`` near words, the word among them, all equally likely, at any epsilon.

    >>> mechanism = cv.SynTfAsRun(space, K=5)
    >>> mechanism.retention(1.0) == mechanism.retention(10.0)
    True
    """

    name: ClassVar[str] = "syntf-as-run"
    paper: ClassVar[str] = f"SynTF {_PAPER}"
    summary: ClassVar[str] = "one of K near words for synonyms, equally likely at any epsilon, as a study ran SynTF"
    claim: ClassVar[str] = "epsilon for any two words"

    def table(self, epsilon: float) -> SetTable:
        check_epsilon(epsilon)
        return set_table(nearest_sets, self.space, self.K, ALIKE, 0)
