"""The guarantee of a release, in fields and in words, for Python, the command line, the manifest and its page."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Protocol

from corpusveil.budget import Budget
from corpusveil.budget.budget import times, written
from corpusveil.budget.length import Length, LengthGrid
from corpusveil.choices import Duplicates
from corpusveil.display import rounded_up
from corpusveil.errors import listed
from corpusveil.kernel.lengths import disclosed, length_epsilon, without_token_count
from corpusveil.kernel.prepared import public_weights
from corpusveil.mechanisms import Guarantee, Mechanism
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import FLOOR, TOTAL
from corpusveil.text.policy import ROLE_NAMES, TextPolicy
from corpusveil.text.spans import SpanPolicy
from corpusveil.transforms.release.document_figures import DocumentFigure, counted, sentences

_RELEASED = (
    "two documents that are released with m words each, including fillers, with unknown words in the same places"
)
NOT_PRIVATE = "NOT PRIVATE: made with the published test key"
KEY_ASSUMPTION = "The key is secret, and no reader can have texts of their own privatized under it."


class Stated(Protocol):
    """What the statements here are about: a ``Release``, which itself asks for them."""

    @property
    def mechanism(self) -> Mechanism: ...
    @property
    def budget(self) -> Budget: ...
    @property
    def policy(self) -> TextPolicy: ...
    @property
    def key(self) -> Key: ...
    @property
    def length(self) -> Length | None: ...
    @property
    def spans(self) -> SpanPolicy | None: ...
    @property
    def duplicates(self) -> Duplicates: ...


def statement(release: Stated) -> dict[str, Any]:
    """Return the guarantee of a release as JSON-able fields, and in words."""
    guarantee = guarantee_of(release)
    return {"guarantee": guarantee.as_dict(), "guarantee_in_words": list(guarantee.notes)}


def in_brief(plain_ldp: float | None, epsilon: float, per: str) -> str:
    """Return the guarantee of a release in two sentences; the notes of the guarantee have its conditions.

    ``plain_ldp`` (nats) is that of the guarantee; ``epsilon`` and ``per`` are those of the budget.
    """
    apart = "without the key, a reader can distinguish two originals of a word by at most"
    at_most = f"and by no more than {rounded_up(plain_ldp)} nats"
    if per == "document":
        share = f"its share of epsilon {rounded_up(epsilon)} times their distance"
        return f"{apart} {share}, {at_most}. A document's words share this epsilon."
    return f"{apart} {times(epsilon, 'their distance')}, {at_most}. The bounds of a document's words add up."


def _in_epsilon_delta(release: Stated, figures: Sequence[DocumentFigure]) -> list[str]:
    """Return the guarantee of documents in (epsilon, delta), in a sentence; nothing without figures."""
    shares = ", with shares rounded down to the grid" if release.budget.per == "document" else ""
    which = counted(release.budget.as_dict(), release.policy.tokenizer, released=release.length is not None)
    noun = "units" if which.endswith("units") else "words"
    return sentences(figures, f"by the number of {which}{shares}", noun)


def _of_words(release: Stated, token: Guarantee, figures: Sequence[DocumentFigure]) -> list[str]:
    """Say what holds for replaced words and for documents of them, and what the compared documents have in common."""
    mechanism, budget, policy = release.mechanism, release.budget, release.policy
    lines = []
    if budget.per == "token":
        lines.append(
            "Each replaced word: the log-ratio of any output for two originals is at most "
            f"{times(budget.epsilon, 'their distance')}, and never more than {rounded_up(token.plain_ldp)} nats (a "
            f"factor of e to that power). The distance is {token.metric}."
        )
    else:
        lines.append(
            f"Each replaced word of a document with {budget.shared_among}: epsilon is {budget.share}, rounded down "
            "to the grid 2^(j/8). The log-ratio of any output for two originals is at most this epsilon times "
            f"their distance. The distance is {mechanism.distance}."
        )
    lines += budget.promises() if release.length is None else budget.promises(_RELEASED)
    lines += _in_epsilon_delta(release, figures)
    lines += _of_length(release, token)
    if policy.tokenizer != "word":
        words = (
            ", each with the same number of words; n counts the words inside them"
            if budget.allocation == "word-share"
            else ""
        )
        lines.append(
            "A word here is a unit: a single word or a collocation. The bounds compare documents with the same "
            f"number of units, and with single words and collocations in the same places{words}. A change of one "
            "word can change which words its neighbors join."
        )
    if policy.stop_words in ("keep", "mask", "drop"):
        lines.append(
            "The bounds compare documents with the same stop words in the same places, since these are not replaced."
        )
    if policy.unknown_words in ("keep", "mask", "drop"):
        same = "the same unknown words" if policy.unknown_words == "keep" else "unknown words"
        lines.append(f"The bounds compare documents with {same} in the same places.")
    if policy.numbers == "surrogate":
        lines.append("The bounds compare documents with numbers of the same shapes in the same places.")
    if release.spans is not None:
        lines.append(
            "The bounds compare documents in which the same spans are recognized: equally many, of the same kinds, in "
            "the same places between the same tokens. What a recognizer says may depend on the whole text."
        )
    lines.append(
        "What many documents share, such as forms, log lines and footers, is drawn anew in each: its bounds add up "
        "over them, and a reader averages what was drawn."
    )
    if release.duplicates == "same-noise":
        lines.append(
            "Equal texts get the same replacements, so a text and its copies count as one document: the bounds "
            "compare corpora that differ in the same way in all copies of a text."
        )
    if release.duplicates == "drop":
        lines.append(
            "Only the first of equal texts is written, so the bounds compare corpora in which the same rows are "
            "left out. A missing row discloses that its text occurs in an earlier row."
        )
    return lines


def _of_resampled(release: Stated) -> list[str]:
    """Say what holds for tokens that are drawn from public counts."""
    mechanism, budget, policy = release.mechanism, release.budget, release.policy
    resampled = [name for name in ROLE_NAMES[1:] if getattr(policy, name) == "resample"]
    if not resampled:
        return []
    public = public_weights(mechanism.space).astype("float64") / TOTAL
    single = budget.per == "token"
    bound = mechanism.unknown_bound(budget.epsilon, public) if single else mechanism.unknown_bound_at_most(public)
    capitals = " except by their capitals" if policy.case == "restore" else ""
    share = "" if single else ", whatever its share of the budget"
    sentence = (
        f"Tokens under 'resample' ({', '.join(resampled)}) are drawn from public counts, independently of the "
        f"token, so two such tokens cannot be distinguished{capitals}. Such a token can be distinguished from a "
        f"word of the vocabulary by at most {rounded_up(bound)} nats{share}, and k of them by k times as much. "
        "The distances above do not count this."
    )
    return [sentence]


def _of_surrogates(policy: TextPolicy) -> list[str]:
    """Say what holds for numbers that become numbers of the same shape."""
    if policy.numbers != "surrogate":
        return []
    sentence = (
        "Numbers under 'surrogate' become random digits and letters of the same shape, independently of the "
        "number and anew in each place. Two numbers of equal shape cannot be distinguished (0 nats, at any "
        "epsilon). No bound holds between different shapes: the places and the shapes of numbers are disclosed. "
        "A month in words is a word like any other."
    )
    return [sentence]


def _of_spans(policy: SpanPolicy | None) -> list[str]:
    """Say what holds for recognized spans, and for what no recognizer finds."""
    if policy is None:
        return []
    written = {
        "mask": "its kind",
        "resample": "a word drawn from public counts",
        "surrogate": "random digits and letters in its shape",
    }
    hidden = [words for how, words in written.items() if how in policy.treatments]
    shape = " and shape" if "surrogate" in policy.treatments else ""
    lines = []
    if policy.spans_from:
        lines.append(
            f"Values of the row's own {listed(policy.spans_from)} are spans of its text: each whole, and its parts of "
            "three letters or more, in any case; another spelling is not. Where they stand depends on these values."
        )
    if hidden:
        lines.append(
            f"Each recognized span becomes one token: {' or '.join(hidden)}. Two such spans of one kind{shape} cannot "
            "be distinguished (0 nats, at any epsilon), if the rest of the text has the same tokens and, with either, "
            "the same recognized spans."
        )
        if "names" in policy.find:
            lines.append(
                "'names' looks a second time, in the same text, for the parts of a name that it recognized: a word "
                "elsewhere that is a part of one name, and not of another, is masked with the first alone, which tells "
                "the two apart."
            )
    if "pseudonym" in policy.treatments:
        scope = {"document": "in a document", "unit": "in the documents of one unit"}.get(
            policy.pseudonyms, "wherever they occur"
        )
        lines.append(
            f"Spans of one kind under 'pseudonym' with equal text, in any case, get the same pseudonym {scope}, a "
            "keyed function of the text: no bound holds between equal and different spans, and a reader who knows how "
            "often a name occurs may recognize it by that. Without the key of pseudonyms nothing else of a span can be "
            "computed."
        )
    lines.append(
        "What no recognizer finds is a word like any other: with the bound of its kind if the vocabulary has it, and "
        "drawn from a law that does not depend on it if not, unless unknown words are kept."
    )
    return lines


def _of_length(release: Stated, token: Guarantee) -> list[str]:
    """Say what the length policy guarantees, and the cost of a word that only one of two documents has."""
    length = release.length
    if length is None:
        return []
    beyond = (
        "it is compared with a filler. A known word can be distinguished from it by at most "
        f"{rounded_up(token.plain_ldp)} nats; any other token has the bound of tokens that are drawn from public "
        "counts"
    )
    fillers = (
        "Fillers follow the text. They are drawn from public counts and replaced like words of the text. m counts "
        "them, and the bounds compare each document together with its fillers."
    )
    seen = "Where epsilon leaves most words unchanged, a reader sees where the text stops making sense."
    if isinstance(length, LengthGrid):
        first = (
            f"Length: documents are padded to a multiple of {length.pad:,} words. The length does not distinguish "
            "two documents in the same cell of this grid (0 nats); the cell is disclosed."
        )
        return [f"{first} {fillers}", f"A word that only the longer of two documents in a cell has: {beyond}. {seen}"]
    each = written(length_epsilon(length))
    first = (
        f"Length: the number of words is released with noise, of epsilon {each} for each word of difference, between "
        "documents of any length. Where the noise is negative, the text is cut at its end."
    )
    word = f"A word that only the longer of two documents has costs {each} for the length; {beyond}. {seen}"
    return [f"{first} {fillers}", word]


def guarantee_of(release: Stated, figures: Sequence[DocumentFigure] = ()) -> Guarantee:
    """Return the guarantee of a release as a whole, with the printed sentences as ``notes``.

    They state the guarantee of a token and of a document, its conditions, the ``figures`` of documents, and the bound
    of unknown words.
    """
    mechanism, budget, policy = release.mechanism, release.budget, release.policy
    token = mechanism.guarantee(budget.epsilon)
    if (
        budget.per == "document" and token.holds
    ):  # shares differ by document, so only statements that hold at any share are made
        token = dataclasses.replace(
            token,
            metric=f"the largest over a document's words of: {mechanism.distance}",
            plain_ldp=math.log(TOTAL / FLOOR),
            neighbors="documents with equally many tokens that differ only in known words; plain_ldp is for a word"
            if release.length is None
            else "documents that are released with equally many words; plain_ldp is for a word",
            notes=(),
        )
    if token.holds:
        lines = [*_of_words(release, token, figures), *token.notes, *_of_resampled(release)]
    else:
        lines = ["No guarantee holds: " + " ".join(token.notes)]
    lines += _of_surrogates(policy) + _of_spans(release.spans)
    of_spans = () if release.spans is None else release.spans.disclosed()
    copies = {
        "same-noise": ("which documents are equal",),
        "drop": ("that no two documents are equal, and that missing rows or ids were copies",),
    }.get(release.duplicates, ())
    key = f"{NOT_PRIVATE}, which everybody has." if release.key.test else KEY_ASSUMPTION
    return dataclasses.replace(
        token,
        disclosed=tuple(
            dict.fromkeys(
                (
                    *disclosed(policy, release.length),
                    *of_spans,
                    *without_token_count(token.disclosed, release.length),
                    *copies,
                )
            )
        ),
        assumptions=(*token.assumptions, key),
        notes=tuple(lines),
        per=budget.per,
    )
