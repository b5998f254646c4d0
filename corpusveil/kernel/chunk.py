"""Documents as the kernel treats them: their tokens, the role of each, and the tags of their noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from corpusveil.arrays import Int32, Int64, Scratch, UInt8, UInt64
from corpusveil.compiled import compiled, u
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.text.spans import Covered
from corpusveil.text.tokens import Tokens

scratch = Scratch()
"""Of all arrays of tokens: they hold until the next documents are read."""


@dataclass(frozen=True, slots=True)
class Picked:
    """The K tokens of one action, their documents, positions and ids; int32 [K]."""

    index: Int32
    documents: Int32
    positions: Int32
    ids: Int32


@dataclass(frozen=True, slots=True)
class Chunk:
    """D documents, or a part of one, as T tokens or units.

    Attributes:
        tokens: the id of one that is a span is -2 less its number.
        roles: uint8 [T].
        actions: uint8, the treatment of each role.
        by_role: int64, how many tokens have each role.
        tags: uint64 [D, 2], which distinguish the noise of the documents.
        words: int64 [D], how many words each document has, where the budget asks for it.
        spans: those that are tokens, where any are looked for.
        before: how many tokens of the document precede this part.
    """

    tokens: Tokens
    roles: UInt8
    actions: UInt8
    by_role: Int64
    tags: UInt64
    words: Int64 | None = None
    spans: Covered | None = None
    before: int = 0

    def picked(self, action: int) -> Picked:
        """Return the tokens that an action is for; they hold until the next ones of this action are asked for."""
        names = ("index", "documents", "positions", "words")
        lists = [scratch.array(f"{name} of {action}", len(self.tokens), np.int32) for name in names]
        size = _pick(self.roles, self.actions, action, self.tokens.ids, self.tokens.offsets, *lists)
        chosen = Picked(*(values[:size] for values in lists))
        if self.before:
            np.add(chosen.positions, self.before, out=chosen.positions)
        return chosen

    def draws(self, picked: Picked, key: DrawKey) -> Draws:
        return Draws(key, self.tags, picked.documents, picked.positions)


@compiled
def _pick(
    roles: Any, actions: Any, action: int, ids: Any, offsets: Any,
    index: Any, documents: Any, positions: Any, words: Any,
) -> Any:  # fmt: skip
    """List the tokens with one action, their documents, positions and ids; return how many."""
    wanted = 0  # a bit for each role
    for role in range(actions.size):
        wanted |= (actions[role] == action) << role
    n = np.int64(0)
    for document in range(offsets.size - 1 if wanted else 0):
        first = offsets[document]
        for t in range(first, offsets[document + 1]):
            index[u(n)] = t
            documents[u(n)] = document
            positions[u(n)] = t - first
            words[u(n)] = ids[u(t)]
            n += (wanted >> np.int64(roles[u(t)])) & 1  # written over by the next unless it is one
    return n
