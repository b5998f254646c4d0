"""Settings as a TOML file: read strictly, with paths relative to the file; a template of one, and its schema."""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpusveil.errors import DataError, PackageError, SettingError, nearest, unreadable
from corpusveil.gone import gone_setting
from corpusveil.pipelines.fields import declared, named
from corpusveil.pipelines.settings import Settings, rules
from corpusveil.pipelines.settings.faults import Caller, cut, elsewhere, parameters, shown, validated
from corpusveil.registry import MISSING, OF_EVALUATE
from corpusveil.storage import files
from corpusveil.storage.forms import unmarked

SCHEMA = "corpusveil.schema.json"
"""The name of the schema next to a written file, which editors use for completion."""
_BARE = re.compile(r"[A-Za-z0-9_-]{1,60}")
_FIRST = "# What you have to decide. The schema next to this file has all other keys."


@dataclass(frozen=True, slots=True)
class Document:
    """The settings of a file, whose relative paths are relative to its folder, whatever the working folder."""

    file: str
    settings: Settings


def _name(place: str) -> str:
    section, dot, key = place.partition(".")
    return f"{section}.{_shown(key)}" if dot else f"[{section}]"


def read(file: str) -> Document:
    """Read a file, or the file at a URL.

    Raises UserError, which names file and key, for a key that is unknown, missing or of another type.
    """
    data = parsed(file)
    caller = Caller(_name, lambda value: f" = {shown(value)}", f"{file}, ")
    for section, given in data.items():
        if section not in Settings.model_fields:
            if not isinstance(given, dict):
                raise SettingError(
                    f"{file}, {_shown(section)}: this key has no section; put it below a "
                    f"section{elsewhere(section) or '.'}"
                )
            if section in OF_EVALUATE["section"]:
                raise PackageError(f"{file}, [{section}]: {MISSING}")
            if refusal := gone_setting(f"[{section}]"):
                raise SettingError(f"{file}, [{section}]: {refusal}.")
            near = nearest(section, Settings.model_fields) or "."
            raise SettingError(f"{file}, [{_shown(section)}]: there is no such section{near}")
    written = validated(data, caller)
    for place, sentence in rules.incomplete(written):
        raise caller.fault(place, sentence)
    return Document(file, located(written, os.path.dirname(file if "://" in file else os.path.abspath(file))))


def parsed(file: str) -> dict[str, Any]:
    """Return the tables of a file. Raises UserError if it cannot be read, or is no TOML."""
    try:
        data = files.read_bytes(file) if "://" in file else Path(file).read_bytes()
        return tomllib.loads(unmarked(data, file).decode())
    except OSError as error:
        raise unreadable(file, error) from None
    except RecursionError:
        raise DataError(f"{file}: lists are nested too deeply for a configuration; correct the file.") from None
    except ValueError as error:  # also invalid UTF-8, or a number of thousands of digits
        said = str(error).rstrip(".")
        hint = "; in a path write / for each backslash" if re.search("hex value|Unescaped", said) else ""
        raise DataError(f"{file}: this is not valid TOML: {cut(ascii(said)[1:-1])}{hint}.") from None


def _shown(name: str) -> str:
    return name if _BARE.fullmatch(name) else cut(json.dumps(name))


def located(settings: Settings, folder: str) -> Settings:
    """Return settings with relative paths resolved from a folder, and with the addresses of names."""

    def whole(path: str) -> str:
        # not a URL, and not from the root, a home folder or an open file
        if "://" not in path and path != "-" and not path.startswith(("/", "~")):
            return files.join(folder, path) if "://" in folder else os.path.normpath(os.path.join(folder, path))
        return path

    settings = settings.with_names(folder)
    changes: dict[str, dict[str, Any]] = {}
    for setting in declared(Settings):
        if setting.path and (value := settings.value(setting.setting)):
            paths = [whole(path) for path in value] if isinstance(value, list) else whole(value)
            changes.setdefault(setting.name, {})[setting.key] = paths
    return settings.changed(**changes)


def written(document: Document) -> str:
    """Return a complete file, with all defaults of its sections, and absolute paths."""
    lines = [f"#:schema ./{SCHEMA}"]
    for section in Settings.model_fields:
        if section in document.settings.model_fields_set:
            values = getattr(document.settings, section).model_dump(exclude_none=True)
            lines += ["", f"[{section}]", *(f"{name} = {value_of(value)}" for name, value in values.items())]
    return "\n".join(lines) + "\n"


def value_of(value: Any) -> str:
    """Return a value as TOML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    text = json.dumps(value, ensure_ascii=False)  # texts, numbers and lists of them are written alike
    return text.replace("\x7f", "\\u007f")  # but for this one, which TOML wants escaped


def template(kind: str) -> str:
    """Return a file of the keys that a person has to decide for a release by ``words`` or by ``passages``."""
    starts = {setting.setting: setting.start for setting in declared(Settings)}
    if kind == "passages":
        starts = {place: start for place, start in starts.items() if place.startswith(("corpus.", "key.", "output."))}
        starts |= {"store.path": "en", "budget.epsilon": 10.0}
    lines, section = [f"#:schema ./{SCHEMA}", _FIRST], ""
    for setting in declared(Settings):
        if (start := starts.get(setting.setting)) is not None:
            lines += [] if setting.name == section else [f"[{setting.name}]"]
            section, entry = setting.name, f"{setting.key} = {value_of(start)}"
            lines.append(f"{entry:<28} # {setting.help().partition('. ')[0].removesuffix('.')}.")
    return "\n".join(lines) + "\n"


def schema() -> str:
    """Return the JSON schema, for editors: every section and key with its type, bounds, default and help."""
    from corpusveil.mechanisms import registry

    made = _without_nothing(Settings.model_json_schema())
    mechanism = made["$defs"]["MechanismSettings"]
    mechanism["properties"]["name"]["enum"] = registry.names()
    mechanism["properties"] |= {name: {"type": "number", "title": name} for name in sorted(parameters())}
    mechanism["additionalProperties"] = False
    made = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "corpusveil run FILE.toml", **made}
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _without_nothing(part: Any) -> Any:
    """Return a part of a schema without ``null``, which TOML does not have: there a key is given or it is not."""
    if isinstance(part, list):
        return [_without_nothing(item) for item in part]
    if not isinstance(part, dict):
        return named(part, str) if isinstance(part, str) else part
    kinds = [kind for kind in part.get("anyOf", ()) if kind != {"type": "null"}]
    rest = {name: _without_nothing(setting) for name, setting in part.items() if name != "anyOf"}
    if rest.get("default", "") is None:
        del rest["default"]
    return {**_without_nothing(kinds[0]), **rest} if len(kinds) == 1 else rest
