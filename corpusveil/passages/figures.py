"""What a store knows, measured on public pieces that it does not have.

``similarity`` is the mean inner product by rank over ``127^2``, and ``overall`` that with any piece. ``back`` is the
share of the content word occurrences of a piece that stand in what replaces it, by the exact law, and ``back_floor``
that share for a piece drawn at random. ``picked`` is how often a reader who holds the candidates, and knows store and
law, picks the original of what was drawn, by the exact law: a piece that is near to some candidates is as likely of
each of these, and any other tells nothing. ``apart`` is that share among the near pieces alone, by the number K.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from corpusveil.arrays import Int32
from corpusveil.mechanisms.content import content_weights
from corpusveil.passages.encoder import LENGTH
from corpusveil.passages.law import Exchange, usual_neighbors
from corpusveil.passages.store import Store
from corpusveil.search.inner_products import ProductSearch

LEFT_OUT, LEAST = 2000, 100
"""The most pieces that are measured, and the fewest left-out ones; if there are fewer, the store's last tenth is."""
RANKS, CANDIDATES = 200, 1000
CHOICES = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of neighbors, K, among which people choose."""
EPSILONS = (8, 10, 12, 14)
NEAR_TWIN = 95
"""Per cent of the largest inner product above which a piece is a near duplicate."""
_FULL = LENGTH**2


def figures_of(store: Store, left: pa.Array, others: pa.Array) -> dict[str, Any]:
    """Return figures of left-out pieces of the same sources, *like*, and of ``others``, *unlike*, if there are any."""
    held = len(store)
    if len(left) < LEAST and (tenth := min(LEFT_OUT, held // 10)):
        held -= tenth
        left = store.texts.slice(held)
    rows, words = store.vectors[:held], _content(store, store.texts.slice(0, held))
    out: dict[str, Any] = {"pieces": held}
    for name, texts in (("like", left), ("unlike", others)):
        ids, products = ProductSearch(rows).several(points := store.encoder.encode(texts), min(RANKS, held))
        near = products[:, 0] * 100 > NEAR_TWIN * _FULL
        at = np.flatnonzero(~near)[:LEFT_OUT]
        if at.size:
            total = int(points[at].astype(np.int64).sum(axis=0) @ rows.astype(np.int64).sum(axis=0))
            similarity = products[at].astype(np.int64).sum(axis=0) / (at.size * _FULL)
            made = {
                "pieces": at.size, "near_duplicates": int(near.sum()), "similarity": similarity.round(6).tolist(),
                "overall": round(total / (at.size * held * _FULL), 6),
            }  # fmt: skip
            out[name] = made | _of_law(ids[at], words, _content(store, texts.take(pa.array(at))))
    return out


def choices(store: Store, epsilon: float) -> list[tuple[int, float, float, float]]:
    """Return for each number K of neighbors which shares are drawn near and picked, and the mean similarity."""
    apart = store.info.get("figures", {}).get("like", {}).get("apart", {})
    made = []
    for neighbors in (int(each) for each in apart if int(each) <= len(store.similarity)):
        exchange = Exchange.at(epsilon, len(store), neighbors)
        picked = exchange.near * apart[str(neighbors)] + (1 - exchange.near) / CANDIDATES
        made.append((neighbors, exchange.near, picked, exchange.mean(store.similarity, store.overall)))
    return made


def _content(store: Store, texts: pa.Array) -> sparse.csr_matrix:
    """Return how often each content word of the space is in each text, int32 [P, V]."""
    tokens = store.tokenizer.tokenize(texts)
    known = tokens.ids >= 0
    known[known] = content_weights(store.space)[tokens.ids[known]] > 0
    texts_of = np.repeat(np.arange(len(texts)), np.diff(tokens.offsets))[known]
    ones = np.ones(texts_of.size, np.int32)
    return sparse.csr_matrix((ones, (texts_of, tokens.ids[known])), (len(texts), len(store.space)))


def _of_law(ids: Int32, words: sparse.csr_matrix, own: sparse.csr_matrix) -> dict[str, Any]:
    """Return the figures of what replaces pieces whose nearest ones are ``ids``, int32 [T, ranks]."""
    held, stands, occurrences = words.shape[0], (words > 0).astype(np.int32), max(int(own.sum()), 1)
    floor = (own.sum(axis=0) @ stands.sum(axis=0).T).item() / (held * occurrences)
    shared = np.array([own.multiply(stands[ids[:, rank]]).sum() for rank in range(ids.shape[1])]) / occurrences
    apart = {str(k): round(_apart(ids[:CANDIDATES, :k]), 4) for k in CHOICES if k <= ids.shape[1]}
    made: dict[str, Any] = {
        "back_floor": round(floor, 4), "apart": apart, "neighbors": {}, "back": {}, "picked": {},
    }  # fmt: skip
    for epsilon in EPSILONS:
        exchange = Exchange.at(epsilon, held, min(usual_neighbors(epsilon, held), ids.shape[1]))
        made["neighbors"][str(epsilon)] = exchange.neighbors
        made["back"][str(epsilon)] = round(exchange.mean(shared, floor), 4)
        made["picked"][str(epsilon)] = round(_picked(exchange, ids[:CANDIDATES, : exchange.neighbors]), 3)
    return made


def _apart(near: Int32) -> float:
    """Return how often the original of a near piece is picked, of all to which that is near; ``near`` int32 [C, K]."""
    return float((1 / np.bincount(near.reshape(-1))[near]).mean())


def _picked(exchange: Exchange, near: Int32) -> float:
    return exchange.near * _apart(near) + (1 - exchange.near) / len(near)
