"""From settings to options: a command's options are the fields that name it, under the headings of their groups."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import typer

from corpusveil.cli.options import ProgressOption, Terminal
from corpusveil.pipelines.fields import BEHIND, Setting, pairs
from corpusveil.pipelines.flows import FLOWS, Flow, options_of
from corpusveil.pipelines.settings import Settings, rules, started
from corpusveil.pipelines.settings.faults import Caller, cut, validated

_PARAMETER = "A parameter of the mechanism, such as gamma=18. Repeatable. Default: the mechanism's own."
MOST_USED = "Most used"
SHOWING = ("privatize", "preview")
"""The commands that draw words."""
STARTED = ("space", "mechanism")
"""Sections that a first call need not name: they are those of a new file."""
GIVEN = {(command, section) for command in SHOWING for section in STARTED}
_OF_A_FILE = re.compile(r" Default in a file: .*?\.(?= |$)")


def call_of(command: str) -> Caller:
    """Return a call of a command, whose settings were options."""

    def name(place: str) -> str:
        """Return the option of a setting; its key where this command has none."""
        section, _, key = place.partition(".")
        for option, setting in options_of(command).items():
            if setting.setting == place:
                return _flag(option, setting)
        return f"{'--parameter ' * (section == 'mechanism')}{key}" if key else section

    return Caller(name, lambda value: f" {typed(value)}", noun="option")


def typed(value: Any) -> str:
    """Return a value as it was typed, if it can be shown."""
    text = str(value).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return cut(text if text.isprintable() and text else repr(text))


def _flag(name: str, setting: Setting) -> str:
    if name == BEHIND:
        return "The text after '--'"
    return str(setting.metavar) if setting.is_argument else f"--{name.replace('_', '-')}"


def derived(command: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a function ``(settings, …)`` the options of a command; it keeps its own options."""

    def give(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        own = [parameter for name, parameter in signature.parameters.items() if name not in ("settings", "context")]

        def called(context: typer.Context, **given: Any) -> None:
            def is_explicit(name: str) -> bool:
                return getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"

            explicit = {name: value for name, value in given.items() if is_explicit(name)}
            settings = settings_of(command, explicit, (context.obj or {}).get("passed", [])).with_names()
            more = {"context": context} if "context" in signature.parameters else {}
            function(settings, **more, **{parameter.name: given[parameter.name] for parameter in own})

        parameters = [
            inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
            *_parameters(command),
            *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own),
        ]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        called.__doc__, called.__name__ = function.__doc__, function.__name__
        return called

    return give


def of_flow(flow: Flow) -> Callable[..., None]:
    """Return the command of a flow that has no file here: its settings, and how progress is shown."""

    def run(settings: Settings, _progress: ProgressOption = "auto") -> None:
        flow.do(settings, Terminal())

    run.__doc__ = flow.help
    return derived(flow.name)(run)


def settings_of(command: str, given: Mapping[str, Any], passed: list[str]) -> Settings:
    """Return the settings of a call. Raises UserError in the words of its options."""
    sections: dict[str, dict[str, Any]] = {}
    known = options_of(command)
    of_passages = "store" in given and command in SHOWING
    if command in SHOWING and not of_passages:
        sections = started(*STARTED)
    if command == "privatize":  # where the missing option can be either of two
        sections = {name: {} for name in rules.needed_of(of_passages)} | sections
    for name, value in given.items():
        if name in known:
            sections.setdefault(known[name].name, {})[known[name].key] = value
    if "mechanism" in sections:
        sections["mechanism"] |= pairs("parameter", given.get("parameter") or [])
    if passed and BEHIND in known:
        sections.setdefault("engine", {})["options"] = list(passed)
    return validated(sections, call_of(command))


def _parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _parameters(command: str) -> Iterator[inspect.Parameter]:
    for name, setting in options_of(command).items():
        if name != BEHIND:
            default = inspect.Parameter.empty if setting.is_needed else setting.default or None
            if command in SHOWING and setting.name in STARTED:
                default = setting.start
            yield _parameter(name, _annotation(name, setting, command), default)
        if setting.setting == "mechanism.name":
            option = typer.Option(help=_PARAMETER, metavar="NAME=VALUE", rich_help_panel="How private")
            yield _parameter("parameter", Annotated[list[str] | None, option])


def _annotation(name: str, setting: Setting, command: str) -> Any:
    kind = setting.kind
    help, metavar = _OF_A_FILE.sub("", setting.help(call_of(command).name)), setting.metavar
    more: dict[str, Any] = {}
    if any(flow.artifact == setting.setting for flow in FLOWS if flow.name == command):
        help = f"{help.partition(':')[0]}: a new folder or URL."  # of what others read
    if setting.choices is not None:
        help, metavar = f"{help} One of: {', '.join(setting.values)}.", metavar or "NAME"
    elif setting.values:  # typer would refuse others, and suggest none
        kind, metavar = str, metavar or f"<{'|'.join(setting.values)}>"
    if setting.values or setting.setting == "mechanism.name":
        more["autocompletion"] = _completion(setting)
    if not setting.is_needed and kind is not bool:
        kind = kind | None
        if setting.default in (None, []) and "Default" not in help and (command, setting.name) not in GIVEN:
            help += " Default: none."
    if setting.is_argument:
        return Annotated[kind, typer.Argument(help=help, metavar=metavar)]
    flag = _flag(name, setting)
    if setting.default is True:
        flag += f"/--no-{flag.removeprefix('--')}"
    panel = MOST_USED if setting.often or setting.is_needed else setting.group
    return Annotated[kind, typer.Option(flag, help=help, metavar=metavar, rich_help_panel=panel, **more)]


def _completion(setting: Setting) -> Callable[[str], list[str]]:
    """Return the completion of a setting's names for a shell; for mechanisms, it imports them."""

    def offer(incomplete: str) -> list[str]:
        from corpusveil.mechanisms import registry

        values = registry.names() if setting.setting == "mechanism.name" else setting.values
        return [value for value in values if value.startswith(incomplete)]

    return offer
