"""Picking the original of a release by passages from a list, by the exact law.

The reader holds texts of the input, and knows store, ranking, law and epsilon. A list's text whose pieces would be
these with the largest probability is picked; texts with another number of pieces are impossible, and equally likely
ones share. Of a piece the law has two values, so the likeliest are those with the most *hits*: released pieces among
the K that rank first for the piece in their place. With all texts alike before, no other reader picks more often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy import sparse

from corpusveil.kernel.passage_kernel import BETWEEN
from corpusveil.passages.pieces import pieces_of
from corpusveil.text.tokens import string_buffers
from corpusveil.transforms.release.passage_release import PassageRelease
from corpusveil_evaluate.matching import spread
from corpusveil_evaluate.statistics.statistic import register
from corpusveil_evaluate.terms import check_pairs

CANDIDATES = 1000
PICKED = register(
    "texts picked from a list", group="attack", tile=True, floor="by their number of pieces", of="of the input's own",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Picked:
    """The ``share`` of texts that are picked from ``candidates`` different ones; ``floor``: by numbers of pieces alone.

    ``unread`` of the texts are not made of as many pieces of the store as their originals have; they count for nothing.
    """

    share: float
    floor: float
    candidates: int
    unread: int


def texts_picked(release: PassageRelease, originals: Sequence[str], privates: Sequence[str]) -> Picked:
    """Return how often the original of a released text is picked from at most ``CANDIDATES`` originals.

    ``release`` has the settings of the release, under any key. Raises UserError unless each original has its private
    text.
    """
    check_pairs(originals, privates)
    different = list({text: row for row, text in reversed(list(enumerate(originals)))}.values())[::-1]
    rows = [different[at] for at in spread(len(different), CANDIDATES)]
    store, exchange = release.mechanism.store, release.mechanism.exchange(release.epsilon)
    texts = pa.array([originals[row] for row in rows], pa.large_string())
    split = pieces_of(store.tokenizer, *string_buffers(texts), release.per, release.most_pieces)
    points = store.encoder.of_pieces(split)
    near, _ = store.search.several(points, exchange.neighbors)
    ends = np.arange(0, near.size + 1, near.shape[1])
    has = sparse.csr_matrix((np.ones(near.size, np.int32), near.ravel(), ends), (len(near), len(store)))
    sizes = np.diff(split.offsets)
    read_pieces = piece_reader(release)
    won, alike, unread = 0.0, 0.0, 0
    for size in np.unique(sizes).tolist():
        equal = np.flatnonzero(sizes == size)
        parts = (read_pieces(privates[rows[row]], size) for row in equal.tolist())
        read = {at: ids for at, ids in enumerate(parts) if ids is not None}
        there = list(read)
        unread += equal.size - len(there)
        hits = np.zeros((equal.size, len(there)), np.int32)
        for place in range(size):
            hits += has[split.offsets[equal] + place][:, [ids[place] for ids in read.values()]].toarray()
        best = hits == hits.max(axis=0, initial=0)
        won += float((best[there, np.arange(len(there))] / best.sum(axis=0)).sum())
        alike += len(there) / equal.size
    number = max(1, len(rows) - unread)
    return Picked(won / number, alike / number, len(rows), unread)


def piece_reader(release: PassageRelease) -> Callable[[str, int], list[int] | None]:
    """Return what tells of which n pieces of the store a released text is made; None if it is not made of n."""
    numbers = {text: number for number, text in enumerate(release.mechanism.store.texts.to_pylist())}
    between, longest = BETWEEN[release.per], max(map(len, numbers))

    def read(text: str, size: int) -> list[int] | None:
        if size == 0:
            return None if text else []
        if size == 1:
            return [numbers[text]] if text in numbers else None
        end = text.find(between)
        while 0 <= end <= longest:
            if (first := numbers.get(text[:end])) is not None:
                rest = read(text[end + len(between) :], size - 1)
                if rest is not None:
                    return [first, *rest]
            end = text.find(between, end + 1)
        return None

    return read
