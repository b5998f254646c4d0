"""What a manifest claims, in a few named fields, which a recipient requires and a sender signs.

A claim is the sender's word. A digest or signature binds it to files and to a person; none proves that it is true.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corpusveil.budget.budget import in_full
from corpusveil.errors import SettingError, listed, nearest
from corpusveil.passages.pieces import PERS

NONE, TEST = "none", "the published test key"
OF = {"nats": "per", "cap": "unit"}
"""Numbers, and the field that says of what: a requirement of one needs a requirement of the other."""
FIELDS = (*OF, *OF.values(), "mechanism", "space", "release", "key", "kept")
_AMBIGUOUS = {
    "epsilon": "an epsilon of words is for a unit of distance, and one of texts for any two, so it means another thing "
    "for each; require nats, as in 'nats<=14' with 'per=document'",
}


def claims_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the claims of a manifest: ``nats`` of plain LDP for one ``per``, and ``cap`` for one ``unit``.

    Nats of words are for a token, whatever shares their epsilon. The cap is over all releases of the sender's ledger.
    """
    configuration, guarantee, cap = manifest["configuration"], manifest["guarantee"], manifest.get("cap") or {}
    numbers = {"nats": guarantee["plain_ldp"], "cap": cap.get("nats")}
    return {
        **{name: NONE if value is None else in_full(value) for name, value in numbers.items()},
        "per": guarantee.get("per", NONE) if "store" in configuration else "token",
        "unit": _names(cap.get("units", ())),
        "mechanism": configuration["mechanism"]["name"],
        "space": configuration["space"],
        "release": manifest["release"],
        "key": TEST if "warning" in manifest else manifest["key_fingerprint"],
        "kept": _names(configuration["columns"]["keep"]),
    }


def _names(names: Sequence[str]) -> str:
    """Return names in one line; one that could be taken for none, or for several, is in quotes."""
    is_clear = [name.isprintable() and "," not in name and name != NONE for name in names]
    return ",".join(name if clear else repr(name) for name, clear in zip(names, is_clear, strict=True)) or NONE


@dataclass(frozen=True, slots=True)
class Requirement:
    """A field, and the value that it has to have; of a number, the ``most`` that it may be."""

    field: str
    value: str
    most: float | None = None

    @classmethod
    def of(cls, text: str) -> Requirement:
        """Return the requirement of ``nats<=14`` or ``per=document``. Raises UserError for any other text."""
        match = re.fullmatch(r"\s*([\w-]+)\s*(<=|=)\s*(.*\S)\s*", text)
        if match is None:
            raise SettingError(f"require = {text!r}: give a field and a value, as in 'nats<=14' or 'per=document'.")
        field, operator, value = match.groups()
        if field in _AMBIGUOUS:
            raise SettingError(f"require {field}: {_AMBIGUOUS[field]}.")
        if field not in FIELDS:
            near = nearest(field, FIELDS) or f"; there are {listed(FIELDS)}."
            raise SettingError(f"require {field}: there is no such field{near}")
        if (operator == "<=") != (field in OF):
            right = "<= and a number" if field in OF else "= and a name"
            raise SettingError(f"require = {text!r}: {field} takes {right}.")
        if field == "per" and value not in {"token", *PERS}:
            raise SettingError(f"require = {text!r}: choose one of token, {listed(PERS)}.")
        most = number_of(value) if field in OF else None
        if field in OF and (most is None or most == math.inf):
            raise SettingError(f"require = {text!r}: give a number of nats.")
        return cls(field, value, most)

    def unmet(self, claims: Mapping[str, str]) -> str | None:
        """Say how the claims miss this requirement; None if they meet it."""
        claimed = claims.get(self.field, NONE)
        number = number_of(claimed)
        if self.most is None:
            is_met = self.value in (claimed, *(claimed.split(",") if self.field == "unit" else ()))
        else:
            is_met = number is not None and number <= self.most
        return None if is_met else f"{self.field} is {claimed}, and {self.value} is required"


def requirements(texts: Iterable[str]) -> list[Requirement]:
    """Return the requirements of these texts. Raises UserError for a wrong one, and for nats of what is not named."""
    made = [Requirement.of(text) for text in texts]
    named = {requirement.field for requirement in made}
    for number, what in OF.items():
        if number in named and what not in named:
            example = {"per": "document, sentence or token", "unit": "the column of a privacy unit"}[what]
            raise SettingError(f"require {number}: nats of what? Require {what}, too: {example}.")
    return made


def unmet(wanted: Sequence[Requirement], claims: Mapping[str, str]) -> list[str]:
    """Say which requirements the claims miss. None hold for a release under the published test key."""
    test = [f"key is {TEST}, so nothing is private"] if wanted and claims.get("key") == TEST else []
    return [*test, *filter(None, (requirement.unmet(claims) for requirement in wanted))]


def number_of(text: str) -> float | None:
    """Return the number of nats that a text is; None of any other text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number >= 0 else None
