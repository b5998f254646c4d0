"""The guarantee of a release, in fields and in words, for Python, the command line, the manifest and its page.

That of whole documents is stated for some lengths, in (ε, δ) and as the pure bound, before any text is read.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from corpusveil.budget import Budget
from corpusveil.budget.budget import times, written
from corpusveil.budget.composition import epsilon_at, pure_sum
from corpusveil.budget.length import Length, LengthGrid
from corpusveil.budget.privacy_loss import PrivacyLoss, Pure
from corpusveil.choices import Duplicates
from corpusveil.display import figure, round_up, rounded_up
from corpusveil.errors import BadValueError, NoGuaranteeError
from corpusveil.kernel.lengths import disclosed, length_epsilon, without_token_count
from corpusveil.kernel.prepared import public_weights
from corpusveil.mechanisms import Guarantee, Mechanism
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import FLOOR, TOTAL
from corpusveil.text.policy import ROLE_NAMES, TextPolicy
from corpusveil.text.spans import SpanPolicy
from corpusveil.transforms.release.promises import IN_BRIEF, OF_DOCUMENTS, OF_TOKENS, ORDER, sentences

LENGTHS = (50, 200, 500, 1000)
"""The numbers of words for which a release states figures."""
DIGITS = 6
"""The digits of a figure in a manifest, rounded up, since the last bits of a convolution differ between machines."""
_NEIGHBORS = "two documents with equally many tokens and m replaced words each that differ only in known words"
_RELEASED = (
    "two documents that are released with m words each, including fillers, with unknown words in the same places"
)
NOT_PRIVATE = "NOT PRIVATE: made with the published test key"
KEY_ASSUMPTION = "The key is secret, and no reader can have texts of their own privatized under it."


@dataclass(frozen=True, slots=True)
class DocumentFigure:
    """The guarantee of a document of ``words``: ``pure``, and ``epsilon`` at ``delta``.

    ``words`` are the replaced units of a document, each a single word or a collocation; under ``word-share`` all its
    words.

    It holds between documents of one skeleton in which each word differs by at most ``distance``, in the metric of the
    mechanism. An infinite distance means any two words. With a length policy, ``words`` are the released words, and
    ``length_epsilon`` is included: the cost of one word more or less, None without a policy. Only at an infinite
    distance may the two documents have different lengths, because a word is then compared with a filler.
    """

    words: int
    pure: float
    epsilon: float
    delta: float
    distance: float
    length_epsilon: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, numbers rounded up to six digits; any two words have no distance."""
        return {
            "words": self.words,
            "pure": round_up(self.pure, DIGITS),
            "epsilon": round_up(self.epsilon, DIGITS),
            "delta": self.delta,
            "distance": None if math.isinf(self.distance) else self.distance,
            **({} if self.length_epsilon is None else {"length_epsilon": self.length_epsilon}),
        }


def document_figure(
    mechanism: Mechanism,
    budget: Budget,
    words: int,
    delta: float,
    distance: float = 1.0,
    length: Length | None = None,
) -> DocumentFigure:
    """Return the guarantee of a document of ``words`` (see ``DocumentFigure``); with a length policy, released words.

    ``uniform`` counts units, and under ``word-share`` n words form at most n units of equal shares. Raises UserError
    for a mechanism without a guarantee, and for numbers out of range.
    """
    if isinstance(distance, bool) or not isinstance(distance, (int, float)) or not distance > 0:
        raise BadValueError(f"distance = {distance}: give a number above 0, or inf for any two words.")
    parts: list[tuple[PrivacyLoss, int]] = []
    epsilons = {budget.share_of(words): words}
    for epsilon, count in epsilons.items():
        loss = mechanism.privacy_loss(epsilon, None if math.isinf(distance) else float(distance))
        if loss is None:
            raise NoGuaranteeError(
                f"{mechanism.name} has no guarantee, so nothing can be stated for a document; choose another mechanism."
            )
        parts.append((loss, count))
    if of_length := length_epsilon(length):
        parts.append((Pure(of_length), 1))
    replaced, pure = sum(epsilons.values()), pure_sum(tuple(parts))
    bound = None if length is None else of_length
    return DocumentFigure(replaced, pure, epsilon_at(parts, delta), delta, float(distance), bound)


def neighbors(of: DocumentFigure) -> str:
    """Say which documents a figure compares."""
    apart = "by any distance" if math.isinf(of.distance) else f"by a distance of at most {of.distance:g}"
    if of.length_epsilon is None:
        return f"documents with the same number of tokens in which each known word differs {apart}"
    if not math.isinf(of.distance):  # a filler can be any word, at any distance
        return f"documents with the same number of words of their own in which each known word differs {apart}"
    ends = (
        "end at most one word earlier or later" if of.length_epsilon else "are released with the same number of words"
    )
    return f"documents of known words only, which may all differ, that {ends}"


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


def settings_of(release: Stated, *, holds: bool, figures: bool) -> dict[str, Sequence[str]]:
    """Return the values of the settings that conditions of promises name, of a release whose mechanism ``holds``."""
    budget, policy, spans, length = release.budget, release.policy, release.spans, release.length
    finders = () if spans is None else [name for name in spans.find if isinstance(name, str)]
    return {
        "guarantee": ("holds",) if holds else (),
        "figures": ("asked",) if figures else (),
        "budget.per": (budget.per,),
        "budget.allocation": (budget.allocation,),
        "text": ("resample",) if _resampled(policy) else (),
        "text.tokenizer": (policy.tokenizer,),
        "text.stop_words": (policy.stop_words,),
        "text.unknown_words": (policy.unknown_words,),
        "text.numbers": (policy.numbers,),
        "length": () if length is None else (length.policy,),
        "spans": () if spans is None else ("found",),
        "spans.find": tuple(finders),
        "output.duplicates": (release.duplicates,),
    }


def _resampled(policy: TextPolicy) -> list[str]:
    """Return the roles of tokens that are drawn from public counts."""
    return [name for name in ROLE_NAMES[1:] if getattr(policy, name) == "resample"]


_HIDDEN = {
    "mask": "its kind",
    "resample": "a word drawn from public counts",
}
"""What a span becomes that cannot be distinguished from others."""


def values_of(release: Stated, token: Guarantee, figures: Sequence[DocumentFigure]) -> dict[str, Callable[[], str]]:
    """Return what computes each name in a promise of a release, whose words have the guarantee ``token``."""
    mechanism, budget, policy, length = release.mechanism, release.budget, release.policy, release.length
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
        "neighbors": lambda: _NEIGHBORS if length is None else _RELEASED,
        "each": lambda: budget.factors[0],
        "largest": lambda: budget.factors[1],
        "figures": lambda: _in_epsilon_delta(release, figures),
        "pad": lambda: f"{length.pad:,}" if isinstance(length, LengthGrid) else "",
        "length_epsilon": lambda: written(length_epsilon(length)),
        "resampled": lambda: ", ".join(_resampled(policy)),
        "but_capitals": lambda: " except by their capitals" if policy.case == "restore" else "",
        "unknown_bound": unknown_bound,
        "whatever_share": lambda: "" if is_single else ", whatever its share of the budget",
        "hidden": lambda: " or ".join(words for how, words in _HIDDEN.items() if how in treatments),
    }


def _in_epsilon_delta(release: Stated, figures: Sequence[DocumentFigure]) -> str:
    """Return the guarantee of documents in (epsilon, delta), in a sentence; nothing without figures."""
    if not figures:
        return ""
    which, noun = ("released" if release.length is not None else "replaced"), "words"
    if release.budget.allocation == "word-share":
        which = "words, replaced or not"
    else:
        noun = "words" if release.policy.tokenizer == "word" else "units"
        which = f"{which} {noun}"
    shares = ", with shares rounded down to the grid" if release.budget.per == "document" else ""
    each = "; ".join(
        f"{shown.words:,} {noun}: {figure(shown.epsilon)} (pure {figure(shown.pure)})" for shown in figures
    )
    compared = f"at delta = {figures[0].delta:g}, compared with {neighbors(figures[0])}"
    return f"(epsilon, delta) of documents {compared}; epsilon by the number of {which}{shares}: {each}."


def guarantee_of(release: Stated, figures: Sequence[DocumentFigure] = ()) -> Guarantee:
    """Return the guarantee of a release as a whole, with the printed sentences as ``notes``.

    They state the guarantee of a token and of a document, its conditions, the ``figures`` of documents, and the bound
    of unknown words.
    """
    mechanism, budget, policy = release.mechanism, release.budget, release.policy
    token = mechanism.guarantee(budget.epsilon)
    if budget.per == "document" and token.holds:  # at any share, which differs by document
        token = dataclasses.replace(
            token,
            metric=f"the largest over a document's words of: {mechanism.distance}",
            plain_ldp=math.log(TOTAL / FLOOR),
            neighbors="documents with equally many tokens that differ only in known words; plain_ldp is for a word"
            if release.length is None
            else "documents that are released with equally many words; plain_ldp is for a word",
            notes=(),
        )
    settings = settings_of(release, holds=token.holds, figures=bool(figures))
    values = values_of(release, token, figures)
    lines = ["No guarantee holds: " + " ".join(token.notes)]
    if token.holds:
        lines = [*sentences(OF_DOCUMENTS, settings, values), *token.notes]
    lines += sentences(OF_TOKENS, settings, values)
    of_spans = () if release.spans is None else release.spans.disclosed()
    copies = {
        "same-noise": ("which documents are equal",),
        "drop": ("that no two documents are equal, and that missing rows or ids were copies",),
    }.get(release.duplicates, ())
    of_texts = (*disclosed(policy, release.length), *of_spans, *without_token_count(token.disclosed, release.length))
    key = f"{NOT_PRIVATE}, which everybody has." if release.key.test else KEY_ASSUMPTION
    return dataclasses.replace(
        token,
        disclosed=tuple(dict.fromkeys((*of_texts, *copies, ORDER))),
        assumptions=(*token.assumptions, key),
        notes=tuple(lines),
        per=budget.per,
    )
