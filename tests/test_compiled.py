"""Machine code that numba keeps is never that of other sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from corpusveil import compiled

CALLED = "from corpusveil.compiled import compiled\n\n\n@compiled\ndef called(x):\n    return x + {}\n"
CALLING = (
    "from corpusveil.called_one import called\nfrom corpusveil.compiled import compiled\n\n\n"
    "@compiled\ndef calling(x):\n    return called(x)\n"
)


def test_a_function_is_compiled_again_when_one_that_it_calls_changed(tmp_path: Path) -> None:
    """As by an upgrade in place: the caller's own file is the same to the byte, and its machine code is still there."""
    root = tmp_path / "corpusveil"
    shutil.copytree(compiled.PACKAGE, root, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "calling_one.py").write_text(CALLING)
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    found = []
    for number in (1, 1, 5):
        (root / "called_one.py").write_text(CALLED.format(number))
        code = "from corpusveil.calling_one import calling as c; print(c(1), sum(c.stats.cache_hits.values()))"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**kept, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        found.append(done.stdout.split())
    assert found == [["2", "0"], ["2", "1"], ["6", "0"]], done.stderr
