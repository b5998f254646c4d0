"""The folder of a command's temporary files: what libraries leave in it ends with the command, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.engines.corpora import HANG_SECONDS, ROOT, environment

LEAVES = """
import sys, tempfile, time
import corpusveil.cli.main
def wait(seconds):
    print(tempfile.gettempdir(), flush=True)
    time.sleep(seconds)
class Ignores:
    def __del__(self):
        wait(1)
def run(arguments, signals):
    tempfile.mkdtemp(prefix="pymp-")
    if arguments == ["ignore"]:
        Ignores()
    if arguments == ["import"]:
        with open(tempfile.gettempdir() + "/ignores.py", "w") as file:
            file.write("import sys\\ntry:\\n    sys.wait(1)\\nexcept KeyboardInterrupt:\\n    pass")
        sys.wait, sys.path = wait, [tempfile.gettempdir(), *sys.path]
        import ignores
    wait(60 if arguments else 0)
    return 0
corpusveil.cli.main.run = run
from corpusveil.__main__ import main
main()
"""


def command(place: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", LEAVES, *arguments], env=environment(place, TMPDIR=str(place)), cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def begun(process: subprocess.Popen[str]) -> Path:
    """Return the folder of a command that waits, once it has one."""
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def ended(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=HANG_SECONDS)
    return process.returncode


@pytest.mark.parametrize(
    ("does", "number"), [([], 0), *(([each], signal.SIGTERM) for each in ("wait", "ignore", "import"))]
)
def test_nothing_is_left_of_a_command(does: Sequence[str], number: int, tmp_path: Path) -> None:
    """Temporary files, which may hold private text, go with it, even if ``__del__`` or an import ignores its signal."""
    with command(tmp_path, *does) as process:
        folder = begun(process)
        assert folder.parent == tmp_path
        if number:
            assert folder.exists()
            process.send_signal(number)
        assert ended(process) == (128 + number if number else 0)
    assert list(tmp_path.glob("*")) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_output_that_cannot_be_written_at_the_end_is_a_failure() -> None:
    """What a command printed last waits in a buffer until the process ends, which then has another status than 0."""
    prints = LEAVES.replace("    tempfile.mkdtemp", "    print('x'); return 0\n    tempfile.mkdtemp")
    buffered = os.environ | {"PYTHONUNBUFFERED": ""}
    with open("/dev/full", "w") as full:
        call = [sys.executable, "-c", prints]
        done = subprocess.run(call, env=buffered, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_command_whose_output_is_closed_ends_as_any_other() -> None:
    call = [sys.executable, "-m", "corpusveil", "--version"]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *call], cwd=ROOT, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
