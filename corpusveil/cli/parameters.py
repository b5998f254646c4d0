"""``--parameter NAME=VALUE``, which several commands have."""

from __future__ import annotations

from typing import Any

from corpusveil.errors import BadValueError


def mechanism_parameters(given: list[str]) -> dict[str, Any]:
    """Return the parameters of ``--parameter NAME=VALUE``; values are numbers or text."""
    import orjson

    values: dict[str, Any] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise BadValueError(f"--parameter {pair}: write it as NAME=VALUE.")
        try:
            values[name] = orjson.loads(value)
        except orjson.JSONDecodeError:
            values[name] = value
    return values
