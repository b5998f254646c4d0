"""The tokens that one action of a text policy is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import compiled, u
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.scratch import Scratch
from corpusveil.text.tokens import Tokens

_scratch = Scratch()


@dataclass(frozen=True, slots=True)
class Picked:
    """The K tokens that an action is for, of which documents they are, where in these, and their ids; int32 [K]."""

    index: npt.NDArray[np.int32]
    documents: npt.NDArray[np.int32]
    positions: npt.NDArray[np.int32]
    ids: npt.NDArray[np.int32]

    def draws(self, key: DrawKey, tags: npt.NDArray[np.uint64]) -> Draws:
        """Return what these tokens draw."""
        return Draws(key, tags, self.documents, self.positions)


@compiled
def _pick(
    roles: Any, actions: Any, action: int, ids: Any, offsets: Any,
    index: Any, documents: Any, positions: Any, words: Any,
) -> Any:  # fmt: skip
    """List the tokens with one action: which, of which document, at which position, their ids; return how many."""
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


def picked(
    tokens: Tokens, roles: npt.NDArray[np.uint8], actions: npt.NDArray[np.uint8], action: int, before: int = 0
) -> Picked:
    """Return the tokens that an action is for; they hold until the next ones of this action are asked for.

    ``before`` is how many tokens of the document precede these, of which it is a part.
    """
    names = ("index", "documents", "positions", "words")
    lists = [_scratch.array(f"{name} of {action}", len(tokens), np.int32) for name in names]
    size = _pick(roles, actions, action, tokens.ids, tokens.offsets, *lists)
    chosen = Picked(*(values[:size] for values in lists))
    if before:
        np.add(chosen.positions, before, out=chosen.positions)
    return chosen
