"""Replay: a holder of a release's key confirms a guessed document by running the release on it.

Equal key, configuration, identity and text give equal noise, which is what makes a release reproducible; so with the
key a guess of the *whole* document is confirmed or refuted, at any epsilon. The noise depends on all of a document's
bytes: a guess that is wrong anywhere confirms nothing. Without the key, a guess is confirmed only if chance makes the
same text, which the control measures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from corpusveil.errors import ShapeError
from corpusveil.sampling.keys import Key
from corpusveil.transforms.frames import large_strings
from corpusveil.transforms.identities import identities_of_documents
from corpusveil.transforms.release.release import Release

CONTROLS = 3
"""The number of fresh keys for the control."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What was confirmed: for each document the number of the guess that became its private text, -1 for none.

    ``by_chance`` is the share of documents that an unrelated key confirms: documents with hardly a word to replace, or
    at an epsilon that replaces hardly any word.
    """

    confirmed: tuple[int, ...]
    by_chance: float

    @property
    def share(self) -> float:
        """The share of documents with a confirmed guess."""
        return sum(number >= 0 for number in self.confirmed) / len(self.confirmed)


def replay(
    release: Release,
    documents: Sequence[str],
    guesses: Sequence[str | Sequence[str]],
    key: Key,
    *,
    ids: Any,
    column: str = "text",
    controls: int = CONTROLS,
) -> Replay:
    """Replay guesses, one or several for each private document, under a leaked or guessed key.

    The attacker knows the content of a manifest (mechanism, budget, policy, space), here ``release``, whose own key is
    not used; ``column`` and ``ids`` name the documents as they were in the release, ``ids`` as in ``privatize``.
    """
    if isinstance(documents, str) or len(guesses) != len(documents) or not documents:
        raise ShapeError("replay: give at least one private document, and a guess (or several) for each.")
    lists = [[guess] if isinstance(guess, str) else list(guess) for guess in guesses]
    names = identities_of_documents(ids, len(documents))
    confirmed = _confirmed(release, documents, lists, key, column, names)
    chance = [_confirmed(release, documents, lists, Key.generate(), column, names) for _ in range(controls)]
    hits = sum(number >= 0 for numbers in chance for number in numbers)
    return Replay(confirmed, hits / (len(documents) * controls) if controls else float("nan"))


def _confirmed(
    release: Release,
    documents: Sequence[str],
    guesses: Sequence[Sequence[str]],
    key: Key,
    column: str,
    identities: Sequence[Any],
) -> tuple[int, ...]:
    kernel = dataclasses.replace(release, key=key).kernel(whole_corpus=True)  # copies were left out before
    owners = [number for number, some in enumerate(guesses) for _ in some]
    texts = large_strings([guess for some in guesses for guess in some], "guesses")
    out, _ = kernel.privatize(texts, [identities[owner] for owner in owners], column)
    numbers = [-1] * len(documents)
    places = [place for some in guesses for place in range(len(some))]
    for owner, place, text in zip(owners, places, out.to_pylist(), strict=True):
        if numbers[owner] < 0 and text == documents[owner]:
            numbers[owner] = place
    return tuple(numbers)
