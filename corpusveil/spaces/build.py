"""Build a space: choose the vocabulary, order the lists, hash the content."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from corpusveil.arrays import Float32, Int64
from corpusveil.errors import DataError, SettingError, not_a_choice
from corpusveil.spaces.balance import balanced, resolved
from corpusveil.spaces.grammar import OF_LISTS, Neighbors, checked, with_grammar
from corpusveil.spaces.list_orders import ORDERS
from corpusveil.spaces.space import KIND, VERSION, Space, content_digest
from corpusveil.spaces.vectors import Vectors, scaled
from corpusveil.spaces.vocabulary import Vocabulary, rows_without
from corpusveil.waiting import waiting


def build_space(
    vectors: Vectors | Sequence[Vectors],
    *,
    lists: int = 1,
    counts: Int64 | None = None,
    order: str | None = None,
    only: Collection[str] | None = None,
    exclude: Collection[str] = (),
    balance: float | None = 0.0,
    neighbors: Neighbors | None = None,
    grammar: float | None = None,
    scale: float | None = None,
) -> Space:
    """Build a space from one embedding or several; ``save(url)`` writes it.

    With several, the vocabulary is the words that all share, and every list has all of them.

    Args:
        vectors: the embeddings; the first gives the order of the words, the vectors of the space and its counts.
        lists: lists per embedding, each from another start word; 0 for mechanisms that need none.
        counts: int64 [V of the first embedding], public counts; by default those of its file.
        order: how lists are ordered, ``greedy`` or ``improved``; by default improved if they are balanced.
        only: keep only these words.
        exclude: words that no text may receive: left out in any case, before an apostrophe and in collocations.
        balance: the weight of public frequency against meaning; 0 leaves vectors as given, None balances only
            the lists, and only if there are counts, as ``corpusveil space`` does.
        neighbors: public counts of the neighbors of the first embedding's words (``public_counts.read_neighbors``).
        grammar: the weight of grammar against meaning in the order of lists; None is 1 if there are neighbors.
        scale: the median distance of two words to which vectors are scaled; None leaves them as given.

    Raises UserError for arguments out of range, a balance without counts, a grammar without neighbors, and if the
    embeddings share fewer than two words.

    >>> small = cv.build_space(cv.read_vectors("glove.txt"), lists=2)
    >>> small.lists.shape == (2, len(small))
    True
    """
    embeddings = [vectors] if isinstance(vectors, Vectors) else list(vectors)
    if not all(isinstance(embedding, Vectors) for embedding in embeddings):
        raise SettingError("vectors: give the result of cv.read_vectors(URL), not addresses or arrays.")
    if not embeddings:
        raise SettingError("There is no embedding; give at least one.")
    if order is not None and order not in ORDERS:
        raise not_a_choice("order", order, ORDERS)
    public = _public_counts(embeddings[0], counts)
    without = "there are no public counts" if public is None else None if lists else "there are no lists"
    chosen = resolved(balance, order, without, "" if counts is not None else ", here those of the vectors")
    of_use, use_note = _grammar(lists, neighbors, grammar)
    indices = _rows(embeddings, only, exclude)
    words = [word for word in indices[0] if all(word in index for index in indices)]
    if len(words) < 2:
        names = ", ".join(e.source for e in embeddings)
        raise DataError(
            f"{names}: these have {len(words)} of the requested words in common, and a space needs at least two; "
            "give other embeddings or more words."
        )
    rows = [np.array([index[word] for word in words]) for index in indices]
    if not 0 <= lists <= len(words):
        raise SettingError(f"lists={lists}: give 0 to {len(words)}, since each list starts from another word.")
    vocabulary = Vocabulary.from_words(words, None if public is None else public[rows[0]])
    bits = np.random.PCG64(0)
    starts = [_starts(bits, lists, len(words)) for _ in embeddings]
    pairs = zip(embeddings, rows, strict=True)  # without a copy where all are taken
    restricted = [e.vectors if np.array_equal(r, np.arange(len(e.vectors))) else e.vectors[r] for e, r in pairs]
    ordered, scales = restricted, None
    if of_use and neighbors is not None:
        use = neighbors.neighbors_among(embeddings[0].words, words)
        with waiting("learning how words are used"):
            ordered = [with_grammar(v, use, of_use) for v in restricted]
    if chosen.weight:

        def weighted(several: Sequence[Float32]) -> list[tuple[Float32, float]]:
            pairs = zip(several, embeddings, strict=True)
            return [balanced(v, e.source, vocabulary.counts, chosen.weight) for v, e in pairs]

        try:
            longer = weighted(ordered)
            if not chosen.alone:
                restricted = [v for v, _ in weighted(restricted)]
        except (SettingError, DataError):
            if not chosen.alone:
                raise
            chosen = resolved(None, order, "all words have the same public count, or the same vector")
        else:
            ordered, scales = [v for v, _ in longer], [scale for _, scale in longer]
    orders = np.concatenate([ORDERS[chosen.order](v, s) for v, s in zip(ordered, starts, strict=True)])
    named = [[words[start] for start in ids] for ids in starts]
    made = _made(embeddings, [*map(len, indices)], named, chosen.order)
    if scales is not None:
        made |= {"balance": chosen.weight, "scales": scales}
    if balance != 0:
        made["balance_note"] = chosen.sentence()
    made |= use_note if scale is None else use_note | {"scale": scale}
    own = restricted[0] if scale is None else scaled(restricted[0], scale)
    digest = content_digest(vocabulary, own, orders)
    info = {
        "kind": KIND, "version": VERSION, "digest": digest, "words": len(own), "dimensions": int(own.shape[1]),
        "lists": len(orders), "counts": vocabulary.counts is not None, "made": made,
    }  # fmt: skip
    return Space(vocabulary, own, orders, digest, None, info)


def in_common(space: Space) -> str:
    """Say how many words all embeddings of a space have, and how many each has; empty for a single embedding."""
    sources = space.info["made"]["sources"]
    each = ", ".join(f"{source['words']:,} in {source['name']}" for source in sources)
    return "" if len(sources) < 2 else f"{len(space):,} words are in all {len(sources)} embeddings ({each})"


def _grammar(lists: int, neighbors: Neighbors | None, grammar: float | None) -> tuple[float, dict[str, Any]]:
    """Return the weight of grammar in the order of the lists, and a description's fields for it.

    Raises UserError for a weight that is out of range, or that this space cannot have.
    """
    if neighbors is None or not neighbors.counts.size:
        obstacle: str | None = "there are no public counts of pairs of words"
    else:
        obstacle = neighbors.obstacle if lists else "there are no lists"
    if grammar is None:
        weight, why = 0.0 if obstacle else OF_LISTS, "the default"
    else:
        weight, why = checked("grammar", grammar), "as asked"
    if weight and obstacle:
        raise SettingError(
            f"grammar {weight:g} has no effect: {obstacle}; give counts of pairs in more text, or leave it out."
        )
    note = {"grammar": weight, "grammar_note": f"Grammar {weight:g} in the order of the lists: {why}."}
    return weight, note if weight else {}


def _made(
    embeddings: Sequence[Vectors], sizes: Sequence[int], starts: Sequence[Sequence[str]], order: str
) -> dict[str, Any]:
    """Return how a space was made: of how many words of each embedding, and where the lists of each start."""
    pairs = zip(embeddings, starts, strict=True)
    return {
        "by": f"corpusveil {metadata.version('corpusveil')}",
        "sources": [
            {"name": e.source, "words": size, "dimensions": e.vectors.shape[1]}
            for e, size in zip(embeddings, sizes, strict=True)
        ],
        "order": order,
        **_read_alike(embeddings, "hyphens"),
        **_read_alike(embeddings, "language"),
        "lists": [{"source": e.source, "start": start} for e, chosen in pairs for start in chosen],
    }


def _read_alike(embeddings: Sequence[Vectors], how: str) -> dict[str, str]:
    """Return how the text of the embeddings was read, as to hyphens or language, if known. All must agree."""
    known = {value: e.source for e in embeddings if (value := getattr(e, how)) is not None}
    if len(known) > 1:
        read = " and ".join(f"{source} with {how} {value}" for value, source in known.items())
        raise SettingError(
            f"The texts of these were read differently, {read}; use embeddings whose texts were read alike."
        )
    return {how: next(iter(known))} if known else {}


def _public_counts(first: Vectors, other: Int64 | None) -> Int64 | None:
    """Return the counts to store, None if there are none (or if all are 0, which is the same)."""
    counts = first.counts if other is None else np.asarray(other, np.int64)
    if counts is not None and (counts.shape != (len(first),) or counts.min() < 0):
        raise SettingError(
            f"{counts.size} counts for {len(first)} words: give each word of the first embedding one, none negative."
        )
    return counts if counts is not None and counts.any() else None


def _rows(
    embeddings: Sequence[Vectors], only: Collection[str] | None, exclude: Collection[str]
) -> list[dict[str, int]]:
    """Return, for each embedding, its words that may be in the space, with their rows."""
    kept = None if only is None else set(only)
    allowed = []
    for embedding in embeddings:
        rows = rows_without(embedding.words, exclude) if exclude else range(len(embedding))
        words = ((embedding.words[row], row) for row in rows)
        allowed.append({word: row for word, row in words if kept is None or word in kept})
    return allowed


def _starts(bits: Any, lists: int, size: int) -> list[int]:
    """Draw different start words from the raw stream, whose values NumPy never changes (unlike Generator's)."""
    starts: dict[int, None] = {}
    while len(starts) < lists:
        starts[int(bits.random_raw()) % size] = None
    return list(starts)
