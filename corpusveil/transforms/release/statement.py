"""The guarantee of a release, in fields and in words, for Python, the command line, the manifest and its page."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Protocol

from corpusveil.budget import Budget
from corpusveil.budget.budget import times
from corpusveil.choices import Duplicates
from corpusveil.display import rounded_up
from corpusveil.kernel.prepared import public_weights
from corpusveil.mechanisms import Guarantee, Mechanism
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import FLOOR, TOTAL
from corpusveil.text.policy import ROLE_NAMES, TextPolicy
from corpusveil.text.spans import SpanPolicy
from corpusveil.transforms.release.promises import IN_BRIEF, OF_DOCUMENTS, OF_TOKENS, ORDER, sentences

_NEIGHBORS = "two documents with equally many tokens and m replaced words each that differ only in known words"
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
    def spans(self) -> SpanPolicy | None: ...
    @property
    def duplicates(self) -> Duplicates: ...


def in_brief(plain_ldp: float | None, epsilon: float, per: str) -> str:
    """Return the guarantee of a release in two sentences; the notes of the guarantee have its conditions.

    ``plain_ldp`` (nats) is that of the guarantee; ``epsilon`` and ``per`` are those of the budget.
    """
    of_document = f"its share of epsilon {rounded_up(epsilon)} times their distance"
    values = {
        "nats": lambda: rounded_up(plain_ldp),
        "at_most": lambda: of_document if per == "document" else times(epsilon, "their distance"),
    }
    return "".join(sentences(IN_BRIEF, {"budget.per": (per,)}, values))


def settings_of(release: Stated, *, holds: bool) -> dict[str, Sequence[str]]:
    """Return the values of the settings that conditions of promises name, of a release whose mechanism ``holds``."""
    budget, policy, spans = release.budget, release.policy, release.spans
    finders = () if spans is None else [name for name in spans.find if isinstance(name, str)]
    return {
        "guarantee": ("holds",) if holds else (),
        "budget.per": (budget.per,),
        "budget.allocation": (budget.allocation,),
        "text": ("resample",) if _resampled(policy) else (),
        "text.tokenizer": (policy.tokenizer,),
        "text.stop_words": (policy.stop_words,),
        "text.unknown_words": (policy.unknown_words,),
        "spans": () if spans is None else ("found",),
        "spans.find": tuple(finders),
        "output.duplicates": (release.duplicates,),
    }


def _resampled(policy: TextPolicy) -> list[str]:
    return [name for name in ROLE_NAMES[1:] if getattr(policy, name) == "resample"]


_HIDDEN = {
    "mask": "its kind",
    "resample": "a word drawn from public counts",
}
"""What a span becomes that cannot be distinguished from others."""


def values_of(release: Stated, token: Guarantee) -> dict[str, Callable[[], str]]:
    """Return what computes each name in a promise of a release, whose words have the guarantee ``token``."""
    mechanism, budget, policy = release.mechanism, release.budget, release.policy
    spans, is_single = release.spans, budget.per == "token"
    treatments = () if spans is None else spans.treatments

    def unknown_bound() -> str:
        public = public_weights(mechanism.space).astype("float64") / TOTAL
        at_most = mechanism.unknown_bound_at_most
        return rounded_up(mechanism.unknown_bound(budget.epsilon, public) if is_single else at_most(public))

    return {
        "epsilon_distance": lambda: times(budget.epsilon, "their distance"),
        "nats": lambda: rounded_up(token.plain_ldp),
        "metric": lambda: token.metric,
        "distance": lambda: mechanism.distance,
        "share": lambda: budget.share,
        "shared_among": lambda: budget.shared_among,
        "neighbors": lambda: _NEIGHBORS,
        "each": lambda: budget.factors[0],
        "largest": lambda: budget.factors[1],
        "resampled": lambda: ", ".join(_resampled(policy)),
        "but_capitals": lambda: " except by their capitals" if policy.case == "restore" else "",
        "unknown_bound": unknown_bound,
        "whatever_share": lambda: "" if is_single else ", whatever its share of the budget",
        "hidden": lambda: " or ".join(words for how, words in _HIDDEN.items() if how in treatments),
    }


def guarantee_of(release: Stated) -> Guarantee:
    """Return the guarantee of a release as a whole, with the printed sentences as ``notes``.

    They state the guarantee of a token and of a document, its conditions, and the bound of unknown words.
    """
    mechanism, budget, policy = release.mechanism, release.budget, release.policy
    token = mechanism.guarantee(budget.epsilon)
    if budget.per == "document" and token.holds:  # at any share, which differs by document
        token = dataclasses.replace(
            token,
            metric=f"the largest over a document's words of: {mechanism.distance}",
            plain_ldp=math.log(TOTAL / FLOOR),
            neighbors="documents with equally many tokens that differ only in known words; plain_ldp is for a word",
            notes=(),
        )
    settings = settings_of(release, holds=token.holds)
    values = values_of(release, token)
    lines = ["No guarantee holds: " + " ".join(token.notes)]
    if token.holds:
        lines = [*sentences(OF_DOCUMENTS, settings, values), *token.notes]
    lines += sentences(OF_TOKENS, settings, values)
    of_spans = () if release.spans is None else release.spans.disclosed()
    copies = {
        "same-noise": ("which documents are equal",),
        "drop": ("that no two documents are equal, and that missing rows or ids were copies",),
    }.get(release.duplicates, ())
    of_texts = (*policy.disclosed(), *of_spans, *token.disclosed)
    key = f"{NOT_PRIVATE}, which everybody has." if release.key.test else KEY_ASSUMPTION
    return dataclasses.replace(
        token,
        disclosed=tuple(dict.fromkeys((*of_texts, *copies, ORDER))),
        assumptions=(*token.assumptions, key),
        notes=tuple(lines),
        per=budget.per,
    )
