"""What reading takes: a huge document costs so much memory at most, as the system counts it; Parquet starts no thread.

Arrow's own threads abort a process that ends right after a read.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import corpusveil

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
