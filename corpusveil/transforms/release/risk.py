"""Choosing by risk: the epsilon at which a reader recovers at most a share of the content words of public text."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corpusveil.display import Card, Shown, rounded_up
from corpusveil.errors import BadValueError, DataError, UnsetError, of_other_type
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.content import content_weights
from corpusveil.mechanisms.on_lists import OnLists
from corpusveil.mechanisms.risk import TRIGRAMS, basis_of, largest_epsilon, prior_of, recovered
from corpusveil.spaces import Space
from corpusveil.spaces.installed import shipped_beside
from corpusveil.storage.records import Line, Record
from corpusveil.text.policy import DEFAULT, TextPolicy
from corpusveil.waiting import reached, waiting

if TYPE_CHECKING:
    from corpusveil.language.model import LanguageModel

DIGITS = 9
"""Decimals of a share: sums on two machines can differ only beyond these."""


class RiskField(Record):
    """The risk that chose epsilon, as a manifest has it: fields of an ``EpsilonAtRisk``."""

    risk: float
    measured: float
    error: float
    model: Line
    beside: float
    blind: float | None = None
    unlike: float | None = None
    unlike_error: float | None = None
    highest: tuple[Line, float, float] | None = None
    text: Line | None = None
    own_text: bool | None = None
    reader: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class EpsilonAtRisk(Shown):
    """The epsilon of a word chosen by ``risk``, and the share ``measured`` that a reader recovers at this epsilon.

    The ``reader`` reads whole public texts with the language model whose digest is ``model``, and perhaps another; it
    is the strongest that was measured. ``measured`` is of the content words of text like the model's, with its standard
    ``error``, and ``beside`` of all words; ``unlike`` is of text of kinds that the model has not counted, None if not
    measured. ``highest`` is the register like the model's of which most is recovered, its share and standard error.
    ``text`` is a digest of texts, and with ``own_text`` they are texts that were given. ``blind`` is what ``measured``
    is without the release. ``plain_ldp`` is in nats; None without a guarantee. The choice holds for the mechanism,
    space and treatment of stop words whose digest is ``basis``; None if unknown.
    """

    risk: float
    epsilon: float
    measured: float
    error: float
    plain_ldp: float | None
    model: Line
    beside: float
    blind: float | None = None
    basis: Line | None = None
    unlike: float | None = None
    unlike_error: float | None = None
    highest: tuple[Line, float, float] | None = None
    text: Line | None = None
    own_text: bool | None = None
    reader: Line | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return its fields for a manifest; all of them are public."""
        known = {name: value for name in RiskField.model_fields if (value := getattr(self, name)) is not None}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in known.items()}

    @property
    def readers(self) -> tuple[str, ...]:
        """What a reader recovers: a line for each kind of text."""
        unlike = None if self.unlike is None else (self.unlike, self.unlike_error or 0.0)
        return recovered(
            (self.measured, self.error), unlike, reader=self.reader or TRIGRAMS, own_text=bool(self.own_text),
            highest=self.highest,
        )  # fmt: skip

    def sentence(self) -> str:
        """Say it in one sentence."""
        nats = "no guarantee" if self.plain_ldp is None else f"at most {rounded_up(self.plain_ldp)} nats a word"
        return (
            f"Risk: at epsilon {self.epsilon:.4g}, the largest that keeps content words at {self.risk:.1%} "
            f"or less on public text, {', and '.join(self.readers)}; {nats}"
        )

    def card(self) -> Card:
        """Return the sentence as fields."""
        nats = "none" if self.plain_ldp is None else f"at most {rounded_up(self.plain_ldp)} nats for any two words"
        return Card(
            f"Epsilon {self.epsilon:.4g} a word, for a risk of {self.risk:.1%} of content words",
            [("guessed", f"{', and '.join(self.readers)}"), ("by", "texts that no count has read"), ("promise", nats)],
        )  # fmt: skip


def risk_of(manifest: Mapping[str, Any]) -> EpsilonAtRisk | None:
    """Return what a manifest says about the risk that chose its epsilon; None without a risk."""
    risk = manifest.get("risk")
    if risk is None:
        return None
    known: dict[str, Any] = {name: risk.get(name) for name in RiskField.model_fields}
    known["highest"] = None if known["highest"] is None else tuple(known["highest"])
    epsilon, nats = float(manifest["configuration"]["budget"]["epsilon"]), manifest["guarantee"]["plain_ldp"]
    return EpsilonAtRisk(epsilon=epsilon, plain_ldp=nats, **known)


def epsilon_for_risk(
    mechanism: Mechanism, risk: float, *, model: LanguageModel | None = None, texts: Sequence[str] | None = None,
    policy: TextPolicy = DEFAULT,
) -> EpsilonAtRisk:  # fmt: skip
    """Return the largest epsilon at which a reader recovers at most ``risk`` of the content words of public text.

    The reader reads whole texts, and knows the mechanism, epsilon, ``policy``, the public counts of the space and a
    language ``model``: by default that of the package of the space, if it has one. It is the strongest whose figures
    the model keeps. ``texts`` are public texts of your own kind, read with the trigrams alone; by default the sample
    that the model keeps. Epsilons are 2^(j/8), for mechanisms on vectors in finer
    steps. Only public artifacts are read, so the choice costs no privacy, and it is the same on every machine. Raises
    UserError without a model, and where no epsilon has so small a risk.
    """
    if not isinstance(mechanism, Mechanism):
        raise of_other_type("mechanism", mechanism, "cv.mechanism(NAME, space)")
    if isinstance(risk, bool) or not isinstance(risk, (int, float)) or not 0 < risk < 1:
        raise BadValueError(f"risk = {risk}: give a share of words, a number between 0 and 1.")
    blind = _blind_guess(mechanism.space, float(risk), policy)
    reads, about = _readers(mechanism, model, texts, policy)
    measures: dict[float, tuple[float, float]] = {}

    def risk_at(epsilon: float) -> float:
        reached(f"epsilon {epsilon:.4g}")
        read = reads[0].read(epsilon)
        measures[epsilon] = (round(read.content.share, DIGITS), round(read.share, DIGITS))
        return measures[epsilon][0]

    with waiting("choosing epsilon by risk"):
        epsilon = largest_epsilon(risk_at, float(risk), fine=not isinstance(mechanism, OnLists))
        about |= _measured(reads, epsilon)
    content, every = measures[epsilon]
    return EpsilonAtRisk(
        float(risk), epsilon, content, plain_ldp=mechanism.guarantee(epsilon).plain_ldp, beside=every, blind=blind,
        basis=basis_of(mechanism, policy), **about,
    )  # fmt: skip


def _readers(
    mechanism: Mechanism, model: LanguageModel | None, texts: Sequence[str] | None, policy: TextPolicy
) -> tuple[Sequence[Any], dict[str, Any]]:  # fmt: skip
    """Return readers of text like the model's, and of text unlike it, and what they are about for a choice by risk."""
    module = context()
    if model is None and (named := shipped_beside(mechanism.space.url)) is not None:
        model = module.load_model(named)
    if not isinstance(model, module.LanguageModel):
        raise UnsetError(
            "risk: a reader from context knows a language model, which this space does not ship; give model, as in "
            "cv.load_model(URL)."
        )
    reads, text = module.readers_of(mechanism, model, texts, policy)
    return reads, {"model": model.digest, "text": text, "own_text": texts is not None or None}


def _measured(reads: Sequence[Any], epsilon: float) -> dict[str, Any]:
    """Return the fields on what readers recover: the error, text unlike the model's, the register with the most."""
    like, *others = [context().precise(each.read(epsilon)) for each in reads]
    shares = {"error": like.content.error}
    reader = {"reader": like.reader}
    for unlike in others:
        shares |= {"unlike": unlike.content.share, "unlike_error": unlike.content.error}
    more = {name: round(value, DIGITS) for name, value in shares.items()}
    if like.highest is None:
        return more | reader
    register, *figures = like.highest
    return more | reader | {"highest": (register, *(round(value, DIGITS) for value in figures))}


def context() -> Any:
    """Return the module of the reader from context, who has a language model: runs without this reader load neither."""
    return importlib.import_module("corpusveil.language.context_risk")


def _blind_guess(space: Space, risk: float, policy: TextPolicy) -> float | None:
    """Return how often a guess that needs no release is right, None without counts; more than the risk is an error."""
    if space.counts is None:
        return None
    shares = prior_of(space).shares * content_weights(space, policy.language)
    if risk < (blind := float(shares.max() / shares.sum())):
        raise DataError(
            f"risk = {risk:g}: a guess of the most frequent content word, without any release, is right for "
            f"{blind:.1%} of the content words of public text; give a larger risk."
        )
    return round(blind, DIGITS)
