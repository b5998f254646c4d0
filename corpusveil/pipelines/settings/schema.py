"""The JSON schema of the settings, for editors."""

from __future__ import annotations

import json
from typing import Any

from corpusveil.mechanisms import registry
from corpusveil.pipelines.fields import named
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.faults import parameters


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
