"""Option types that several commands share, and how help is laid out."""

from __future__ import annotations

import re
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand

from corpusveil.choices import Group
from corpusveil.waiting import Manner, choose

_TYPES = {"str": "TEXT", "float": "NUMBER", "int": "N"}
_IS_WHOLE = "help_all"


def _show_all(context: typer.Context, is_asked: bool) -> None:
    if is_asked:
        context.meta[_IS_WHOLE] = True
        print(context.get_help())
        raise typer.Exit


HelpAllOption = Annotated[
    bool,
    typer.Option(
        "--help-all", is_eager=True, callback=_show_all, help="Show every option, with all details, and exit."
    ),
]
ProgressOption = Annotated[
    Manner,
    typer.Option(metavar="HOW", help="How progress is shown: auto, bar, lines or none.", callback=choose),
]


def group(help: str) -> typer.Typer:
    """Return a group of commands."""
    return typer.Typer(help=help, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


class Grouped(TyperCommand):
    """A command whose help has the options of each group under a heading.

    If it has ``--help-all``, help leaves out what is rarely used, and shows the first sentence of the others.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then the options of each group."""
        parameters = self.get_params(ctx)
        is_whole = ctx.meta.get(_IS_WHOLE) or all(parameter.name != _IS_WHOLE for parameter in parameters)
        groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in ("Arguments", *get_args(Group))}
        for parameter in parameters:
            line = parameter.get_help_record(ctx)
            own = getattr(parameter, "rich_help_panel", None) or "Options"
            if line is not None and (is_whole or own != "Rarely used"):
                heading = "Arguments" if parameter.param_type_name == "argument" else own
                name = re.sub(r"<(?:list\[)?(str|float|int)\]?>", lambda match: _TYPES[match[1]], line[0])
                name = name.removesuffix(" TEXT") if heading == "Arguments" else name
                groups[heading].append((name, line[1] if is_whole else _brief(line[1])))
        for heading, lines in groups.items():
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines, col_max=26)


def _brief(help: str) -> str:
    """Return the first sentence of a help text, with its default and other facts."""
    sentences, gap, facts = help.partition("  [")
    first, *others = re.split(r"(?<=\.) ", sentences)
    return " ".join([first, *(other for other in others if other.startswith("Default: "))]) + gap + facts
