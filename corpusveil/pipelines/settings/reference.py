"""The reference of the settings, ``docs/settings.md``.

``python -m corpusveil.pipelines.settings.reference > docs/settings.md`` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.fields import Declared, declared, plain
from corpusveil.pipelines.settings.toml import value_of

_KINDS = {
    str: "text",
    float: "number",
    int: "whole number",
    bool: "true, false",
    list[str]: "texts",
    list[int]: "whole numbers",
    list[float]: "numbers",
}
_BOUNDS = {"gt": "> ", "ge": "≥ ", "lt": "< ", "le": "≤ "}


def page() -> str:
    """Return the page."""
    lines = [
        "# Settings",
        "",
        "Every key of a configuration file, with its command-line option. This page is generated from",
        "`corpusveil/pipelines/settings/sections.py` by `python -m corpusveil.pipelines.settings.reference`.",
    ]
    for section, info in Settings.model_fields.items():
        doc = (plain(info.annotation).__doc__ or "").splitlines()[0]
        lines += ["", f"## [{section}]", "", doc, "", "| key | type | default | | option |", "|---|---|---|---|---|"]
        lines += [_row(one) for one in declared(Settings) if one.name == section]
    return "\n".join(lines) + "\n"


def _row(one: Declared) -> str:
    kind = "path" if one.told.path and one.kind is str else "paths" if one.told.path else _KINDS.get(one.kind, "text")
    kind = " \\| ".join(f"`{value}`" for value in one.values) or " ".join((kind, *_bounds(one)))
    default = "needed" if one.info.is_required() else "" if one.default in (None, []) else f"`{value_of(one.default)}`"
    told = " ".join(one.help().split()).replace("|", "\\|").replace("<", "&lt;")
    return f"| `{one.key}` | {kind} | {default} | {told} | {'; '.join(_options(one))} |"


def _bounds(one: Declared) -> Iterator[str]:
    for bound in one.info.metadata:
        for name, sign in _BOUNDS.items():
            if (value := getattr(bound, name, None)) is not None:
                yield f"{sign}{value:g}".replace("<", "&lt;")


def _options(one: Declared) -> Iterator[str]:
    by_option: dict[str, list[str]] = {}
    for command, name in one.commands.items():
        option = "--" if name == "--" else f"--{name.replace('_', '-')}" if name else str(one.told.metavar)
        option = option.replace("--", "--no-") if one.default is True else option
        by_option.setdefault(option, []).append(command)
    for option, commands in by_option.items():
        yield f"`{option}` of {', '.join(commands)}"


if __name__ == "__main__":
    sys.stdout.write(page())
