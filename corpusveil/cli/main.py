"""``corpusveil COMMAND``: parse, run, and turn errors into one sentence and an exit status."""

from __future__ import annotations

import logging
import sys
import traceback

import typer

import corpusveil
from corpusveil.cli import (
    audit,
    compile_tables,
    count,
    demo,
    evaluate,
    key,
    ledger,
    mechanisms,
    package,
    privatize,
    schedule,
    score,
    space,
    tokenize,
    train,
)
from corpusveil.cli import run as run_command
from corpusveil.errors import CorpusveilError

INTERRUPTED = 130

app = typer.Typer(
    name="corpusveil",
    help="Privatize text corpora of any size with word-level metric differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(evaluate.app, name="evaluate")
app.add_typer(key.app, name="key")
app.add_typer(ledger.app, name="ledger")
app.command("count")(count.count)
app.command("score")(score.score)
app.command("tokenize")(tokenize.tokenize)
app.command("train")(train.train)
app.command("space")(space.space)
app.command("privatize")(privatize.privatize)
app.command("run")(run_command.run_file)
app.command("plan")(run_command.plan_file)
app.command("schedule")(schedule.schedule)
app.command("mechanisms")(mechanisms.mechanisms)
app.command("audit")(audit.audit_command)
app.command("compile")(compile_tables.compile_command)
app.command("package")(package.package)
app.command("demo")(demo.demo)


def _version(*, show: bool) -> None:
    if show:
        print(f"corpusveil {corpusveil.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=lambda v: _version(show=v)),
) -> None:
    """Privatize text corpora of any size with word-level metric differential privacy."""


def split_arguments(arguments: list[str]) -> tuple[list[str], list[str], bool]:
    """Part a command line into its own arguments, those behind ``--`` (for the Beam runner), and ``--debug``."""
    own, passed = arguments, []
    if "--" in arguments:
        at = arguments.index("--")
        own, passed = arguments[:at], arguments[at + 1 :]
    return [word for word in own if word != "--debug"], passed, "--debug" in own


def main() -> None:
    """Run the command line of this process and exit with its status."""
    sys.exit(run(sys.argv[1:]))


def invoke(arguments: list[str]) -> int:
    """Run one command line; return its exit status, or raise what went wrong."""
    own, passed, debug = split_arguments(arguments)
    result = typer.main.get_command(app).main(
        own, prog_name="corpusveil", standalone_mode=False, obj={"passed": passed, "debug": debug}
    )
    return result if isinstance(result, int) else 0


def run(arguments: list[str]) -> int:
    """Run one command line; return its exit status."""
    debug = split_arguments(arguments)[2]
    logging.getLogger("py4j").setLevel(logging.ERROR)
    try:
        result = invoke(arguments)
    except CorpusveilError as error:
        if debug:
            traceback.print_exc()
        print(f"corpusveil: {error}", file=sys.stderr)
        return error.exit_status
    except (typer.Abort, KeyboardInterrupt):
        result = INTERRUPTED
    except BrokenPipeError:
        return 1
    except Exception as error:  # noqa: BLE001 - the last resort; the text could quote a document
        return _unexpected(error, debug=debug)
    if result == INTERRUPTED:  # typer turns the interruption into this status, without a word
        print("corpusveil: interrupted; run the same command again to go on.", file=sys.stderr)
    return result


def _unexpected(error: Exception, *, debug: bool) -> int:
    show = getattr(error, "show", None)
    if show is not None:  # a usage error of the command line
        show()
        return 2
    if debug:
        traceback.print_exc()
    reason = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
    hint = "" if debug else " Run it again with --debug to see where (that can show private text)."
    print(f"corpusveil: the work failed ({type(error).__name__}{reason}).{hint}", file=sys.stderr)
    return 1
