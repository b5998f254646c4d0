"""What a holder of the key learns: a release is repeated under leaked keys and the test key to confirm guesses.

With the key, a guess of a whole document is confirmed or refuted at any epsilon (``replay``). So an attacker who knows
all of a document except one word tries words until one is confirmed. Without the key, the mechanism's law protects that
word.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corpusveil.errors import SettingError
from corpusveil.sampling.keys import Key
from corpusveil.storage.documents import Documents
from corpusveil.transforms.frames import large_strings
from corpusveil.transforms.identities import identities_of_documents
from corpusveil.transforms.release.release import Release
from corpusveil_evaluate.attacks.word_attacks import prior_by
from corpusveil_evaluate.matching import Matched, spread
from corpusveil_evaluate.readers.ngrams.word_risk import Prior
from corpusveil_evaluate.statistics.perplexity import KneserNey
from corpusveil_evaluate.statistics.statistic import ALL_WORDS, Figure, Reading, register

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
        raise SettingError("replay: give at least one private document, and a guess (or several) for each.")
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
    out, _ = kernel.privatize(Documents(texts, [identities[owner] for owner in owners], column))
    numbers = [-1] * len(documents)
    places = [place for some in guesses for place in range(len(some))]
    for owner, place, text in zip(owners, places, out.to_pylist(), strict=True):
        if numbers[owner] < 0 and text == documents[owner]:
            numbers[owner] = place
    return tuple(numbers)


REPLAYED = 200
"""The number of documents guessed as a whole; in ``ONE_WORD`` of them, one word is guessed."""
ONE_WORD = 25
CANDIDATES = 500
"""The number of most frequent words of the language model that are tried for the unknown word."""
FEWEST = 10
TOKENS = 1_000_000
"""The most words of all guesses together: some seconds."""
LETTERS = re.compile(r"[^\W\d_]+")
DOCUMENTS = register("documents confirmed, whole guesses", group="attack")
WORDS = register("words recovered, whole guesses", group="attack", of=ALL_WORDS)
UNKNOWN_WORD = register("one unknown word recovered", group="attack")


def replay_keys(
    matched: Matched, manifest: Mapping[str, Any], release: Release, keys: Sequence[Key], language: KneserNey
) -> Iterator[Figure]:
    """Yield what the test key and other ``keys`` recover of the documents; ``release`` is made from the manifest."""
    prior = prior_by(language, release.mechanism.space, CANDIDATES)
    for key in dict.fromkeys((Key.for_tests(), *keys)):
        yield from _of_key(matched, manifest, release, key, prior)


def _of_key(
    matched: Matched, manifest: Mapping[str, Any], release: Release, key: Key, prior: Prior
) -> Iterator[Figure]:
    own = key.fingerprint() == manifest.get("key_fingerprint")
    name = "published test key" if key.test else f"leaked key {key.fingerprint()}"
    rows = spread(len(matched.originals), REPLAYED)
    column = str(manifest["configuration"].get("columns", {}).get("text", "text"))
    confirmed, identities = _best(matched, rows, release, key, column)
    note = (
        f"{len(rows):,} documents, all guessed correctly; the release was {('' if own else 'not ')}made with this key"
    )
    yield DOCUMENTS.measure(Reading(confirmed.share, name, note), floor=confirmed.by_chance)
    lengths = [len(matched.originals[row].split()) for row in rows]
    recovered = sum(size for size, at in zip(lengths, confirmed.confirmed, strict=True) if at >= 0)
    share = recovered / max(1, sum(lengths))
    yield WORDS.measure(Reading(share, name, "floor: documents confirmed by a fresh key"), floor=confirmed.by_chance)
    if confirmed.share > confirmed.by_chance:
        yield from _one_word(matched, [row for row, at in zip(rows, confirmed.confirmed, strict=True) if at >= 0],
                             release, key, name, column, identities, prior)  # fmt: skip


def _best(
    matched: Matched, rows: Sequence[int], release: Release, key: Key, column: str
) -> tuple[Replay, Sequence[Any]]:
    """Return what a key confirms by the identities that match best: corpus, file and row, or the documents' ids."""
    replays = []
    for all_of_them in (matched.places, matched.ids):
        if all_of_them:
            identities = [all_of_them[row] for row in rows]
            private, guesses = ([texts[row] for row in rows] for texts in (matched.privates, matched.originals))
            confirmed = replay(release, private, guesses, key, column=column, ids=identities, controls=1)
            replays.append((confirmed, all_of_them))
    return max(replays, key=lambda replayed: replayed[0].share)


def _one_word(
    matched: Matched,
    rows: Sequence[int],
    release: Release,
    key: Key,
    name: str,
    column: str,
    identities: Sequence[Any],
    prior: Prior,
) -> Iterator[Figure]:
    """Yield how often one unknown word of a document is found by trying frequent words in its place."""
    known = [release.mechanism.space.word(int(word)) for word in prior.words[np.argsort(-prior.shares, kind="stable")]]
    some = [row for row in rows if len(LETTERS.findall(matched.originals[row])) > 1]
    some = [some[at] for at in spread(len(some), ONE_WORD)]
    tokens = sum(len(matched.originals[row].split()) for row in some)
    candidates = known[: min(CANDIDATES, TOKENS // max(1, tokens))]
    if not some or len(candidates) < FEWEST:  # without its one word, a document of one word is empty
        return
    guesses = [_guesses(matched.originals[row], candidates) for row in some]
    private, ids = [matched.privates[row] for row in some], [identities[row] for row in some]
    confirmed = replay(release, private, guesses, key, column=column, ids=ids, controls=0)
    right = sum(
        at >= 0 and guess[at] == matched.originals[row]
        for row, at, guess in zip(some, confirmed.confirmed, guesses, strict=True)
    )
    within = sum(matched.originals[row] in guess for row, guess in zip(some, guesses, strict=True))
    note = (
        f"all other words are known; {len(candidates):,} frequent words are tried, which include {within:,} of "
        f"{len(some):,}; floor: the most frequent word"
    )
    yield UNKNOWN_WORD.measure(Reading(right / len(some), name, note), floor=prior.guess)


def _guesses(text: str, candidates: Sequence[str]) -> list[str]:
    """Return the text with each candidate for the word in its middle, in that word's capitals."""
    words = list(LETTERS.finditer(text))
    word = words[len(words) // 2]
    first, whole = word[0][:1].isupper(), word[0].isupper() and len(word[0]) > 1
    spelt = [candidate.upper() if whole else candidate.capitalize() if first else candidate for candidate in candidates]
    return [f"{text[: word.start()]}{spelling}{text[word.end() :]}" for spelling in spelt]
