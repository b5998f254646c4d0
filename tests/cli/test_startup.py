"""Help, and ``import corpusveil``, load what they need and nothing else: held by the modules that they leave loaded."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from corpusveil.cli import main
from corpusveil.pipelines.flows import commands

OF_HELP = {"corpusveil", "typer", "shellingham", "typing_extensions", "annotated_doc"}
OF_A_VALUE = {"pydantic", "pydantic_core", "typing_inspection", "annotated_types"}
"""What settings are declared by, and what typer loads to convert a value, as on the way to a command of a group."""
OF_SETTINGS = {command.partition(" ")[0] for command in commands()}
"""The commands whose options are settings."""
SLOW = {"asyncio", "multiprocessing", "concurrent", "unittest", "sqlite3", "xml", "http", "ssl"}
"""Of the standard library: tens of milliseconds, and a sign that something was imported that help does not show."""
FEW = 50
"""The most modules of our own: names, choices and defaults."""
SUBCOMMANDS = [[name, sub] for name in main.COMMANDS for sub in getattr(main.command(name), "commands", ())]
CALLS = [[], ["--version"], *([name] for name in main.COMMANDS)]


EACH = """
import json, os, sys
exec(sys.argv[2])
for code in json.loads(sys.argv[1]):
    if not os.fork():
        exec(code)
        print("\\nLOADED", json.dumps(sorted(sys.modules)), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, code
"""


def loaded(*codes: str, first: str = "") -> list[set[str]]:
    """Return the modules of a process that ran ``first`` and then each of these pieces of code, in forked copies."""
    call = [sys.executable, "-c", EACH, json.dumps(codes), first]
    lines = subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()
    return [set(json.loads(line.removeprefix("LOADED "))) for line in lines if line.startswith("LOADED ")]


def packages(modules: set[str]) -> set[str]:
    """Return what is not of the standard library."""
    own = {name.partition(".")[0] for name in modules}
    return {name for name in own - sys.stdlib_module_names if not name.startswith("_")}


NOTHING = packages(loaded("pass")[0])


@pytest.mark.parametrize("calls", [CALLS, pytest.param(SUBCOMMANDS, marks=pytest.mark.nightly)], ids=["", "groups"])
def test_help_loads_no_library_that_it_does_not_show(calls: list[list[str]]) -> None:
    """No NumPy, SciPy, pandas, Arrow, numba, Spark, Beam, gensim or rich; of ours the command and choices."""
    words = [call if call == ["--version"] else [*call, "--help"] for call in calls]
    first = "from corpusveil.cli.main import run"
    every = loaded(*(f"assert run({call!r}) == 0" for call in words), first=first)
    for call, modules in zip(calls, every, strict=True):
        of_others = {name for name in modules if name.startswith("corpusveil_evaluate.")}
        assert "evaluate" in call or of_others <= {"corpusveil_evaluate.settings"}, call  # its section of settings
        allowed = OF_HELP | NOTHING | {"corpusveil_evaluate"}
        allowed |= OF_A_VALUE if len(call) > 1 or {*call} & {*OF_SETTINGS} else set()
        assert packages(modules) <= allowed, (call, sorted(packages(modules) - allowed))
        assert len(call) > 1 or not SLOW & modules, call
        assert len([name for name in modules if name.partition(".")[0] == "corpusveil"]) < FEW, call


def test_the_package_alone_is_next_to_nothing_and_what_a_command_uses_would_be_seen() -> None:
    """``import corpusveil`` loads itself; the control: a command that does something loads what its help may not."""
    alone, used = loaded("import corpusveil", "from corpusveil.cli.main import run\nrun(['mechanisms'])")
    assert packages(alone) <= NOTHING | {"corpusveil"}
    assert not SLOW & alone
    assert not {name for name in alone if name.startswith("corpusveil.")}
    assert {"numpy", "numba", "pyarrow", "rich"} <= used
