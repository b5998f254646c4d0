"""Faults of given settings, as one sentence in the words of the caller."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from corpusveil.errors import SettingError, UserError, nearest
from corpusveil.gone import gone_setting
from corpusveil.pipelines.fields import Section, declared, named, plain
from corpusveil.pipelines.settings import Settings

SHOWN_LENGTH = 120
_KINDS = {
    "int": "a whole number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text in UTF-8 and in quotes, not empty",
    "list": "a list of texts in brackets",
    "too": "a list that is not empty",
}
"""What a setting takes, by the first word of the type of pydantic's error; for other words, a number."""
_LIMITS = {"ge": "of at least", "gt": "above", "le": "of at most", "lt": "below"}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who gave settings: the ``name`` of one there (``section.key``, or a section), and a value as shown after it."""

    name: Callable[[str], str]
    shown: Callable[[Any], str]
    where: str = ""
    noun: str = "key"

    def fault(self, place: str, sentence: str, value: Any = None, kind: type[UserError] = SettingError) -> UserError:
        """Return an error of a setting, with its value if that helps; the sentence has others as ``{section.key}``."""
        given = "" if value is None else self.shown(value)
        said = named(sentence, self.name).replace("this key", f"this {self.noun}")
        return kind(f"{self.where}{self.name(place)}{given}: {said}{'' if said.endswith('?') else '.'}")


def validated(given: Mapping[str, Any], caller: Caller) -> Settings:
    """Return the settings of given sections. Raises UserError for their first fault."""
    _refuse_unknown(given, caller)
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        raise _told(error, caller) from None


def shown(value: Any) -> str:
    """Return a value as TOML has it, for a sentence."""
    try:
        return cut(json.dumps(value))
    except (TypeError, ValueError, RecursionError):  # a date; a number of thousands of digits
        return f"a {type(value).__name__}"


def wanted(fault: Mapping[str, Any]) -> str:
    """Return what to give instead of a value that pydantic refuses, as the end of a sentence."""
    limits = [f" {_LIMITS[name]} {limit:g}" for name, limit in fault.get("ctx", {}).items() if name in _LIMITS]
    return f"give {_KINDS.get(fault['type'].partition('_')[0], 'a number')}{''.join(limits)}"


def cut(text: str) -> str:
    """Return a text, or the beginning of a long one."""
    return text if len(text) <= SHOWN_LENGTH else f"{text[:SHOWN_LENGTH]}..."


def elsewhere(key: str) -> str:
    """Return the settings of this key in all sections as the end of a sentence, or nothing."""
    places = [setting.setting for setting in declared(Settings) if setting.key == key]
    places += [f"mechanism.{key}"] if key in parameters() else []
    return f"; did you mean {' or '.join(places)}?" if places else ""


def parameters(mechanism: Any = None) -> set[str]:
    """Return the parameters of a mechanism, or of all of them."""
    from corpusveil.mechanisms import registry as mechanisms

    known = mechanisms.names()
    chosen = [mechanism] if mechanism in known else known
    return {parameter for name in chosen for parameter in mechanisms.parameters(name)}


def _refuse_unknown(given: Mapping[str, Any], caller: Caller) -> None:
    for section, values in given.items():
        if not isinstance(values, Mapping):
            continue  # its type selects the mechanism
        of: type[Section] = plain(Settings.model_fields[section].annotation)
        unknown = [name for name in values if name not in of.model_fields]
        known = set(of.model_fields)
        if section == "mechanism" and unknown:
            known |= parameters(values.get("name"))
        for name in unknown:
            if name not in known:
                if refusal := gone_setting(f"{section}.{name}"):
                    raise caller.fault(f"{section}.{name}", refusal)
                near = elsewhere(name) or nearest(name, known)
                raise caller.fault(f"{section}.{name}", f"there is no such key{near}")


def _told(error: ValidationError, caller: Caller) -> UserError:
    first = min(error.errors(), key=lambda fault: fault["type"] == "missing")  # wrong values come before missing ones
    kind, about = first["type"], first.get("ctx", {})
    value = about.get("value", first.get("input"))
    place = about.get("place") or ".".join(map(str, (*first["loc"][:2], *filter(None, [about.get("key")]))))
    if kind == "rule":
        return caller.fault(place, about["sentence"], kind=about["kind"])
    section, _, name = place.partition(".")
    if not name:
        return caller.fault(place, f"this is a section; write [{section}] and its keys below")
    if kind == "literal_error" and (refusal := gone_setting(place, value)):
        return caller.fault(place, refusal)
    setting = {setting.setting: setting for setting in declared(Settings)}[place]
    if kind == "literal_error":
        return caller.fault(place, f"choose one of {', '.join(setting.values)}{nearest(value, setting.values)}", value)
    if kind == "string_pattern_mismatch":
        return caller.fault(place, f"write it as {setting.metavar}", value)
    if kind == "missing":
        return caller.fault(place, "this key is missing")
    return caller.fault(place, wanted(first), value)
