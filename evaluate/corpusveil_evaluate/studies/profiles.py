"""The settings of published studies, from ``profiles.toml``, and the budgets of the collocation study.

A profile sets only what its study, or the study's public package, is known to have done. All other settings keep this
package's default, and the profile names them as ours.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from corpusveil.choices import STRATEGIES
from corpusveil.errors import ConflictError, UnknownError, nearest
from corpusveil.text.policy import ROLE_NAMES, TextPolicy

_AS_IT_WAS = ", as in the input"
_POLICIES = (*ROLE_NAMES[1:], "layout", "case")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The settings of one study.

    Attributes:
        name: as ``evaluate study`` names it.
        study: the paper.
        per: what the study's epsilon is for.
        epsilons: the values that the study ran; said, never imposed.
        text: the fields of ``TextPolicy`` that the study settles.
        parameters: mechanism -> parameter -> value, for the mechanisms whose parameters the study states. Mechanisms
            that this version does not have are in it, too.
        source: where the settings stand.
        open: what the study leaves open, or does in a way that a text policy can't, and what is done here instead.
    """

    name: str
    study: str
    per: Literal["token", "document"]
    epsilons: tuple[float, ...]
    text: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: str
    open: tuple[str, ...]

    @property
    def unit(self) -> str:
        """The unit of the study's epsilon, in the study's word."""
        return "word" if self.per == "token" else "document"

    def policy(self, **others: Any) -> TextPolicy:
        """Return the text policy; ``others`` are fields that the study leaves open.

        Raises UserError when one of them contradicts the profile.
        """
        for name, value in others.items():
            if (own := self.text.get(name, value)) != value:
                raise ConflictError(
                    f"{name} = {value!r} contradicts the profile {self.name}, which sets {own}; leave either out."
                )
        return TextPolicy(**{**others, **self.text})

    def in_the_clear(self, policy: TextPolicy | None = None) -> str:
        """Say in one sentence which tokens the output shows unchanged."""
        disclosed = (policy or self.policy()).disclosed()
        kept = [line.removesuffix(_AS_IT_WAS) for line in disclosed if line.endswith(_AS_IT_WAS)]
        if not kept:
            return f"Profile {self.name} leaves no token in the clear."
        return (
            f"Profile {self.name} leaves in the clear, as in the input: {'; '.join(kept)}. The guarantee compares "
            "documents that agree in these."
        )

    def lines(self, policy: TextPolicy | None = None) -> Iterator[str]:
        """Yield notes to read before a run: what is left in the clear, and what is not from the study."""
        yield self.in_the_clear(policy)
        yield f"It follows {self.study}: {self.source}; its epsilon is per {self.unit}."
        yield from self.open
        ours = [name for name in _POLICIES if name not in self.text]
        yield f"Not stated in the study; our choice unless you set it: {', '.join(ours) or 'no text policy'}."


_PROFILES = tomllib.loads(Path(__file__).with_name("profiles.toml").read_text(encoding="utf-8"))
PROFILES: Mapping[str, Profile] = {
    name: Profile(**{**own, "name": name, "epsilons": tuple(own["epsilons"]), "open": tuple(own["open"])})
    for name, own in _PROFILES["profiles"].items()
}


def find(name: str) -> Profile:
    """Return a profile. Raises UserError for an unknown name, with the nearest known one."""
    if name not in PROFILES:
        hint = nearest(name, PROFILES) or f"; there are: {', '.join(PROFILES)}."
        raise UnknownError(f"{name}: there is no profile of this name{hint}")
    return PROFILES[name]


def follow(name: str, epsilon: float, average_words: float) -> tuple[dict[str, Any], float]:
    """Return the options of a strategy, and the budget of a document: epsilon times the words of an average text.

    The average comes from public knowledge: that of a private corpus would disclose something about it.
    """
    return dict(STRATEGIES[name]), epsilon * average_words
