"""A release: mechanism, budget, text policy and key, frozen; and its digest."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from types import NoneType
from typing import Any, ClassVar, Literal, Self

import numpy as np

from corpusveil.budget import Budget
from corpusveil.budget.budget import times, written
from corpusveil.choices import DUPLICATES
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.display import Card, rounded_up
from corpusveil.errors import SettingError, not_a_choice
from corpusveil.kernel.kernel import KERNEL_VERSION, Kernel
from corpusveil.mechanisms import Guarantee, Mechanism
from corpusveil.recognizers.registry import kinds
from corpusveil.recognizers.registry import named as recognizer_of
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import FLOOR, TOTAL
from corpusveil.spaces import Space
from corpusveil.text.classes import TOKENIZER_VERSION
from corpusveil.text.languages import rule
from corpusveil.text.policy import TextPolicy
from corpusveil.text.spans import OTHERS, SpanPolicy
from corpusveil.transforms.release.keyed_release import MAKE_KEY, AnyRelease, check_parts
from corpusveil.transforms.release.promises import ORDER, of_documents, of_tokens
from corpusveil.transforms.release.risk import EpsilonAtRisk, epsilon_at

EXAMPLE_LENGTHS = (10, 100, 1000)
"""The replaced words of documents for which a law is shown."""
MANY_UNCHANGED = 0.5
READABLE = (
    ". Warning: people can read a text if most of its words stay; choose a smaller epsilon, a risk, or a store, which "
    "replaces whole texts"
)

_PARTS: Mapping[str, tuple[Any, str]] = {
    "mechanism": (Mechanism, "cv.mechanism(NAME, space), or a class such as cv.RingGeometric(space)"),
    "budget": (Budget, "cv.Budget(1.0), or cv.Budget(10, per='document')"),
    "policy": (TextPolicy, "cv.TextPolicy()"),
    "key": (Key, MAKE_KEY),
    "collocations": ((Collocations, NoneType), "the table, cv.load_collocations(URL)"),
    "spans": ((SpanPolicy, NoneType), "cv.SpanPolicy(find=['rules', 'names'])"),
    "risk": ((EpsilonAtRisk, NoneType), "the risk of a release that cv.release(risk=0.5, key=key) returns"),
}
"""The types of the parts of a release, and how to make each."""


@dataclass(frozen=True, slots=True, repr=False)
class Release(AnyRelease):
    """All that decides the output of a release by words. It is frozen, and its digest identifies it.

    ``mechanism`` replaces words at the epsilon of ``budget``, and ``policy`` treats all other tokens. ``key`` is secret
    and required: another key makes another release. ``spans`` treats names and numbers as wholes. ``collocations``
    joins words for the policy's tokenizer. ``duplicates``: equal texts get ``independent`` noise or ``same-noise``.
    Without effect on the text: ``accept_no_guarantee`` allows a mechanism without a guarantee, and ``risk`` records
    which risk chose epsilon. Raises UserError for parts that do not fit.

    >>> release = cv.Release(cv.RingGeometric(space), cv.Budget(epsilon=1.0), cv.TextPolicy(case="restore"), key=key)
    >>> release.guarantee().holds
    True
    """

    mechanism: Mechanism
    budget: Budget
    policy: TextPolicy = field(default_factory=TextPolicy)
    collocations: Collocations | None = None
    spans: SpanPolicy | None = field(default=None, kw_only=True)
    counted: ClassVar[Literal["token"]] = "token"
    span_marks: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """What recognizers were when the release was made; each worker compares."""
    accept_no_guarantee: bool = field(default=False, kw_only=True, compare=False)
    """Required for a mechanism without a guarantee; it changes nothing else, and is in no digest."""
    risk: EpsilonAtRisk | None = field(default=None, kw_only=True, compare=False)
    """The risk that chose epsilon, if any (``epsilon_at``): for the manifest, and in no digest."""

    def __post_init__(self) -> None:
        check_parts(self, _PARTS)
        if not self.mechanism.private and not self.accept_no_guarantee:
            raise SettingError(
                f"{self.mechanism.name} has no guarantee; choose another mechanism, or set accept_no_guarantee."
            )
        if (self.policy.tokenizer == "word") != (self.collocations is None):
            need = "takes no" if self.policy.tokenizer == "word" else "needs a"
            raise SettingError(
                f"tokenizer = {self.policy.tokenizer!r}: this tokenizer {need} collocation table (collocations)."
            )
        if self.duplicates not in DUPLICATES:
            raise not_a_choice("duplicates", self.duplicates, DUPLICATES)
        language = self.mechanism.space.read_in(self.policy.language)
        if language != self.policy.language:
            object.__setattr__(self, "policy", replace(self.policy, language=language))
        if self.collocations is not None and self.collocations.reading.language != language:
            raise SettingError(
                f"language {language}: the text of the collocation table was read as "
                f"{self.collocations.reading.language}; count and score with the same language as the space."
            )
        read = {"space": self.mechanism.space.hyphens}
        read |= {} if self.collocations is None else {"collocation table": self.collocations.hyphens}
        for what, hyphens in read.items():
            if hyphens not in (None, self.policy.hyphens):
                raise SettingError(
                    f"hyphens {self.policy.hyphens}: the text of the {what} was read with hyphens {hyphens}; read the "
                    "documents in the same way."
                )
        if self.risk is not None and (
            self.budget != Budget(self.risk.epsilon)
            or self.risk != epsilon_at(self.mechanism, self.risk.risk, self.policy)
        ):
            raise SettingError(
                "risk: it chose another epsilon, or for another mechanism, space or treatment of stop words; leave it "
                "out, or choose it for these, with cv.release(risk=…, key=key)."
            )
        marks = [] if self.spans is None else [recognizer_of(name).mark for name in self.spans.find]
        object.__setattr__(self, "span_marks", tuple(marks))
        if self.spans is not None:
            self._check_spans(self.spans)
        if self.collocations is not None:
            self.collocations.require_some_in(self.mechanism.space.vocabulary)

    def _check_spans(self, policy: SpanPolicy) -> None:
        """Raise UserError for spans that nothing finds, or that recognizers cannot see."""
        if (known := kinds(policy.find)) is not None:
            for kind in {kind for kind, _ in policy.pairs} - known - {OTHERS}:
                raise SettingError(f"treat: {kind}: nothing finds spans of this kind; name {', '.join(sorted(known))}.")
        if rule(language := self.policy.language, "dotless_i"):
            raise SettingError(
                f"language {language}: recognizers would see other letters than the text has; leave spans out."
            )

    def configuration(self) -> dict[str, Any]:
        return {
            "kernel": KERNEL_VERSION,
            "tokenizer": f"{TOKENIZER_VERSION}{self.policy.reading_version()}",
            "mechanism": {"name": self.mechanism.name, **self.mechanism.parameters()},
            "budget": self.budget.as_dict(),
            "text": self.policy.as_dict(),
            "space": self.mechanism.space.digest,
            **({} if self.collocations is None else {"collocations": self.collocations.digest}),
            **({} if self.duplicates == "independent" else {"duplicates": self.duplicates}),
            **({} if self.spans is None else {"spans": self._spans(self.spans)}),
        }

    def _spans(self, policy: SpanPolicy) -> dict[str, Any]:
        """Return the settings of spans, with a keyed digest in place of terms, which may be confidential."""
        secret, named = self.key.derive("terms", b"", 32), [recognizer_of(name).identity for name in policy.find]
        return {
            "find": [
                mark if mark == name else hashlib.blake2b(mark.encode(), digest_size=16, key=secret).hexdigest()
                for name, mark in zip(named, self.span_marks, strict=True)
            ],
            "treat": dict(policy.pairs),
        }

    def guarantee(self) -> Guarantee:
        """Return the guarantee of the release as a whole, as the command line and the manifest state it.

        ``disclosed`` lists what the text policy leaves in the clear, and ``per`` is the unit of epsilon. ``notes``
        state in words the guarantee of a token and of a document, its conditions, and the bound of unknown words.
        """
        mechanism, budget, policy = self.mechanism, self.budget, self.policy
        token = mechanism.guarantee(budget.epsilon)
        if budget.per == "document" and token.holds:  # at any share, which differs by document
            token = replace(
                token,
                metric=f"the largest over a document's words of: {mechanism.distance}",
                plain_ldp=math.log(TOTAL / FLOOR),
                neighbors="documents with equally many tokens that differ only in known words; plain_ldp is for a word",
                notes=(),
            )
        lines = ["No guarantee holds: " + " ".join(token.notes)]
        if token.holds:
            own = of_documents(mechanism, budget, policy, self.spans, self.duplicates, token)
            lines = [*own, *token.notes]
        lines += of_tokens(mechanism, budget, policy, self.spans)
        of_spans = () if self.spans is None else self.spans.disclosed()
        copies = ("which documents are equal",) if self.duplicates == "same-noise" else ()
        of_texts = (*policy.disclosed(), *of_spans, *token.disclosed)
        return replace(
            token,
            disclosed=tuple(dict.fromkeys((*of_texts, *copies, ORDER))),
            assumptions=(*token.assumptions, self.key_assumption),
            notes=tuple(lines),
            per=budget.per,
        )

    def at(self, epsilon: float) -> Self:
        chosen = None if self.risk is None or self.risk.epsilon != epsilon else self.risk
        return replace(self, budget=replace(self.budget, epsilon=epsilon), risk=chosen)

    @property
    def public(self) -> Space:
        return self.mechanism.space

    def statement(self) -> dict[str, Any]:
        """Return the guarantee as JSON-able fields, and in words, for a manifest; and the risk that chose epsilon."""
        return AnyRelease.statement(self) | ({} if self.risk is None else {"risk": self.risk.as_dict()})

    def in_brief(self) -> str:
        budget = self.budget
        at_most, adds_up = times(budget.epsilon, "their distance"), "The bounds of a document's words add up."
        if budget.per == "document":
            at_most = f"its share of epsilon {rounded_up(budget.epsilon)} times their distance"
            adds_up = "A document's words share this epsilon."
        return (
            f"without the key, a reader can distinguish two originals of a word by at most {at_most}, and by no more "
            f"than {rounded_up(self.guarantee().plain_ldp)} nats. {adds_up}"
        )

    def law(self) -> str:
        said = f"{'' if self.mechanism.private else 'No guarantee. '}Expected share of known words that are unchanged"
        lengths = EXAMPLE_LENGTHS[:1] if self.budget.per == "token" else EXAMPLE_LENGTHS
        stay = [self.mechanism.retention(float(epsilon)) for epsilon in self.budget.shares(np.array(lengths))]
        warned = READABLE if max(stay) > MANY_UNCHANGED else ""
        if self.budget.per == "token":
            return f"{said}: {stay[0]:.1%}{warned}"
        shares = [f"{share:.1%} of {words}" for share, words in zip(stay, lengths, strict=True)]
        return f"{said}, by the words of a document: {', '.join(shares)}{warned}"

    def remarks(self) -> list[str]:
        risks = [] if self.risk is None else [self.risk.sentence()]
        lists = [] if self.spans is None else [recognizer_of(name).said for name in self.spans.find]
        return [*risks, *filter(None, lists)]

    def card(self) -> Card:
        """Return what decides the text, and what is in the clear, without ``guarantee``, which may take long."""
        mechanism, budget, policy = self.mechanism, self.budget, self.policy
        given = ", ".join(f"{name} = {value}" for name, value in mechanism.parameters().items())
        of_spans = () if self.spans is None else self.spans.disclosed()
        shared = "" if budget.allocation == "uniform" else f", shared by {budget.allocation}"
        texts = ", ".join(f"{name} {value}" for name, value in asdict(policy).items() if value is not None)
        return Card(
            self.title,
            [
                ("mechanism", f"{mechanism.name}{f' ({given})' if given else ''}"),
                ("space", repr(mechanism.space)),
                ("budget", f"epsilon {written(budget.epsilon)} a {budget.per}{shared}"),
                ("text", texts),
                *([] if self.collocations is None else [("collocations", self.collocations.digest)]),
                *([] if self.risk is None else [("risk", self.risk.sentence().removeprefix("Risk "))]),
                *([] if self.spans is None else [("spans", self.spans.in_words())]),
                ("equal texts", str(self.duplicates)),
                ("in the clear", "; ".join((*policy.disclosed(), *of_spans))),
                ("promise", "release.guarantee() shows it" if mechanism.private else "none"),
            ],
        )

    def kernel(self) -> Kernel:
        """Return the batch kernel. It holds the subkeys of this release, never the key itself."""
        reading, same_noise = f"{TOKENIZER_VERSION}{self.policy.reading_version()}", self.duplicates == "same-noise"
        return Kernel(
            self.mechanism, self.budget, self.policy, self.draw_key(), reading, self.collocations, same_noise,
            self.spans, self.span_marks,
        )  # fmt: skip


_NAMES = {
    "duplicates": "output.duplicates",
    "space": "the digest of space.path",
    "collocations": "the digest of text.collocations",
    "kernel": "the kernel version of corpusveil",
    "tokenizer": "the tokenizer version of corpusveil",
}
"""What a configuration names otherwise than the settings do."""


def _named(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything in a configuration that decides the text, by the names of settings."""
    out: dict[str, Any] = {}
    for name, value in configuration.items():
        if name in ("mechanism", "budget", "text", "spans"):
            out |= {_NAMES.get(place := f"{name}.{key}", place): part for key, part in value.items()}
        elif name != "columns":
            out[_NAMES.get(name, name)] = value
    return out


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Say in words how configurations differ; a value that is missing or None is not set."""
    given = _named(then), _named(now)
    shown = [{name: json.dumps(value) for name, value in some.items() if value is not None} for some in given]
    pairs = [(name, *(values.get(name, "not set") for values in shown)) for name in given[0] | given[1]]
    return [f"{name} was {before} and is {after}" for name, before, after in pairs if before != after]
