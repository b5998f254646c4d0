"""Write ``docs/settings.md``, every setting with its option.

``make lint`` runs it; ``tests/cli/test_settings.py`` fails if the page is out of date.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from corpusveil.pipelines.fields import BEHIND, Setting, declared, plain
from corpusveil.pipelines.flows import commands, options_of
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.toml import value_of

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
_KINDS = {
    float: "number",
    int: "integer",
    bool: "boolean",
    list[str]: "texts",
    list[int]: "integers",
    list[float]: "numbers",
}
_BOUNDS = {"gt": "> ", "ge": "≥ ", "lt": "< ", "le": "≤ "}


def page() -> str:
    lines = [
        "# Settings",
        "",
        "Every key of a configuration file is listed here. On the command line, an option has the name of its key,",
        "with hyphens, unless the last column has another. `scripts/settings_page.py` writes this page.",
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
    """Yield the options of a setting, or that it has none, where its name does not say it."""
    options = dict.fromkeys(
        _option(name, own)
        for command in commands()
        for name, own in options_of(command).items()
        if own.setting == setting.setting
    )
    if [*options] != [_option(setting.key, setting)]:
        yield from (f"`{option}`" for option in options)
    if not options:
        yield "only in files"


def _option(name: str, setting: Setting) -> str:
    if name == BEHIND or setting.is_argument:
        return name if name == BEHIND else str(setting.metavar)
    return f"--{'no-' if setting.default is True else ''}{name.replace('_', '-')}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
