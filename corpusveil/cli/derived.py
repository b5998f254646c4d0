"""From settings to options: a command's options are the fields that name it, under the headings of their groups."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand

from corpusveil.cli import signals
from corpusveil.errors import BadValueError, UserError
from corpusveil.pipelines.pairs import mechanism_parameters, pairs
from corpusveil.pipelines.settings import Settings, rules
from corpusveil.pipelines.settings.faults import cut, validated
from corpusveil.pipelines.settings.fields import BEHIND, DEMO, Declared, Group, declared

_PARAMETER = Annotated[
    list[str] | None,
    typer.Option(
        help="A parameter of the mechanism, such as gamma=18. Repeatable.",
        metavar="NAME=VALUE",
        rich_help_panel="How private",
    ),
]
_ENGINE_OPTION = Annotated[
    list[str] | None,
    typer.Option(
        help="A field of an engine of another package, by its name there. Repeatable.",
        metavar="NAME=VALUE",
        rich_help_panel="Engine",
    ),
]
MOST_USED, OTHERS = "Most used", "Options"


@functools.cache
def options_of(command: str) -> Mapping[str, Declared]:
    """Return the settings that a command has, by the names of its parameters."""
    found = {}
    for one in declared(Settings):
        if (name := one.commands.get(command)) is not None:
            found[name or one.key] = one
    return found


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a command, whose settings were options."""

    command: str

    def name(self, place: str) -> str:
        """Return the option of a setting; its key where this command has none."""
        section, _, key = place.partition(".")
        for name, one in options_of(self.command).items():
            if one.place == place:
                return _flag(name, one)
        general = {"mechanism": "--parameter ", "engine": "--engine-option "}.get(section, "")
        return f"{general}{key}" if key else section

    def fault(self, place: str, sentence: str, value: Any = None, kind: type[UserError] = BadValueError) -> UserError:
        """Return an error of an option; a rule of a whole section names its settings itself."""
        told = "" if value is None else f" {_said(value)}"
        named = f"{self.name(place)}{told}: " if "." in place else ""
        return kind(f"{named}{sentence.replace('this key', 'this option')}{'' if sentence.endswith('?') else '.'}")


def _said(value: Any) -> str:
    """Return a value as it was typed, if it can be shown."""
    text = str(value).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return cut(text if text.isprintable() and text else repr(text))


def _flag(name: str, one: Declared) -> str:
    if name == BEHIND:
        return "The text after '--'"
    return str(one.told.metavar) if one.is_argument else f"--{name.replace('_', '-')}"


def derived(
    command: str, kind: type[TyperCommand] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a function ``(settings, …)`` the options of a command of this ``kind``; it keeps its own options."""

    def give(function: Callable[..., None]) -> Callable[..., None]:
        own = [one for one in inspect.signature(function, eval_str=True).parameters.values() if one.name != "settings"]

        def called(context: typer.Context, **given: Any) -> None:
            explicit = {name: value for name, value in given.items() if _is_explicit(context, name)}
            passed = (context.obj or {}).get("passed", [])
            settings = settings_of(command, explicit, passed)
            if settings.demos():
                from corpusveil.pipelines.demo_space import located

                settings = located(settings)
            function(settings, **{one.name: context if one.name == "context" else given[one.name] for one in own})

        parameters = [*_parameters(command), *(one for one in own if one.name != "context")]
        context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        called.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
            context, *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters)
        ])  # fmt: skip
        called.__annotations__ = {one.name: one.annotation for one in (context, *parameters)}
        called.__doc__, called.__name__ = function.__doc__, function.__name__
        called.kind = kind or Grouped  # type: ignore[attr-defined]
        return called

    return give


def _is_explicit(context: typer.Context, name: str) -> bool:
    return getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"


def settings_of(command: str, given: Mapping[str, Any], passed: list[str]) -> Settings:
    """Return the settings of a call. Raises UserError in the words of its options."""
    if signals.is_own_process():
        importlib.import_module("corpusveil.jobs.no_pandas")
        importlib.import_module("corpusveil.jobs.forked").own_process()
    sections: dict[str, dict[str, Any]] = {}
    known = options_of(command)
    if command == "privatize":  # where the missing option can be either of two
        sections = {name: {} for name in rules.NEEDED}
    if command == "preview":
        sections = {"mechanism": {"name": "ring-geometric"}}
        if given.get("space", DEMO) == DEMO:
            sections |= {"space": {"path": DEMO}, "model": {"path": DEMO}}
    for name, value in given.items():
        if name in known:
            sections.setdefault(known[name].name, {})[known[name].key] = value
    if "mechanism" in sections:
        sections["mechanism"] |= mechanism_parameters(given.get("parameter") or [])
    if fields := pairs("engine_option", given.get("engine_option") or []):
        sections["engine"] = fields | sections.get("engine", {})
    if passed and BEHIND in known:
        sections.setdefault("engine", {})["options"] = list(passed)
    return validated(sections, Call(command))


def _parameters(command: str) -> Iterator[inspect.Parameter]:
    for name, one in options_of(command).items():
        if name != BEHIND:
            yield inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, annotation=_annotation(name, one, command),
                default=inspect.Parameter.empty if one.is_needed(command) else one.default or None,
            )  # fmt: skip
        if one.place == "mechanism.name":
            yield inspect.Parameter("parameter", inspect.Parameter.KEYWORD_ONLY, annotation=_PARAMETER, default=None)
        if one.place == "engine.name":
            yield inspect.Parameter(
                "engine_option", inspect.Parameter.KEYWORD_ONLY, annotation=_ENGINE_OPTION, default=None
            )


def _annotation(name: str, one: Declared, command: str) -> Any:
    kind = str if one.place == "budget.weights" else one.kind
    told: dict[str, Any] = {"help": one.help(Call(command).name), "metavar": one.told.metavar}
    told["rich_help_panel"] = MOST_USED if one.told.often or one.is_needed(command) else one.group
    if one.told.choices is not None:
        told["help"] = f"{told['help'].removesuffix('.')}: {', '.join(one.values)}."
        told["metavar"] = told["metavar"] or "NAME"
    if not one.is_needed(command) and kind is not bool:
        kind = kind | None
    if one.told.choices is not None or one.place == "mechanism.name":
        told["autocompletion"] = _completion(one)
    if one.is_argument:
        return Annotated[kind, typer.Argument(help=told["help"], metavar=told["metavar"])]
    flag = _flag(name, one)
    if one.default is True:
        flag += f"/--no-{flag.removeprefix('--')}"
    return Annotated[kind, typer.Option(flag, **told)]


def _completion(one: Declared) -> Callable[[str], list[str]]:
    """Return the completion of a setting's names for a shell; for mechanisms, it imports them."""

    def offer(incomplete: str) -> list[str]:
        from corpusveil.mechanisms import registry

        values = registry.names() if one.place == "mechanism.name" else one.values
        return [value for value in values if value.startswith(incomplete)]

    return offer


class Grouped(TyperCommand):
    """A command whose help lists the most used options first, and all others under the headings of their groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then the most used options, then the options of each group, then all others."""
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], MOST_USED: []}
        groups |= {group: [] for group in (*get_args(Group), OTHERS)}
        for one in self.get_params(ctx):
            if (line := one.get_help_record(ctx)) is not None:
                heading = getattr(one, "rich_help_panel", None) or OTHERS
                groups["Arguments" if one.param_type_name == "argument" else heading].append(line)
        for heading, lines in groups.items():
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines)
