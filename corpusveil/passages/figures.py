"""What a store knows, measured on public pieces that it does not have.

``similarity`` is the mean inner product by rank over ``127^2``, and ``overall`` that with any piece. ``apart`` is how
often a reader who holds the candidates, and knows store and law, picks the original of a near piece, by the number K
of neighbors: a piece that is near to some candidates is as likely of each of these. Any other piece tells nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from corpusveil.passages.encoder import LENGTH
from corpusveil.passages.law import Exchange
from corpusveil.passages.store import Store
from corpusveil.search.inner_products import ProductSearch

LEFT_OUT, LEAST = 2000, 100
"""The most pieces that are measured, and the fewest left-out ones; if there are fewer, the store's last tenth is."""
RANKS, CANDIDATES = 200, 1000
CHOICES = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of neighbors, K, among which people choose."""
NEAR_TWIN = 95
"""Per cent of the largest inner product above which a piece is a near duplicate."""
_FULL = LENGTH**2


def figures_of(store: Store, left: pa.Array) -> dict[str, Any]:
    """Return figures of left-out pieces of the same sources."""
    held = len(store)
    if len(left) < LEAST and (tenth := min(LEFT_OUT, held // 10)):
        held -= tenth
        left = store.texts.slice(held)
    rows, points = store.vectors[:held], store.encoder.encode(left)
    ids, products = ProductSearch(rows).several(points, min(RANKS, held))
    near = products[:, 0] * 100 > NEAR_TWIN * _FULL
    at = np.flatnonzero(~near)[:LEFT_OUT]
    if not at.size:
        return {"pieces": held}
    total = int(points[at].astype(np.int64).sum(axis=0) @ rows.astype(np.int64).sum(axis=0))
    similarity = products[at].astype(np.int64).sum(axis=0) / (at.size * _FULL)
    nearest = ids[at][:CANDIDATES]
    near_to = {k: nearest[:, :k] for k in CHOICES if k <= ids.shape[1]}
    like = {
        "pieces": at.size, "near_duplicates": int(near.sum()), "similarity": similarity.round(6).tolist(),
        "overall": round(total / (at.size * held * _FULL), 6),
        # how often the original of a near piece is picked, of all to which that is near
        "apart": {str(k): round(float((1 / np.bincount(n.ravel())[n]).mean()), 4) for k, n in near_to.items()},
    }  # fmt: skip
    return {"pieces": held, "like": like}


def choices(store: Store, epsilon: float) -> list[tuple[int, float, float, float]]:
    """Return for each number K of neighbors which shares are drawn near and picked, and the mean similarity."""
    apart = store.like.get("apart", {})
    made = []
    for neighbors in (int(each) for each in apart if int(each) <= len(store.similarity)):
        exchange = Exchange.at(epsilon, len(store), neighbors)
        picked = exchange.near * apart[str(neighbors)] + (1 - exchange.near) / CANDIDATES
        made.append((neighbors, exchange.near, picked, exchange.mean(store.similarity, store.overall)))
    return made
