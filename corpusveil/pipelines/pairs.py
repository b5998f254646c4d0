"""``NAME=VALUE``, by which the parameters of a mechanism and the fields of an engine are given."""

from __future__ import annotations

from typing import Any

from corpusveil.errors import BadValueError


def pairs(what: str, given: list[str]) -> dict[str, Any]:
    """Return values by name; they are numbers, true, false, or text."""
    import orjson

    values: dict[str, Any] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise BadValueError(f"{what} {pair}: write it as NAME=VALUE.")
        try:
            values[name] = orjson.loads(value)
        except orjson.JSONDecodeError:
            values[name] = value
    return values
