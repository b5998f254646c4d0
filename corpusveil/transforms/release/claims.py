"""What a manifest claims, in a few named fields, which a recipient requires and a sender signs.

A claim is the sender's word. A digest or signature binds it to files and to a person; none proves that it is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from corpusveil.budget.budget import in_full
from corpusveil.errors import SettingError
from corpusveil.passages.pieces import PERS

NONE, TEST = "none", "the published test key"
OF = {"nats": "per", "cap": "unit"}
"""Numbers, and the field that says of what: a requirement of one needs a requirement of the other."""
FIELDS = (*OF, *OF.values(), "mechanism", "space", "release", "key", "kept")
_REQUIREMENT = re.compile(
    rf"\s*(?:({'|'.join(OF)})\s*<=\s*(\d+\.?\d*(?:e[+-]?\d+)?)|({'|'.join(FIELDS[2:])})\s*=\s*(.*\S))\s*"
)


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


def requirements(texts: str | Iterable[str]) -> list[tuple[str, str]]:
    """Return the fields of ``nats<=14`` or ``per=document``, and the value of each, at most or exactly.

    Raises UserError for any other text, and for a number of nats that does not say of what.
    """
    made = []
    for text in [texts] if isinstance(texts, str) else texts:
        match = _REQUIREMENT.fullmatch(text)
        field, value = "", ""
        if match is not None:
            field, value = match[1] or match[3], match[2] or match[4]
        if not field or (field == "per" and value not in {"token", *PERS}):
            raise SettingError(
                f"require = {text!r}: give nats<=NUMBER with per=token or per={' or '.join(PERS)}, cap<=NUMBER with "
                f"unit=COLUMN, or one of {', '.join(FIELDS[4:])} with = and a name; an epsilon alone is of no unit."
            )
        made.append((field, value))
    named = {field for field, _ in made}
    for number, what in OF.items():
        if number in named and what not in named:
            raise SettingError(
                f"require {number}: nats of what? Require {what}, too, as in {number}<=14 with {what}=…."
            )
    return made


def unmet(wanted: Sequence[tuple[str, str]], claims: Mapping[str, str]) -> list[str]:
    """Say which requirements the claims miss. None hold for a release under the published test key."""
    missed = [f"key is {TEST}, so nothing is private"] if wanted and claims["key"] == TEST else []
    for field, value in wanted:
        claimed = claims[field]
        if field in OF:
            is_met = claimed != NONE and 0 <= float(claimed) <= float(value)
        else:
            is_met = value == claimed or (field == "unit" and value in claimed.split(","))
        missed += [] if is_met else [f"{field} is {claimed}, and {value} is required"]
    return missed
