"""Counting on a cluster, one of whose workers is killed: every count is still that of a plain count."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pytest

from tests.collocations.corpora import kept, make, write
from tests.engines.corpora import HANG_SECONDS
from tests.engines.processes import cluster, end_session, kill_tree, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.faults]


def test_a_killed_worker_changes_no_count(tmp_path: Path) -> None:
    """More than a million words on two workers, one killed while the first shards of a pass are done."""
    made = make(26_000, 5)
    assert made.words > 1_000_000
    source, output, shards = write(tmp_path / "in", made, 16), tmp_path / "counts", 16
    finished = output / "work" / "ngrams" / "done"

    def done() -> int:
        return len(list(finished.glob("*.json")))

    with cluster(tmp_path) as machines:
        arguments = ["count", str(source), "--output", str(output), "--engine", "spark", "--progress", "none"]
        job = machines.submit(arguments, tmp_path / "submit.log")
        try:
            wait_until(lambda: done() > 0 or job.poll() is not None)
            assert 0 < done() < shards
            kill_tree(machines.workers[1])
            status = job.wait(HANG_SECONDS)
        finally:
            end_session(job)
        assert status == 0, (tmp_path / "submit.log").read_text()
    table = pa.dataset.dataset(str(output / "ngrams")).to_table()
    counted = zip(*(table[name].to_pylist() for name in ("ngram", "n", "count")), strict=True)
    assert sorted(counted) == sorted(kept(made.counts, 5))
