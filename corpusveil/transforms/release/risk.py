"""Choosing by risk: the epsilon at which an informed reader guesses at most a share of the words of public text."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corpusveil.arrays import Float64
from corpusveil.choices import OF_CONTEXT, RISK_OF, RiskOf
from corpusveil.display import Card, Shown, rounded_up
from corpusveil.errors import BadValueError, DataError, UnsetError, not_a_choice, of_other_type
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.content import content_weights
from corpusveil.mechanisms.risk import largest_epsilon, prior_of, reader_guesses, word_risk
from corpusveil.spaces import Space
from corpusveil.text.policy import DEFAULT, TextPolicy
from corpusveil.waiting import reached, waiting

if TYPE_CHECKING:
    from corpusveil.language.model import LanguageModel

COUNTED: dict[RiskOf, str] = {
    "word": "words", "context": "words", "content": "content words", "content-context": "content words"
}  # fmt: skip
_LATER = ("model", "beside", "weights", "blind")
DIGITS = 9
"""Decimals of a share: sums on two machines can differ only beyond these."""


@dataclass(frozen=True, slots=True, repr=False)
class EpsilonAtRisk(Shown):
    """The epsilon of a word chosen by ``risk``, and the share ``measured`` that a reader guesses at this epsilon.

    ``risk_of`` names the reader: of single words, or also of context, by the language model whose digest is ``model``;
    who guesses all words, or content words. ``beside`` is the share of the other words that this reader guesses: of
    all, if ``measured`` is of content words, and the reverse; None in a manifest of an earlier version. ``weights`` is
    a digest of the weights of words, None by default, and ``blind`` what ``measured`` is without the release. ``exact``
    is False if samples estimate the shares. ``plain_ldp`` is in nats; None without a guarantee. The choice holds for
    the mechanism, space and treatment of stop words whose digest is ``basis``; None if unknown.
    """

    risk: float
    risk_of: RiskOf
    epsilon: float
    measured: float
    exact: bool
    plain_ldp: float | None
    model: str | None = None
    beside: float | None = None
    weights: str | None = None
    blind: float | None = None
    basis: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return its fields for a manifest; all of them are public."""
        names = ("risk", "risk_of", "measured", "exact", *_LATER)
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def sentence(self) -> str:
        """Say it in one sentence."""
        nats = "no guarantee" if self.plain_ldp is None else f"at most {rounded_up(self.plain_ldp)} nats a word"
        return (
            f"Risk: at epsilon {self.epsilon:.4g}, the largest that keeps {COUNTED[self.risk_of]} at {self.risk:.1%} "
            f"or less on public text, {reader_guesses(self.measured, self.risk_of, self.beside)}; {nats}"
        )

    def card(self) -> Card:
        """Return the sentence as fields."""
        nats = "none" if self.plain_ldp is None else f"at most {rounded_up(self.plain_ldp)} nats for any two words"
        measured = reader_guesses(self.measured, self.risk_of, self.beside)
        return Card(
            f"Epsilon {self.epsilon:.4g} a word, for a risk of {self.risk:.1%} of {COUNTED[self.risk_of]}",
            [("guessed", f"{measured}, on public text"), ("by", "the exact law" if self.exact else "samples"),
             ("promise", nats)],
        )  # fmt: skip


def risk_of(manifest: Mapping[str, Any]) -> EpsilonAtRisk | None:
    """Return what a manifest says about the risk that chose its epsilon; None without a risk."""
    risk = manifest.get("risk")
    if risk is None:
        return None
    known = {name: risk.get(name) for name in _LATER}
    epsilon, nats = float(manifest["configuration"]["budget"]["epsilon"]), manifest["guarantee"]["plain_ldp"]
    return EpsilonAtRisk(risk["risk"], risk["risk_of"], epsilon, risk["measured"], risk["exact"], nats, **known)


def epsilon_for_risk(
    mechanism: Mechanism, risk: float, *, of: RiskOf | None = None, model: LanguageModel | None = None,
    policy: TextPolicy = DEFAULT, content: Float64 | None = None,
) -> EpsilonAtRisk:  # fmt: skip
    """Return the largest epsilon 2^(j/8) at which an informed reader guesses at most ``risk`` of public text's words.

    The reader knows the mechanism, epsilon, ``policy`` and the public counts of the space, and from context also the
    language ``model``. ``of``: *word* and *context* count all words, *content* and *content-context* content words,
    each by its weight in ``content``, float64 [V], by default that of ``content_weights``. The default is
    content-context with a model, content without. Only public artefacts are read, so the choice costs no privacy, and
    it is the same on every machine. Raises UserError for a space without counts, and where no epsilon has so small a
    risk.
    """
    if not isinstance(mechanism, Mechanism):
        raise of_other_type("mechanism", mechanism, "cv.mechanism(NAME, space)")
    if isinstance(risk, bool) or not isinstance(risk, (int, float)) or not 0 < risk < 1:
        raise BadValueError(f"risk = {risk}: give a share of words, a number between 0 and 1.")
    if of is None:
        of = "content" if model is None else "content-context"
    if of not in RISK_OF:
        raise not_a_choice("risk_of", of, RISK_OF)
    if of not in OF_CONTEXT:
        model = None
    elif not isinstance(model, context().LanguageModel):
        raise UnsetError(f"risk_of = {of!r}: this reader knows a language model; give model, as in cv.load_model(URL).")
    if model is None and mechanism.space.counts is None:
        raise UnsetError(
            "risk: a reader weighs words by their frequency, and this space has no public counts; build the space "
            "with counts, or choose epsilon."
        )
    space = mechanism.space
    weights = content_weights(space, language=policy.language) if content is None else content
    of_content = of.startswith("content")
    blind = _blind_guess(mechanism.space, float(risk), of, weights)
    measures: dict[float, tuple[float, float, bool]] = {}

    def risk_at(epsilon: float) -> float:
        reached(f"epsilon {epsilon:.4g}")
        if model is not None:
            read, exact = context().context_risk(mechanism, epsilon, model, policy=policy, content=weights), False
        else:
            read = word_risk(mechanism, epsilon, policy=policy, content=weights)
            exact = read.exact
        measures[epsilon] = (round(read.content.share, DIGITS), round(read.share, DIGITS), exact)
        return measures[epsilon][not of_content]

    with waiting("choosing epsilon by risk"):
        epsilon = largest_epsilon(risk_at, float(risk))
    some, every, exact = measures[epsilon]
    return EpsilonAtRisk(
        float(risk), of, epsilon, some if of_content else every, exact, mechanism.guarantee(epsilon).plain_ldp,
        None if model is None else model.digest, every if of_content else some,
        None if content is None else hashlib.sha256(content.astype("<f8").tobytes()).hexdigest(), blind,
        basis_of(mechanism, policy),
    )  # fmt: skip


def basis_of(mechanism: Mechanism, policy: TextPolicy) -> str:
    """Return a digest of what a choice by risk depends on, beside the reader."""
    parts = [mechanism.name, mechanism.parameters(), mechanism.space.digest, policy.stop_words, policy.language]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def context() -> Any:
    """Return the module of the reader from context, who has a language model: runs without this reader load neither."""
    return importlib.import_module("corpusveil.language.context_risk")


def _blind_guess(space: Space, risk: float, of: RiskOf, weights: Float64) -> float | None:
    """Return how often a guess that needs no release is right, None without counts; more than the risk is an error."""
    if space.counts is None:
        return None
    of_content = of.startswith("content")
    shares = prior_of(space).shares * (weights if of_content else 1.0)
    if risk < (blind := float(shares.max() / shares.sum())):
        raise DataError(
            f"risk = {risk:g}: a guess of the most frequent {'content ' * of_content}word, without any release, is "
            f"right for {blind:.1%} of the {COUNTED[of]} of public text; give a larger risk."
        )
    return round(blind, DIGITS)
