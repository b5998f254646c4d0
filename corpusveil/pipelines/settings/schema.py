"""The JSON schema of the settings, by which editors complete and check a file while it is written."""

from __future__ import annotations

import json
from typing import Any

from corpusveil.jobs import registry as engines
from corpusveil.mechanisms import registry
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.faults import parameters
from corpusveil.pipelines.settings.fields import named


def schema() -> dict[str, Any]:
    """Return the schema: every section and key with its type, bounds, default and help."""
    made = _without_nothing(Settings.model_json_schema())
    mechanism = made["$defs"]["MechanismSettings"]
    mechanism["properties"]["name"]["enum"] = registry.names()
    mechanism["properties"] |= {name: {"type": "number", "title": name} for name in sorted(parameters())}
    mechanism["additionalProperties"] = False
    engine = made["$defs"]["EngineSettings"]
    own = {name: {"title": name} for kind in engines.names() for name in engines.settings_of(kind)}
    engine["properties"] = own | engine["properties"]
    engine["additionalProperties"] = False
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "corpusveil run FILE.toml", **made}


def _without_nothing(part: Any) -> Any:
    """Return a part of a schema without ``null``, which TOML does not have: there a key is given or it is not."""
    if isinstance(part, list):
        return [_without_nothing(one) for one in part]
    if not isinstance(part, dict):
        return named(part, str) if isinstance(part, str) else part
    kinds = [one for one in part.get("anyOf", ()) if one != {"type": "null"}]
    rest = {name: _without_nothing(one) for name, one in part.items() if name != "anyOf"}
    if rest.get("default", "") is None:
        del rest["default"]
    return {**_without_nothing(kinds[0]), **rest} if len(kinds) == 1 else rest


def text() -> str:
    """Return the schema as a file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"
