"""Help, and ``import corpusveil``, load what they need and nothing else: held by the modules that they leave loaded."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from corpusveil.cli import main
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.fields import declared

OF_HELP = {"corpusveil", "typer", "shellingham", "typing_extensions", "annotated_doc"}
OF_A_VALUE = {"pydantic", "pydantic_core", "typing_inspection", "annotated_types"}
"""What settings are declared by, and what typer loads to convert a value, as on the way to a command of a group."""
OF_SETTINGS = {command.partition(" ")[0] for one in declared(Settings) for command in one.commands}
"""The commands whose options are settings."""
SLOW = {"asyncio", "multiprocessing", "concurrent", "unittest", "sqlite3", "xml", "http", "ssl"}
"""Of the standard library: tens of milliseconds, and a sign that something was imported that help does not show."""
FEW = 50
"""The most modules of our own: names, choices and defaults."""
SUBCOMMANDS = [[name, sub] for name in main.COMMANDS for sub in getattr(main.command(name), "commands", ())]
CALLS = [[], ["--version"], *([name] for name in main.COMMANDS), *SUBCOMMANDS]


def loaded(code: str) -> set[str]:
    """Return the modules of a new process that ran this."""
    code += "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def packages(modules: set[str]) -> set[str]:
    """Return what is not of the standard library."""
    own = {name.partition(".")[0] for name in modules}
    return {name for name in own - sys.stdlib_module_names if not name.startswith("_")}


NOTHING = packages(loaded("pass"))


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_help_loads_no_library_that_it_does_not_show(call: list[str]) -> None:
    """No NumPy, SciPy, pandas, Arrow, numba, Spark, Beam, gensim or rich; of ours the command and choices."""
    words = call if call == ["--version"] else [*call, "--help"]
    found = loaded(f"from corpusveil.cli.main import run\nassert run({words!r}) == 0")
    allowed = OF_HELP | NOTHING | ({"corpusveil_studies"} if "evaluate" in call else set())
    allowed |= OF_A_VALUE if len(call) > 1 or {*call} & {*OF_SETTINGS} else set()
    assert packages(found) <= allowed, sorted(packages(found) - allowed)
    if len(call) < 2:
        assert not SLOW & found
    assert len([name for name in found if name.partition(".")[0] == "corpusveil"]) < FEW


def test_the_package_alone_is_next_to_nothing() -> None:
    """``import corpusveil`` loads itself; what is used is loaded when it is used."""
    found = loaded("import corpusveil")
    assert packages(found) <= NOTHING | {"corpusveil"}
    assert not SLOW & found
    assert {name for name in found if name.startswith("corpusveil.")} == set()


def test_what_a_command_uses_would_be_seen() -> None:
    """The test can fail: a command that does something loads the libraries that its help may not."""
    assert {"numpy", "numba", "pyarrow", "rich"} <= loaded("from corpusveil.cli.main import run\nrun(['mechanisms'])")


def test_a_listing_is_not_cut_short(capsys: pytest.CaptureFixture[str]) -> None:
    """Every command stands there with a whole sentence."""
    assert main.run(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, (_, sentence) in main.COMMANDS.items():
        assert any(line.split() == [name, *sentence.split()] for line in lines), name
        assert sentence.endswith(".")
