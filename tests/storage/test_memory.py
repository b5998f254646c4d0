"""How much memory a release takes: what a huge document and wide rows cost at most, as the system counts it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.calls import succeeds
from tests.engines.corpora import HANG_SECONDS, ROOT, WORDS, Ground, environment

pytestmark = pytest.mark.slow
MIB = 1 << 20
PEAK = """
import resource, sys
sys.argv[:] = sys.argv[1:]
from corpusveil.cli.main import run
status = run(sys.argv[1:])
print(status, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(ground: Ground, source: Path, home: Path, *more: object) -> int:
    """Return the most memory, in bytes, that one process needs to privatize a source."""
    arguments = [str(one) for one in ground.arguments(source, home / f"{source.stem}-out", *more)]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, "corpusveil", *arguments], env=environment(home), cwd=ROOT,
        capture_output=True, text=True, timeout=HANG_SECONDS, check=True,
    )  # fmt: skip
    status, kibibytes = map(int, done.stdout.split()[-2:])
    assert status == 0, done.stderr
    return kibibytes << 10


def line_of(size: int) -> str:
    return " ".join([WORDS[k % len(WORDS)] for k in range(1000)] * (size // 7000 + 1))[:size]


@pytest.fixture(scope="module")
def small(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> int:
    """What a process needs for nearly nothing: its libraries, and the arrays for a part of a document."""
    home = tmp_path_factory.mktemp("small")
    (home / "a.jsonl").write_text(json.dumps({"id": "1", "text": line_of(4 * MIB)}) + "\n")
    succeeds(*ground.arguments(home / "a.jsonl", home / "out"))  # compiles what is compiled once
    return peak(ground, home / "a.jsonl", home)


def test_a_huge_document_takes_less_than_five_times_its_size(ground: Ground, small: int, tmp_path: Path) -> None:
    """Beside what a process needs anyway; it was eleven times. Its tokens alone would take three times its size."""
    size = 32 * MIB
    (tmp_path / "huge.jsonl").write_text(json.dumps({"id": "1", "text": line_of(size)}) + "\n")
    assert peak(ground, tmp_path / "huge.jsonl", tmp_path) - small < 4.5 * size
