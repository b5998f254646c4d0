"""Parquet is read on the calling thread: Arrow's own threads abort a process that ends right behind a read."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusveil

PACKAGE = Path(corpusveil.__file__).parent
READS = {
    "read_table": "parquet.read_table(path, ['id'])",
    "read_whole": "parquet.read_whole(path, 'no', lambda _: ['id', 'text'])",
    "batches": "list(formats.find('.parquet').batches(open(path, 'rb'), path, Columns('text', 'id')))",
    "rows": "formats.find('.parquet').rows(open(path, 'rb'), path)",
}
CODE = """
import sys, psutil
from corpusveil.storage import formats, parquet
from corpusveil.storage.rows import Columns
path, process = sys.argv[1], psutil.Process()
before = process.num_threads()
{read}
print(process.num_threads() - before)
"""


def threads(path: Path, read: str) -> int:
    """Return how many threads a read leaves behind in a new process."""
    command = [sys.executable, "-c", CODE.format(read=read), str(path)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("threads") / "a.parquet"
    pq.write_table(pa.table({"id": range(5000), "text": ["word"] * 5000}), path, row_group_size=1000)
    return path


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_read_starts_no_thread(file: Path, read: str) -> None:
    """A wrong call that had read a space or a table ended with SIGABRT now and then (one in sixty)."""
    assert threads(file, read) == 0


def test_arrows_own_way_would_be_seen(file: Path) -> None:
    """The test can fail: by default Arrow reads ahead on threads."""
    assert threads(file, "import pyarrow.parquet as pq; pq.ParquetFile(open(path, 'rb')).read()") > 0


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
