"""``corpusveil COMMAND``: parse, run, and turn errors into one sentence and an exit status."""

from __future__ import annotations

import contextlib
import importlib
import logging
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

import corpusveil
from corpusveil.cli.options import Grouped
from corpusveil.errors import CorpusveilError, PackageError, SettingError
from corpusveil.gone import gone_option
from corpusveil.pipelines.flows import FLOWS
from corpusveil.registry import OF_EVALUATE, Registry, declared, points

INTERRUPTED = 130
ADDED: Registry[Callable[..., None]] = Registry("command")
"""The commands of other packages, which are named ``NAME``, or ``GROUP.NAME`` in a group."""
FIRST = ("demo", "preview", "key", "space", "privatize")
"""The commands for newcomers, which listings name first; all others follow by name."""


def _listed() -> dict[str, tuple[str, str]]:
    """Return the module and the listed line of each command, a flow or a file here, without importing any."""
    commands = {flow.name: ("", flow.help.partition("\n")[0]) for flow in FLOWS}
    files = declared(resources.files("corpusveil.cli"), "COMMAND")
    commands |= {name: (module, line) for module, (name, line) in files.items()}
    first = [name for name in FIRST if name in commands]
    return {name: commands[name] for name in [*first, *sorted(commands.keys() - set(first))]}


COMMANDS = _listed()


class _Commands(TyperGroup):
    """The commands by name and sentence; a command is imported when it is called."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False  # None would be converted, for which typer loads pydantic
        return option

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *(name for name in ADDED.names() if "." not in name)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        known = super().get_command(ctx, cmd_name)
        if known is None and (cmd_name in OF_EVALUATE["command"] or cmd_name in self.list_commands(ctx)):
            packages = ", ".join(points(ADDED.group).get(cmd_name, ()))
            return typer.core.TyperCommand(cmd_name, short_help=f"A command of {packages}.")
        return known

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and command(str(name)), rest


def command(name: str) -> Any:
    """Return a command or group, imported now: a function, an ``app``, or an entry point."""
    if name not in COMMANDS:
        return _single(name, ADDED.find(name))
    stem, _ = COMMANDS[name]
    if not stem:
        from corpusveil.cli.derived import of_flow

        return _single(name, of_flow(next(flow for flow in FLOWS if flow.name == name)))
    module = importlib.import_module(f"corpusveil.cli.{stem}")
    group = getattr(module, "app", None)
    if group is None:
        return _single(name, getattr(module, stem, None))
    commands: Any = typer.main.get_command(group)
    for added in ADDED.names():
        parent, _, own = added.partition(".")
        if parent == name:
            commands.add_command(_single(own, ADDED.find(added)), own)
    if not commands.commands:
        raise ADDED.unknown(name)
    return commands


def _single(name: str, function: Any) -> Any:
    if not callable(function):
        raise PackageError(
            f"{name}: this command has no function; give that the name of its file, or correct its entry point."
        )
    group = typer.Typer(add_completion=False, rich_markup_mode=None)
    group.command(name, cls=Grouped)(function)
    return typer.main.get_command(group)


app = typer.Typer(
    name="corpusveil",
    cls=_Commands,
    help="Replace private text by public text (passages), or each word by a random one near it (words), with "
    "differential privacy. Begin with: corpusveil preview FILE --store en --epsilon 10",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _name, (_, _sentence) in COMMANDS.items():
    app.command(_name, short_help=_sentence)(lambda: None)


def _told(text: str, *, show: bool) -> None:
    if show:
        print(text)
        raise typer.Exit


def _version() -> str:
    from corpusveil.transforms.handshake import versions

    return f"corpusveil {versions()['corpusveil']}"


REMEDIES = {
    "space": "Try it with --space en, after pip install 'corpusveil[en]'; 'corpusveil space' builds your own.",
}
"""The remedy for a missing option that a new user cannot know."""
SUBMIT_FILE = str(Path(corpusveil.__file__).with_name("jobs") / "submit.py")


@app.callback()
def _root(
    *,
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=lambda v: _told(_version() if v else "", show=v)
    ),
    submit_file: bool = typer.Option(
        False,
        "--submit-file",
        help="Print the path of the file that spark-submit runs.",
        callback=lambda v: _told(SUBMIT_FILE, show=v),
    ),
) -> None:
    """Read the options before a command."""


def run(arguments: list[str], signals: Sequence[int] = ()) -> int:
    """Run one command line; return its exit status. ``signals`` are those that have interrupted it until then."""
    end = [*arguments, "--"].index("--")
    own, passed = arguments[:end], arguments[end + 1 :]  # which is for the Beam runner
    own, debug = [word for word in own if word != "--debug"], "--debug" in own
    planned = own[:2] == ["plan", "privatize"]
    own = own[1:] if planned else own
    call = {"passed": passed, "debug": debug, "plan": planned}

    def perform() -> Any:
        root: Any = typer.main.get_command(app)
        for parameter in root.params:
            parameter.default = False if parameter.default is None else parameter.default  # as the option of help
        return root.main(own, prog_name="corpusveil", standalone_mode=False, obj=call)

    if hasattr(sys.stdout, "reconfigure"):  # which may not be UTF-8
        sys.stdout.reconfigure(errors="backslashreplace")
    logging.getLogger("py4j").setLevel(logging.ERROR)
    return ended(perform, debug=debug, arguments=own, signals=signals)


def ended(
    work: Callable[[], Any], *, debug: bool = False, arguments: Sequence[str] = (), signals: Sequence[int] = ()
) -> int:
    """Call a function, print its error in one sentence, and return the exit status."""
    try:
        result = work()
    except (typer.Abort, KeyboardInterrupt):
        result = INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last resort; the text could quote a document
        if not signals:
            return _failed(error, debug=debug, arguments=arguments)
        result = INTERRUPTED  # an engine that is interrupted fails in its own way
    if result == INTERRUPTED:  # typer turns the interruption into this status, without a word
        print("corpusveil: interrupted; run the same command again to continue.", file=sys.stderr)
    return result if isinstance(result, int) else 0


def _failed(error: Exception, *, debug: bool, arguments: Sequence[str]) -> int:
    """Say an error in one sentence, and return the exit status."""
    if isinstance(error, BrokenPipeError):
        return 1
    refusal = error if isinstance(error, CorpusveilError) else _refused_by_typer(error, arguments)
    if refusal is None:
        return _unexpected(error, debug=debug)
    if debug:
        traceback.print_exc()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()  # announcements come before the error, also if both go into one file
    print(f"corpusveil: {refusal} [{refusal.code}]", file=sys.stderr)
    return refusal.exit_status


def _refused_by_typer(error: Exception, arguments: Sequence[str]) -> SettingError | None:
    """Return the error of an option that is gone, or no number or choice, which typer says in other words."""
    if hasattr(error, "show") and (gone := gone_option(arguments)) is not None:
        from corpusveil.cli.derived import call_of
        from corpusveil.pipelines.fields import named

        command, option, instead = gone
        return SettingError(f"{option}: {named(instead, call_of(command).name)}.")
    cause: Any = error.__cause__
    parameter = getattr(error, "param", None)
    if parameter is None or not hasattr(cause, "errors"):
        return None
    from corpusveil.cli.derived import typed
    from corpusveil.pipelines.settings.faults import wanted

    (fault, *_) = cause.errors()
    sentence = str(fault["ctx"]["error"]).rstrip(".") if fault["type"] == "value_error" else wanted(fault)
    return SettingError(f"{parameter.opts[0]} {typed(fault['input'])}: {sentence}.")


def _unexpected(error: Exception, *, debug: bool) -> int:
    if (show := getattr(error, "show", None)) is not None:  # a usage error of the command line
        show()
        missing = type(error).__name__ == "MissingParameter" and getattr(error, "param", None)
        if missing and missing.name in REMEDIES:
            print(REMEDIES[missing.name], file=sys.stderr)
        return 2
    if debug:
        traceback.print_exc()
    reason = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
    hint = "" if debug else " Run it again with --debug to see where it failed (this can show private text)."
    print(f"corpusveil: the work failed ({type(error).__name__}{reason}).{hint}", file=sys.stderr)
    return 1
