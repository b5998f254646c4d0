"""Documents as term vectors (SynTF, as published): m output terms a document, each from one drawn by its frequency.

    Pr[u | document] = sum_v theta_v P[v, u],   theta the frequencies of the document's terms

for each of m independent terms. A document is protected as a whole: with a mechanism of epsilon for any two words
(``syntf``), ``m epsilon`` for any two documents, however long they are; with others, ``m`` times the plain-LDP bound of
one word. That m terms come out is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.errors import BadRowError, BadValueError, ConflictError, NoGuaranteeError
from corpusveil.kernel.prepared import public_weights
from corpusveil.sampling.draws import TERM, DrawKey, Draws
from corpusveil.sampling.weights import WeightTable
from corpusveil.text import languages
from corpusveil.text.markup import plain_texts
from corpusveil.text.tokens import string_buffers
from corpusveil.transforms.frames import frame_of, large_strings
from corpusveil.transforms.identities import identities_of_documents
from corpusveil.transforms.release.release import Release, require_release


def term_vectors(texts: Sequence[str], release: Release, terms: int, ids: Any = None) -> list[dict[str, int]]:
    """Return the ``terms`` private terms of each text, with their counts. Each term spends the release's epsilon.

    Terms are the words of the text that are in the space, without the stop words that the release's text policy sets
    apart. A text without such words has terms drawn from the space's public counts. ``ids`` are required, as in
    ``privatize``. The bound for a whole text is ``terms`` times the plain-LDP bound of
    ``release.mechanism.guarantee(epsilon)``.

    Raises UserError for a budget per document, a mechanism without a plain bound, or fewer than 1 term.
    """
    if isinstance(terms, bool) or not isinstance(terms, int) or terms < 1:
        raise BadValueError(f"terms = {terms}: give a whole number, 1 or more.")
    mechanism, epsilon = require_release(release).mechanism, release.budget.epsilon
    if release.budget.per != "token":
        raise ConflictError(
            "term_vectors: the budget is for an output term; give Budget(epsilon) without per='document'."
        )
    if release.length is not None:
        raise ConflictError("term_vectors: every text gives the same number of terms; make the release without length.")
    if mechanism.guarantee(epsilon).plain_ldp is None:
        raise NoGuaranteeError(f"term_vectors: {mechanism.name} has no bound for any two words; use syntf.")
    frame = frame_of(texts, "text")
    column = large_strings(frame.texts.to_pylist(), None)
    if column.null_count:
        raise BadRowError("term_vectors: a text is missing; leave it out.")
    identities = identities_of_documents(ids, len(column), frame.column)
    if release.policy.markup != "words":
        column = plain_texts(column)
    column = languages.read(column, release.policy.language)
    data, offsets = string_buffers(column)
    key = DrawKey.derive(release.key, release.digest)
    tags = key.tags(f"terms {terms}", identities, data, offsets)
    documents = np.repeat(np.arange(len(column)), terms)
    draws = Draws(key, tags, documents, np.tile(np.arange(terms), len(column)))
    drawn = _drawn(release, data, offsets, draws)
    out = mechanism.privatize(drawn, epsilon, draws).reshape(-1, terms)
    vectors = []
    for row in out:
        chosen, counts = np.unique(row, return_counts=True)
        vectors.append({mechanism.space.word(int(id)): int(n) for id, n in zip(chosen, counts, strict=True)})
    return vectors


def _drawn(
    release: Release, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], draws: Draws
) -> npt.NDArray[np.int32]:
    """Return the term that each output represents: a term of its document, by frequency; int32 [T]."""
    ids, starts = release.kernel().known(data, offsets)
    lanes = draws.uint64(TERM)
    out = WeightTable(public_weights(release.mechanism.space)).cells(lanes)
    sizes = np.diff(starts)[draws.documents]
    has = np.flatnonzero(sizes)
    # floor(lane * size / 2^64), in halves: what size does not divide 2^64 by moves a probability by 2^-64 at most
    size, lane = sizes[has].astype(np.uint64), lanes[has]
    high, low = lane >> np.uint64(32), lane & np.uint64(0xFFFFFFFF)
    place = (high * size + ((low * size) >> np.uint64(32))) >> np.uint64(32)
    out[has] = ids[starts[draws.documents[has]] + place.astype(np.int64)]
    return out
