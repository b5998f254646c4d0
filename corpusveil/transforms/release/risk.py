"""Choosing by risk: the epsilon at which an informed reader guesses at most a share of the words of public text."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corpusveil.choices import RISK_OF, RiskOf
from corpusveil.display import Card, Shown, rounded_up
from corpusveil.errors import BadValueError, DataError, UnsetError, not_a_choice, of_other_type
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.risk import READERS, largest_epsilon, prior_of, reader_guesses, word_risk
from corpusveil.waiting import reached, waiting

if TYPE_CHECKING:
    from corpusveil.language.model import LanguageModel

DIGITS = 9
"""Decimals of a share: sums on two machines can differ only beyond these."""


@dataclass(frozen=True, slots=True, repr=False)
class EpsilonAtRisk(Shown):
    """The epsilon of a word chosen by ``risk``, and the share ``measured`` that a reader guesses at this epsilon.

    ``risk_of`` names the reader: of single words, or also of context, by the language model whose digest is ``model``.
    ``exact`` is False if samples estimate the share. ``plain_ldp`` is in nats; None without a guarantee.
    """

    risk: float
    risk_of: RiskOf
    epsilon: float
    measured: float
    exact: bool
    plain_ldp: float | None
    model: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return its fields for a manifest; all of them are public."""
        fields = {"risk": self.risk, "risk_of": self.risk_of, "measured": self.measured, "exact": self.exact}
        return fields | ({} if self.model is None else {"model": self.model})

    def sentence(self) -> str:
        """Say it in one sentence."""
        nats = "no guarantee" if self.plain_ldp is None else f"at most {rounded_up(self.plain_ldp)} nats a word"
        return (
            f"Risk: at epsilon {self.epsilon:.4g}, the largest that keeps it at {self.risk:.1%} or less on public "
            f"text, {reader_guesses(self.measured, self.risk_of)}; {nats}"
        )

    def card(self) -> Card:
        """Return the sentence as fields."""
        nats = "none" if self.plain_ldp is None else f"at most {rounded_up(self.plain_ldp)} nats for any two words"
        measured = f"about {self.measured:.1%} of known words {READERS[self.risk_of]}, on public text"
        return Card(
            f"Epsilon {self.epsilon:.4g} a word, for a risk of {self.risk:.1%}",
            [("guessed", measured), ("by", "the exact law" if self.exact else "samples"), ("promise", nats)],
        )


def risk_of(manifest: Mapping[str, Any]) -> EpsilonAtRisk | None:
    """Return what a manifest says about the risk that chose its epsilon, without nats; None without a risk."""
    risk = manifest.get("risk")
    if risk is None:
        return None
    epsilon = float(manifest["configuration"]["budget"]["epsilon"])
    return EpsilonAtRisk(
        risk["risk"], risk["risk_of"], epsilon, risk["measured"], risk["exact"], None, risk.get("model")
    )


def epsilon_for_risk(
    mechanism: Mechanism, risk: float, *, of: RiskOf = "word", model: LanguageModel | None = None
) -> EpsilonAtRisk:
    """Return the largest epsilon 2^(j/8) at which an informed reader guesses at most ``risk`` of public text's words.

    The reader knows the mechanism, epsilon and the public counts of the space; ``of="context"``, the language
    ``model`` as well. Only public artefacts are read, so the choice costs no privacy, and it is the same on every
    machine. Raises UserError for a space without counts, and where no epsilon has so small a risk.
    """
    if not isinstance(mechanism, Mechanism):
        raise of_other_type("mechanism", mechanism, "cv.mechanism(NAME, space)")
    if isinstance(risk, bool) or not isinstance(risk, (int, float)) or not 0 < risk < 1:
        raise BadValueError(f"risk = {risk}: give a share of words, a number between 0 and 1.")
    if of not in RISK_OF:
        raise not_a_choice("risk_of", of, RISK_OF)
    if of == "context" and not isinstance(model, context().LanguageModel):
        raise UnsetError(
            "risk_of = 'context': this reader knows a language model; give model, as in cv.load_model(URL)."
        )
    if of == "word" and mechanism.space.counts is None:
        raise UnsetError(
            "risk: a reader weighs words by their frequency, and this space has no public counts; build the space "
            "with counts, or choose epsilon."
        )
    _refuse_below_blind(mechanism, float(risk))
    measures: dict[float, tuple[float, bool]] = {}

    def risk_at(epsilon: float) -> float:
        reached(f"epsilon {epsilon:.4g}")
        if model is not None and of == "context":
            share, exact = context().context_risk(mechanism, epsilon, model).share, False
        else:
            guessed = word_risk(mechanism, epsilon)
            share, exact = guessed.share, guessed.exact
        measures[epsilon] = (round(share, DIGITS), exact)
        return measures[epsilon][0]

    with waiting("choosing epsilon by risk"):
        epsilon = largest_epsilon(risk_at, float(risk))
    measured, exact = measures[epsilon]
    nats = mechanism.guarantee(epsilon).plain_ldp
    digest = model.digest if model is not None and of == "context" else None
    return EpsilonAtRisk(float(risk), of, epsilon, measured, exact, nats, digest)


def context() -> Any:
    """Return the module of the reader from context, who has a language model: runs without this reader load neither."""
    return importlib.import_module("corpusveil.language.context_risk")


def _refuse_below_blind(mechanism: Mechanism, risk: float) -> None:
    """Raise UserError if a blind guess is right more often."""
    if mechanism.space.counts is not None and risk < (blind := prior_of(mechanism.space).guess):
        raise DataError(
            f"risk = {risk:g}: a guess of the most frequent word, without any release, is right for {blind:.1%} "
            "of the words of public text; give a larger risk."
        )
