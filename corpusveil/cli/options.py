"""Option types that several commands share, how help is laid out, and where the lines of flows go."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand

from corpusveil.choices import Group
from corpusveil.pipelines.watch import Watch
from corpusveil.waiting import ProgressStyle, choose

_TYPES = {"str": "TEXT", "float": "NUMBER", "int": "N"}
ProgressOption = Annotated[
    ProgressStyle,
    typer.Option("--progress", metavar="HOW", help="How progress is shown: auto, bar, lines or none.", callback=choose),
]


def group(help: str) -> typer.Typer:
    return typer.Typer(help=help, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


class Grouped(TyperCommand):
    """A command whose help has the options of each group under a heading."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in ("Arguments", *get_args(Group))}
        for parameter in self.get_params(ctx):
            if (line := parameter.get_help_record(ctx)) is not None:
                own = getattr(parameter, "rich_help_panel", None) or "Options"
                heading = "Arguments" if parameter.param_type_name == "argument" else own
                name = re.sub(r"<(?:list\[)?(str|float|int)\]?>", lambda match: _TYPES[match[1]], line[0])
                groups[heading].append((name.removesuffix(" TEXT") if heading == "Arguments" else name, line[1]))
        for heading, lines in groups.items():
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines, col_max=26)


class Terminal(Watch):
    """Prints results on standard output, and all else on standard error."""

    def say(self, line: str) -> None:
        print(line)

    def warn(self, line: str) -> None:
        print(line, file=sys.stderr)
