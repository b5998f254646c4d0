"""Profiles: the settings of each published study for ``privatize``, as data.

A profile sets only what its study, or the study's public package, is known to have done. All other settings keep this
package's default or the user's value, and the profile names them as ours. A profile is a shorthand for settings, not a
setting: the same settings without it give the same release digest and bytes, and no manifest contains its name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from corpusveil.errors import ConflictError, UnknownError
from corpusveil.text.policy import ROLE_NAMES, TextPolicy


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


_AS_IT_WAS = ", as in the input"
_POLICIES = (*ROLE_NAMES[1:], "layout", "case")

_STUDIES = (
    Profile(
        name="1-diffractor",
        study="1-Diffractor (Meisenbacher, Chevli, Matthes 2024)",
        source="the behavior of its public package, dp-diffractor 0.2.1, since the paper is silent",
        per="token",
        epsilons=(0.1, 0.5, 1, 3, 5, 10, 25, 50),
        text={
            "unknown_words": "keep",
            "stop_words": "keep",
            "numbers": "keep",
            "contacts": "keep",
            "punctuation": "keep",
            "other": "keep",
            "case": "lower",
        },
        open=(
            "The paper's gamma 'depends on epsilon'; we use the rule with beta 0.001.",
            (
                "The package uses NLTK's stop words and replaces numbers on its lists; here the stop words are our "
                "own, and numbers are not on lists."
            ),
        ),
    ),
    Profile(
        name="collocations",
        study="the collocation study (Meisenbacher, Chevli, Matthes 2024)",
        source="its strategy S1 and its settings on SST-2",
        per="document",
        epsilons=(0.1, 0.5, 1, 5, 10, 15, 25, 50),
        text={"stop_words": "keep"},
        parameters={"mahalanobis": {"lam": 0.2}, "vickrey-mahalanobis": {"lam": 0.2}},
        open=(
            "Its epsilons are base values: multiply by the words of an average text, from public knowledge.",
            "S1 divides the budget by all words of a text, as allocation word-share and strategy s1 do.",
            "Its Vickrey is the variant with two neighbors, and no threshold is stated; t is our default.",
        ),
    ),
    Profile(
        name="comparative-mldp",
        study="the comparative analysis (Meisenbacher, Nandakumar, Klymenko, Matthes 2024)",
        source="its settings, and its preprocessing as its examples show it",
        per="token",
        epsilons=(1, 5, 10),
        text={"stop_words": "drop", "numbers": "drop", "punctuation": "drop", "case": "lower"},
        parameters={
            "mahalanobis": {"lam": 0.2},
            "vickrey-cmp": {"t": 0.5},
            "vickrey-mahalanobis": {"lam": 0.2, "t": 0.5},
            "tem": {"gamma": 0.5},
        },
        open=("It keeps 'not' and lemmatizes; here 'not' is a stop word and nothing is lemmatized.",),
    ),
    Profile(
        name="pypantera",
        study="pyPANTERA (De Faveri, Faggioli, Ferro 2024)",
        source="its preprocessing and its table of parameters",
        per="token",
        epsilons=(1, 5, 10, 12.5, 15, 17.5, 20, 50),
        text={"numbers": "drop", "punctuation": "drop", "case": "lower"},
        parameters={
            "mahalanobis": {"lam": 1.0},
            "vickrey-cmp": {"t": 0.75},
            "vickrey-mahalanobis": {"lam": 1.0, "t": 0.75},
            "tem": {"beta": 0.001},
            "custext": {"K": 10},
        },
        open=(
            "It removes every term with a digit; here a word that has digits behind its letters is a word.",
            "It does not say how it treats stop words; here they are privatized like any word.",
        ),
    ),
    Profile(
        name="adversarial-robustness",
        study="adversarial robustness by truncated Gumbel (Xu, Feyisetan, Aggarwal, Xu, Teissier 2021)",
        source="its settings; its mechanisms have no parameter except epsilon",
        per="token",
        epsilons=(1, 5, 9, 20, 40, 60, 80, 100, 150, 200),
        text={"stop_words": "privatize"},
        open=(("The epsilons are those of CMP; for Gumbel, it has ln epsilon: 4.52, 4.67, 10, 14, 17, 23, 38 to 86."),),
    ),
)

PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in _STUDIES}


def find(name: str) -> Profile:
    """Return a profile. Raises UserError for an unknown name, with the nearest known one."""
    if name not in PROFILES:
        near = difflib.get_close_matches(name, PROFILES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(PROFILES)}."
        raise UnknownError(f"{name}: there is no profile of this name; {hint}")
    return PROFILES[name]
