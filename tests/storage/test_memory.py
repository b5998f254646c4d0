"""What reading takes: a huge document costs so much memory at most, as the system counts it; Parquet starts no thread.

Arrow's own threads abort a process that ends right after a read.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusveil
from tests.calls import succeeds
from tests.engines.corpora import HANG_SECONDS, ROOT, WORDS, Ground, environment

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


@pytest.mark.slow
@pytest.mark.nightly
def test_a_huge_document_takes_less_than_five_times_its_size(ground: Ground, tmp_path: Path) -> None:
    """Beside what a process needs anyway; it was eleven times. Its tokens alone would take three times its size."""
    for name, size in (("small", 4 * MIB), ("huge", 32 * MIB)):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": "1", "text": line_of(size)}) + "\n")
    succeeds(*ground.arguments(tmp_path / "small.jsonl", tmp_path / "out"))  # compiles what is compiled once
    small, huge = (peak(ground, tmp_path / f"{name}.jsonl", tmp_path) for name in ("small", "huge"))
    assert huge - small < 4.5 * size


PACKAGE = Path(corpusveil.__file__).parent
CODE = """
import sys, psutil
import pyarrow.parquet as pq
from corpusveil.storage import formats, parquet
from corpusveil.storage.rows import Columns
path, process = sys.argv[1], psutil.Process()
for read in (
    lambda: parquet.read_table(path, ['id']),
    lambda: parquet.read_whole(path, 'no', lambda _: ['id', 'text']),
    lambda: list(formats.find('.parquet').batches(open(path, 'rb'), path, Columns('text', 'id'))),
    lambda: formats.find('.parquet').rows(open(path, 'rb'), path),
    lambda: pq.ParquetFile(open(path, 'rb')).read(),
):
    before = process.num_threads()
    read()
    print(process.num_threads() - before)
"""


def test_a_read_starts_no_thread(tmp_path: Path) -> None:
    """A wrong call that had read a space or a table ended with SIGABRT now and then (one in sixty)."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": range(5000), "text": ["word"] * 5000}), path, row_group_size=1000)
    done = subprocess.run([sys.executable, "-c", CODE, str(path)], capture_output=True, text=True, check=True)
    *started, control = map(int, done.stdout.split())
    assert started == [0] * 4
    assert control > 0


def test_nothing_else_reads_parquet() -> None:
    """Every Python file goes through ``storage/parquet.py``, and every read says that it wants no threads."""
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        assert "pq.read_table(" not in text, path
        if path.name != "parquet.py":
            assert "ParquetFile(" not in text, path
        for call in re.findall(r"\.(?:iter_batches|read_row_groups?|read)\((?:[^()]|\([^()]*\))*\)", text):
            if "iter_batches" in call or "read_row_group" in call:
                assert "use_threads=False" in call, (path, call)
