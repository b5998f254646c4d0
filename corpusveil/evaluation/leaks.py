"""Who has the key: a release is made again under leaked keys and the published test key, and guesses are confirmed.

With the key a guess of a whole document is confirmed or refuted at any epsilon (``replay``). So whoever knows all of a
document but one word tries words until one is confirmed: what no key at all leaves to the mechanism's law.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from corpusveil.evaluation.attackers import prior_by
from corpusveil.evaluation.findings import Measure
from corpusveil.evaluation.language import KneserNey
from corpusveil.evaluation.matching import Matched
from corpusveil.evaluation.prior import Prior
from corpusveil.evaluation.question import Question
from corpusveil.evaluation.remade import release_of
from corpusveil.evaluation.replay import Replay, replay
from corpusveil.evaluation.texts import spread
from corpusveil.sampling.keys import Key
from corpusveil.transforms.release import Release

REPLAYED = 200
"""Documents that are guessed as a whole; of ``ONE_WORD`` of them one word is guessed."""
ONE_WORD = 25
CANDIDATES = 500
"""The words that are most frequent in what the language model is made of, tried for the unknown one."""
FEWEST = 10
TOKENS = 1_000_000
"""Words that guesses may have together: some seconds."""
WORD = re.compile(r"[^\W\d_]+")


def replay_keys(
    matched: Matched, manifest: Mapping[str, Any], question: Question, language: KneserNey
) -> tuple[list[Measure], list[str]]:
    """Return what each key gives back of the documents, and what could not be asked."""
    if not (matched.places or matched.ids):
        return [], []
    if manifest["configuration"]["text"].get("tokenizer", "word") != "word" and question.collocations is None:
        return [], ["Keys were not tried: that takes the release's collocations."]
    release = release_of(manifest, question)
    if release.digest != manifest.get("release"):
        return [], [
            "Keys were not tried: this version of corpusveil would not make the release that the manifest names."
        ]
    measures: list[Measure] = []
    for key in dict.fromkeys((Key.for_tests(), *question.keys)):
        measures += _of_key(matched, manifest, release, key, prior_by(language, release.mechanism.space, CANDIDATES))
    return measures, []


def _of_key(
    matched: Matched, manifest: Mapping[str, Any], release: Release, key: Key, prior: Prior
) -> Iterator[Measure]:
    own = key.fingerprint() == manifest.get("key_fingerprint")
    name = "published test key" if key.test else f"leaked key {key.fingerprint()}"
    rows = spread(len(matched.originals), REPLAYED)
    column = str(manifest["configuration"].get("columns", {}).get("text", "text"))
    found, identities = _best(matched, rows, release, key, column)
    note = f"{len(rows):,} documents, all guessed right; the release was {'' if own else 'not '}made with this key"
    yield Measure(
        "attack", "documents confirmed, whole guesses", found.share, model=name, note=note, floor=found.by_chance,
        of_input=True,
    )  # fmt: skip
    lengths = [len(matched.originals[row].split()) for row in rows]
    recovered = sum(size for size, at in zip(lengths, found.confirmed, strict=True) if at >= 0)
    yield Measure(
        "attack", "words recovered, whole guesses", recovered / max(1, sum(lengths)), model=name, floor=found.by_chance,
        note="floor: documents that a fresh key confirms", of_input=True,
    )  # fmt: skip
    if found.share > found.by_chance:
        yield from _one_word(matched, [row for row, at in zip(rows, found.confirmed, strict=True) if at >= 0],
                             release, key, name, column, identities, prior)  # fmt: skip


def _best(
    matched: Matched, rows: Sequence[int], release: Release, key: Key, column: str
) -> tuple[Replay, Sequence[Any]]:
    """Return what a key confirms by the identities that fit best: corpus, file and row, or the documents' ids."""
    tried = []
    for all_of_them in (matched.places, matched.ids):
        if all_of_them:
            identities = [all_of_them[row] for row in rows]
            private, guesses = ([texts[row] for row in rows] for texts in (matched.privates, matched.originals))
            found = replay(release, private, guesses, key, column=column, ids=identities, controls=1)
            tried.append((found, all_of_them))
    return max(tried, key=lambda one: one[0].share)


def _one_word(
    matched: Matched,
    rows: Sequence[int],
    release: Release,
    key: Key,
    name: str,
    column: str,
    identities: Sequence[Any],
    prior: Prior,
) -> Iterator[Measure]:
    """Yield how often one unknown word of a document is found by trying frequent words in its place."""
    known = [release.mechanism.space.word(int(word)) for word in prior.words[np.argsort(-prior.shares, kind="stable")]]
    some = [row for row in rows if len(WORD.findall(matched.originals[row])) > 1]
    some = [some[at] for at in spread(len(some), ONE_WORD)]
    tokens = sum(len(matched.originals[row].split()) for row in some)
    candidates = known[: min(CANDIDATES, TOKENS // max(1, tokens))]
    if not some or len(candidates) < FEWEST:  # of a document of one word all words but one are none
        return
    guesses = [_guesses(matched.originals[row], candidates) for row in some]
    private, ids = [matched.privates[row] for row in some], [identities[row] for row in some]
    found = replay(release, private, guesses, key, column=column, ids=ids, controls=0)
    right = sum(
        at >= 0 and guess[at] == matched.originals[row]
        for row, at, guess in zip(some, found.confirmed, guesses, strict=True)
    )
    within = sum(matched.originals[row] in guess for row, guess in zip(some, guesses, strict=True))
    yield Measure(
        "attack", "one unknown word recovered", right / len(some), model=name, floor=prior.guess, of_input=True,
        note=f"all others known; {len(candidates):,} frequent words are tried, which have {within:,} of {len(some):,}; "
        "floor: the most frequent one",
    )  # fmt: skip


def _guesses(text: str, candidates: Sequence[str]) -> list[str]:
    """Return the text with each candidate for the word in its middle, in that word's capitals."""
    words = list(WORD.finditer(text))
    word = words[len(words) // 2]
    first, whole = word[0][:1].isupper(), word[0].isupper() and len(word[0]) > 1
    spelt = [one.upper() if whole else one.capitalize() if first else one for one in candidates]
    return [f"{text[: word.start()]}{one}{text[word.end() :]}" for one in spelt]
