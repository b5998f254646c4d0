"""What is written about the settings: the reference, ``docs/settings.md``, and a JSON schema for editors.

``python -m corpusveil.pipelines.settings.reference > docs/settings.md`` writes the reference.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from corpusveil.mechanisms import registry
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.faults import parameters
from corpusveil.pipelines.settings.fields import Setting, declared, named, plain
from corpusveil.pipelines.settings.toml import value_of

_KINDS = {
    float: "number",
    int: "whole number",
    bool: "true, false",
    list[str]: "texts",
    list[int]: "whole numbers",
    list[float]: "numbers",
}
_BOUNDS = {"gt": "> ", "ge": "≥ ", "lt": "< ", "le": "≤ "}


def page() -> str:
    lines = [
        "# Settings",
        "",
        "Every key of a configuration file, with its command-line option. This page is generated from",
        "`corpusveil/pipelines/settings/sections.py` by `python -m corpusveil.pipelines.settings.reference`.",
    ]
    for section, info in Settings.model_fields.items():
        doc = (plain(info.annotation).__doc__ or "").splitlines()[0]
        lines += ["", f"## [{section}]", "", doc, "", "|key|type|default||option|", "|---|---|---|---|---|"]
        lines += [_row(setting) for setting in declared(Settings) if setting.name == section]
    return "\n".join(lines) + "\n"


def _row(setting: Setting) -> str:
    kind = _KINDS.get(setting.kind, "text")
    if setting.path:
        kind = "path" if setting.kind is str else "paths"
    kind = ", ".join(f"`{value}`" for value in setting.values) or " ".join((kind, *_bounds(setting)))
    default = "" if setting.default in (None, []) else f"`{value_of(setting.default)}`"
    if setting.info.is_required():
        default = "needed"
    help = " ".join(setting.help().split()).replace("|", "\\|").replace("<", "&lt;")
    return f"|`{setting.key}`|{kind}|{default}|{help}|{'; '.join(_options(setting))}|"


def _bounds(setting: Setting) -> Iterator[str]:
    for bound in setting.info.metadata:
        for name, sign in _BOUNDS.items():
            if (value := getattr(bound, name, None)) is not None:
                yield f"{sign}{value:g}".replace("<", "&lt;")


def _options(setting: Setting) -> Iterator[str]:
    by_option: dict[str, list[str]] = {}
    for command, name in setting.commands.items():
        option = "--" if name == "--" else f"--{name.replace('_', '-')}" if name else str(setting.metavar)
        option = option.replace("--", "--no-") if setting.default is True else option
        by_option.setdefault(option, []).append(command)
    for option, commands in by_option.items():
        yield f"`{option}` of {', '.join(commands)}"


def schema() -> dict[str, Any]:
    """Return the JSON schema: every section and key with its type, bounds, default and help."""
    made = _without_nothing(Settings.model_json_schema())
    mechanism = made["$defs"]["MechanismSettings"]
    mechanism["properties"]["name"]["enum"] = registry.names()
    mechanism["properties"] |= {name: {"type": "number", "title": name} for name in sorted(parameters())}
    mechanism["additionalProperties"] = False
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "corpusveil run FILE.toml", **made}


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


def schema_text() -> str:
    """Return the schema as a file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
