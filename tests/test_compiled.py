"""Machine code that numba keeps is never that of other sources."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import corpusveil.waiting
from corpusveil import compiled

CALLED = "from corpusveil.compiled import compiled\n\n\n@compiled\ndef called(x):\n    return x + {}\n"
CALLING = (
    "from corpusveil.called_one import called\nfrom corpusveil.compiled import compiled\n\n\n"
    "@compiled\ndef calling(x):\n    return called(x)\n"
)

DISTANCE = "corpusveil.search.nominations.squared_distance"
STAMPS = """
import importlib, json, sys
names = ["text.text_writer", "text.utf8", "text.output_words", "search.nominations", "kernel.chunk"]
modules = [importlib.import_module(f"corpusveil.{name}") for name in names]
functions = {f"{m.__name__}.{name}": f for m in modules for name, f in vars(m).items() if hasattr(f, "py_func")}
print(json.dumps({name: f._cache._cache_file._source_stamp.digest for name, f in functions.items()}))
"""


def copied(folder: Path, called: str = "") -> Path:
    """Copy the package into a folder, with a module of a function that is compiled."""
    root = folder / "corpusveil"
    shutil.copytree(compiled.PACKAGE, root, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "called_one.py").write_text(called or CALLED.format(1))
    return root


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return an environment with the package of a folder, where numba keeps what it compiled beside it."""
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return {**kept, "PYTHONPATH": str(folder), **more}


@pytest.mark.nightly
def test_a_function_is_compiled_again_when_one_that_it_calls_changed(tmp_path: Path) -> None:
    """As by an upgrade in place: the caller's own file is the same to the byte, and its machine code is still there."""
    root = copied(tmp_path)
    for folder in (root, tmp_path / "other"):
        folder.mkdir(exist_ok=True)
        (folder / "calling_one.py").write_text(CALLING)
    found = []
    for number in (1, 1, 5):
        (root / "called_one.py").write_text(CALLED.format(number))
        code = "from {}.calling_one import calling as c; print(c(1), sum(c.stats.cache_hits.values()))"
        code = "\n".join(map(code.format, ("corpusveil", "other")))
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment(tmp_path, PYTHONDONTWRITEBYTECODE="1"),
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        found.append(done.stdout.split())
    assert found == [["2", "0"] * 2, ["2", "1"] * 2, ["6", "0"] * 2], done.stderr


CALLS = """
import gc, sys
from corpusveil.called_one import called as c
print("ready", flush=True)
sys.stdin.readline()
print(c(1), sum(c.stats.cache_misses.values()), gc.isenabled())
"""


@pytest.mark.nightly
def test_of_two_cold_processes_one_compiles_and_the_other_waits(tmp_path: Path) -> None:
    steps = "".join(f"    if x == {-each}:\n        x += {each}\n" for each in range(1, 200))  # to compile for a while
    copied(tmp_path, CALLED.format(1).replace("    return", f"{steps}    return"))
    two = [
        subprocess.Popen(
            [sys.executable, "-c", CALLS], env=environment(tmp_path), cwd=tmp_path, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) for _ in range(2)
    ]  # fmt: skip
    for process in two:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in two:
        assert process.stdin is not None
        process.stdin.write("now\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=300)[0].split() for process in two]
    assert sorted(answers) == [["2", "0", "True"], ["2", "1", "True"]]


def test_who_waits_in_vain_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_PATIENCE", 0.1)
    turns = [compiled._Turn(), compiled._Turn()]
    assert [turn.begin(lambda: None, tmp_path / "lock") for turn in turns] == [None, None]
    assert not gc.isenabled()
    for turn in reversed(turns):
        turn.end()
    assert gc.isenabled()
    assert corpusveil.waiting.compiling == 0


CHANGED = """
import sys
from pathlib import Path
from corpusveil import called_one
if "change" in sys.argv:
    file = Path(called_one.__file__)
    file.write_text(file.read_text().replace("x + 1", "x + 1000"))
print(called_one.called(1))
"""


def test_what_was_imported_before_an_upgrade_is_not_kept_as_what_came_after(tmp_path: Path) -> None:
    copied(tmp_path)
    printed = [
        subprocess.run(
            [sys.executable, "-c", CHANGED, *more], env=environment(tmp_path), cwd=tmp_path, text=True,
            capture_output=True, check=True,
        ).stdout for more in (["change"], [])
    ]  # fmt: skip
    assert printed == ["2\n", "1001\n"]


NOWHERE = """
from numba.core import caching
caching.CacheImpl._locator_classes = [caching.UserProvidedCacheLocator]
from corpusveil.called_one import called
print(called(1))
"""


def test_loops_run_where_neither_the_package_nor_a_home_can_be_written(tmp_path: Path) -> None:
    copied(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", NOWHERE], env=environment(tmp_path, TMPDIR=str(tmp_path)), cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "2\n", done.stderr
    assert not [*tmp_path.glob("corpusveil-loops-*")], "they are removed at the end"


@pytest.mark.nightly
def test_only_what_machine_code_is_made_from_changes_its_stamp(tmp_path: Path) -> None:
    """A sentence in errors.py compiled all 216 functions again on every machine."""
    root = copied(tmp_path)

    def stamps() -> dict[str, str]:
        of = environment(tmp_path, PYTHONDONTWRITEBYTECODE="1")
        done = subprocess.run(
            [sys.executable, "-c", STAMPS], env=of, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return dict(json.loads(done.stdout))

    before = stamps()
    assert len(before) >= 20
    errors = root / "errors.py"
    errors.write_text(errors.read_text() + '\n\nANOTHER = "sentence"\n')
    assert stamps() == before
    for file, line, other in (
        ("text/output_words.py", "LONG = 255", "LONG = 254"),  # a constant that two files of loops read
        ("wide.py", "WIDTH, SPAN = 16, 64", "WIDTH, SPAN = 16, 64  # bytes"),  # instructions that loops are built from
    ):
        text = (root / file).read_text()
        assert line in text
        (root / file).write_text(text.replace(line, other))
        after = stamps()
        changed = {name for name in before if before[name] != after[name]}
        assert "corpusveil.text.text_writer.write_text" in changed, file
        assert not changed.intersection({"corpusveil.text.utf8.decode", DISTANCE}), file
        before = after
