"""What a release promises, in fields and in words: what Python, the command line, the manifest and its page all say."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from corpusveil.budget.budget import Budget, written
from corpusveil.budget.length import LengthGrid
from corpusveil.display import rounded_up
from corpusveil.mechanisms import Guarantee
from corpusveil.sampling.weights import FLOOR, TOTAL
from corpusveil.text.policy import ROLE_NAMES
from corpusveil.transforms.document_figures import sentences
from corpusveil.transforms.kernel import public_weights
from corpusveil.transforms.lengths import disclosed, length_epsilon, without_token_count

if TYPE_CHECKING:
    from corpusveil.transforms.release import Release

_RELEASED = (
    "A document released with m words, against one that is released with as many, both as their fillers continue them "
    "and with unknown words in the same places"
)
NOT_PRIVATE = "NOT PRIVATE: made with the published test key"
KEY_ASSUMPTION = "The key was not disclosed, and nobody can have texts of their own privatized under it."


def statement(release: Release) -> dict[str, Any]:
    """Return the guarantee of a release as JSON-able fields, and in words."""
    guarantee = guarantee_of(release)
    figures = [one.as_dict() for one in release.document_figures()]
    documents = {"documents_in_epsilon_delta": figures} if figures else {}
    return {"guarantee": guarantee.as_dict(), "guarantee_in_words": list(guarantee.notes), **documents}


def in_brief(guarantee: Guarantee, budget: Budget) -> str:
    """Return the promise of a release in a sentence; the notes of the guarantee have its conditions."""
    at_most = f"and never more than {rounded_up(guarantee.plain_ldp)} nats"
    if budget.per == "document":
        return (
            f"for a document, epsilon {written(budget.epsilon)} in all, shared among its words. Without the key, a "
            f"reader can distinguish two originals of a word by at most its share times their distance, {at_most}."
        )
    return (
        f"without the key, a reader can distinguish two originals of a word by at most {written(budget.epsilon)} times "
        f"their distance, {at_most}; the words of a document add up."
    )


def documents_in_words(release: Release) -> list[str]:
    """Return what documents are promised in (epsilon, delta), in a sentence; nothing for a release without a delta."""
    shares = ", with shares rounded down to the grid" if release.budget.per == "document" else ""
    which = "replaced" if release.length is None else "released"
    return sentences(release.document_figures(), f"by the number of {which} words{shares}")


def _of_length(release: Release, token: Guarantee) -> list[str]:
    """Say what the length policy promises, and what a word costs that only one of two documents has."""
    length = release.length
    if length is None:
        return []
    beyond = f"against a filler at most {rounded_up(token.plain_ldp)} nats, whatever the word"
    fillers = (
        "Fillers are drawn from public counts, and replaced like words of the text; they follow the text, m counts "
        "them, and a document and its fillers are compared as one."
    )
    seen = "Where epsilon leaves most words as they are, a reader sees where the text stops making sense."
    if isinstance(length, LengthGrid):
        told = (
            f"Length: documents are filled up to the next of {_points(length)} words. Between two documents in one "
            "cell of this grid the length tells nothing (0 nats); the cell is disclosed."
        )
        return [f"{told} {fillers}", f"A word that only the longer of two documents in a cell has: {beyond}. {seen}"]
    each = written(length_epsilon(length))
    told = (
        f"Length: the number of words is released with noise of epsilon {each} for each word more or less, between "
        "documents of any lengths. Where the noise is negative, the text is cut at its end."
    )
    word = f"A word that only the longer of two documents has: {each} for the length, and {beyond}. {seen}"
    return [f"{told} {fillers}", word]


def _points(length: LengthGrid) -> str:
    return ", ".join(f"{one:,}" for one in length.first_points(4)) + ", …"


def guarantee_of(release: Release) -> Guarantee:
    """Return what holds for a release as a whole, ``notes`` being the words that are printed.

    These are: what a token and a document are promised, under which conditions, and the bound of unknown words.
    """
    mechanism, budget, policy = release.mechanism, release.budget, release.policy
    token = mechanism.guarantee(budget.epsilon)
    if budget.per == "document" and token.holds:  # shares differ by document, so only what holds at any share is said
        token = dataclasses.replace(
            token,
            metric=f"the largest over a document's words of: {mechanism.distance}",
            plain_ldp=math.log(TOTAL / FLOOR),
            neighbors="documents of as many tokens that differ in known words only; plain_ldp is for one word"
            if release.length is None
            else "documents that are released with as many words; plain_ldp is for one word",
            notes=(),
        )
    public = public_weights(mechanism.space).astype("float64") / TOTAL
    resampled = [name for name in ROLE_NAMES[1:] if getattr(policy, name) == "resample"]
    lines: list[str] = []
    if token.holds:
        if budget.per == "token":
            lines.append(
                f"Each replaced word: {written(budget.epsilon)} times the distance, the distance being {token.metric}; "
                f"for any two words at most {rounded_up(token.plain_ldp)} nats (a factor of e to that power)."
            )
        else:
            lines.append(
                f"Each replaced word of a document with {budget.shared_among}: {budget.share} times the distance, "
                f"rounded down to the grid 2^(j/8), the distance being {mechanism.distance}."
            )
        lines += budget.promises() if release.length is None else budget.promises(_RELEASED)
        lines += documents_in_words(release)
        lines += _of_length(release, token)
        if policy.tokenizer != "word":
            words = ", each of as many words" if budget.by_words else ""
            lines.append(
                "All this is between documents that part into the same units, as many and of single words and "
                f"collocations in the same places{words}: one word more or less alike can join its neighbours "
                "otherwise. A word then is a unit."
            )
        if policy.stop_words in ("keep", "mask", "drop"):
            lines.append(
                "All this is between documents with the same stop words in the same places: they are not replaced."
            )
        if policy.unknown_words in ("keep", "mask", "drop"):
            lines.append(
                "All this is between documents with unknown words in the same places, the same ones where kept."
            )
        if policy.numbers == "surrogate":
            lines.append("All this is between documents with numbers of the same shapes in the same places.")
        if release.duplicates == "same-noise":
            lines.append(
                "Equal texts are written alike, so a text and its copies count as one document: all this is between "
                "corpora that differ in all its copies alike."
            )
        if release.duplicates == "drop":
            lines.append(
                "Of equal texts all but the first are left out: all this is between corpora in which the same rows "
                "are left out. A row that is missing says that its text stands in a row before it."
            )
        lines += token.notes
    else:
        lines.append("No guarantee holds: " + " ".join(token.notes))
    if resampled and token.holds:
        one = budget.per == "token"
        bound = mechanism.unknown_bound(budget.epsilon, public) if one else mechanism.unknown_bound_at_most(public)
        capitals = " but by their capitals" if policy.case == "restore" else ""
        share = "" if one else ", whatever its share of the budget"
        lines.append(
            f"Tokens under 'resample' ({', '.join(resampled)}) are drawn from public counts, independently of the "
            f"token: two of them can't be told apart{capitals}. One of them against a word of the vocabulary: at most "
            f"{rounded_up(bound)} nats{share}; k of them k times as much. The distances above do not count this."
        )
    if policy.numbers == "surrogate":
        whole = (
            "A date or time in digits is one number (2024-05-17, 12:30)"
            if policy.joins_numbers()
            else "Of a date or time each number is one by itself"
        )
        lines.append(
            "Numbers under 'surrogate' become numbers of the same shape, drawn from public numbers independently of "
            "the number and anew at each place: two of equal shape can't be told apart (0 nats, at any epsilon). "
            "Between different shapes nothing is promised: where numbers stand and their shape are disclosed. "
            f"{whole}; a month in words is a word like any other."
        )
    copies = {
        "same-noise": ("which documents are equal",),
        "drop": ("that no two documents are equal, and where rows or ids are missing, that these were copies",),
    }.get(release.duplicates, ())
    key = f"{NOT_PRIVATE}, which everybody has." if release.key.test else KEY_ASSUMPTION
    return dataclasses.replace(
        token,
        disclosed=tuple(
            dict.fromkeys(
                (*disclosed(policy, release.length), *without_token_count(token.disclosed, release.length), *copies)
            )
        ),
        assumptions=(*token.assumptions, key),
        notes=tuple(lines),
        per=budget.per,
    )
