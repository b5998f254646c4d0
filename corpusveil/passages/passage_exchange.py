"""``passage-exchange``: each piece of text is replaced by one of the K nearest of a public store, or by any of them.

The ranking is by inner product of int8 vectors (``encoder.py``, ``search/inner_products.py``), equal ones by id; the
law is that of ``law.py``. The guarantee does not depend on the ranking, only on its being a function of one piece and
of public data. Relatives: k-subset and staircase mechanisms (Kairouz, Oh, Viswanath 2014), candidates of sentences
(Meehan, Mrini, Chaudhuri 2022).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from corpusveil.arrays import Float64, Int8, Int32
from corpusveil.errors import SettingError, check_whole, of_other_type
from corpusveil.mechanisms.base import COMPUTATIONAL, Guarantee
from corpusveil.passages.law import Exchange, usual_neighbors
from corpusveil.passages.store import Store
from corpusveil.sampling.draws import EXCHANGE, Draws
from corpusveil.sampling.weights import TOTAL, check_epsilon

MOST_NEIGHBORS = 1000
_PUBLIC = (
    "The store is public, and was made without the private text. This is checked on the first texts: a release reveals "
    "that they passed."
)


@dataclass(frozen=True, slots=True)
class PassageExchange:
    """The mechanism that replaces a text by one of the N passages of a ``store``, mostly by a near one.

    ``neighbors`` is K, the number of near ones; None: the fewest (at least 4) such that four texts in five get one.
    Raises UserError unless it is a whole number from 1 to N. The law: ``help(corpusveil.passages.law)``.

    >>> cv.PassageExchange(cv.load_store("en"), neighbors=8).guarantee(epsilon=10).neighbors
    'any two passages, of any length'
    """

    store: Store
    neighbors: int | None = None

    name: ClassVar[str] = "passage-exchange"
    paper: ClassVar[str] = "corpusveil 0.5"
    summary: ClassVar[str] = "each text becomes a passage of a public store: one of the nearest, or any"
    claim: ClassVar[str] = "epsilon for any two passages, of any length"
    private: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.store, Store):
            raise of_other_type("store", self.store, "cv.load_store(URL)")
        if self.neighbors is not None:
            check_whole("neighbors", self.neighbors, 1, min(len(self.store), MOST_NEIGHBORS))

    def exchange(self, epsilon: float) -> Exchange:
        """Return the integers that are sampled at an epsilon. Raises UserError where 64-bit draws do not reach it."""
        return _exchange(self.store, self.neighbors, check_epsilon(epsilon))

    def privatize(self, points: Int8, epsilon: float, draws: Draws) -> Int32:
        """Return the ids of the pieces that replace pieces with these vectors, int8 [P, d] -> int32 [P].

        ``draws`` are those of the same P pieces. Raises UserError for an epsilon that is not a finite number above 0.
        """
        if len(draws) != len(points):
            raise SettingError(f"{len(draws)} draws for {len(points)} passages; give one draw for each.")
        ranks, pieces = self.exchange(epsilon).draw(*draws.pair(EXCHANGE))
        near, out = np.flatnonzero(ranks >= 0), pieces.astype(np.int32)
        out[near] = self.store.search.at_ranks(points[near], ranks[near])
        return out

    def distribution(self, point: Int8, epsilon: float) -> Float64:
        """Return the law of what replaces a piece with this vector, int8 [d] -> float64 [N], as it is sampled."""
        exchange = self.exchange(epsilon)
        ranking, _ = self.store.search.several(point[None], exchange.neighbors)
        return np.array([weight / TOTAL**2 for weight in exchange.weights(ranking[0])])

    def guarantee(self, epsilon: float) -> Guarantee:
        """Return the guarantee of one piece at this epsilon, of exactly the integers that are sampled."""
        exchange = self.exchange(epsilon)
        return Guarantee(
            mechanism=self.name,
            metric="none: any two passages are at distance 1",
            epsilon=epsilon,
            plain_ldp=exchange.epsilon,
            neighbors="any two passages, of any length",
            disclosed=(),
            assumptions=(COMPUTATIONAL, _PUBLIC),
            claim=self.claim,
            holds=True,
            notes=(self._in_words(exchange),),
            per="passage",
        )

    def _in_words(self, exchange: Exchange) -> str:
        return (
            f"With probability {exchange.near:.4g}, a passage becomes one of the {exchange.neighbors:,} of the store "
            f"that rank first for it, each alike; otherwise, any of its {len(self.store):,}. The bound is that of the "
            "integers that are drawn."
        )

    def parameters(self) -> dict[str, Any]:
        """Return everything except the store that shapes the law, for a release digest."""
        return {"neighbors": self.neighbors}


@functools.lru_cache(maxsize=16)
def _exchange(store: Store, neighbors: int | None, epsilon: float) -> Exchange:
    size = len(store)
    if neighbors is None:
        neighbors = min(usual_neighbors(epsilon, size), MOST_NEIGHBORS)
    return Exchange.at(epsilon, size, neighbors)
