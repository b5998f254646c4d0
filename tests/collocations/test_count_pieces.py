"""A large shard is counted in row ranges; what that gives is what counting it whole gives, to the byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from corpusveil.collocations.count import count_corpus
from corpusveil.errors import WorkError
from corpusveil.jobs.local import Local
from corpusveil.storage.rows import BLOCK_ROWS
from tests.calls import Halting, refused
from tests.collocations.corpora import make, write
from tests.engines.corpora import UNKNOWN, release_files

pytestmark = pytest.mark.xdist_group("spark")

REPEATED = 34
ROWS = 600 * REPEATED
"""Two and a half times ``BLOCK_ROWS``."""


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one shard of ``ROWS`` rows, many of them empty, and a small one."""
    made, folder = make(600, 11, sentences=3), tmp_path_factory.mktemp("large")
    made.documents *= REPEATED
    write(folder, made, 1)
    return Path(write(folder / "small", make(50, 12), 1)).parent


@pytest.fixture(scope="module")
def reference(shard: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("whole") / "counts"
    count_corpus([str(shard)], str(output), Local())
    return output


class Seen(Local):
    """Keeps what it was asked to run."""

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "jobs", [])

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
        self.jobs.append((function.name, list(tasks)))  # type: ignore[attr-defined]
        super().run(function, tasks)


class TestPieces:
    def test_give_the_same_bytes(self, shard: Path, reference: Path, tmp_path: Path) -> None:
        """The large shard in three tasks, the small one in one, in both stages that read; the artifact is the same."""
        engine = Seen()
        count_corpus([str(shard)], str(tmp_path / "out"), engine, rows_per_task=BLOCK_ROWS)
        assert [(name, len(done)) for name, done in engine.jobs] == [("words", 4), ("ngrams", 4)]  # type: ignore[attr-defined]
        assert release_files(tmp_path / "out") == release_files(reference)
        count_corpus([str(shard)], str(tmp_path / "out"), Local())  # finished: nothing is done, however it was split

    def test_of_another_split_are_not_gone_on_with(self, shard: Path, reference: Path, tmp_path: Path) -> None:
        """Stopped behind the first stage and run again in other pieces: every row is counted once."""
        with pytest.raises(WorkError):
            count_corpus([str(shard)], str(tmp_path / "out"), Halting(99), rows_per_task=BLOCK_ROWS)
        count_corpus([str(shard)], str(tmp_path / "out"), Local(), rows_per_task=2 * BLOCK_ROWS)
        assert release_files(tmp_path / "out") == release_files(reference)

    def test_of_a_shard_that_changes_are_refused(self, shard: Path, tmp_path: Path) -> None:
        """Pieces read from two versions of a shard are no count of either."""
        source = tmp_path / "x.jsonl"
        source.write_text('{"text": "one two"}\n' * 2 * BLOCK_ROWS)

        class Changing(Local):
            def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
                super().run(function, tasks[:1])
                source.write_text('{"text": "two one"}\n' * 2 * BLOCK_ROWS)
                work = function.place()  # type: ignore[attr-defined]
                first = work.address("done", tasks[0].record_name)
                done = Path(first).read_text()
                super().run(function, tasks[1:])
                now = function.fingerprint(tasks[0])  # type: ignore[attr-defined]
                before = function.kind.of(done.encode())  # type: ignore[attr-defined]
                work.write(f"done/{tasks[0].record_name}", before.model_copy(update={"input": now}))

        with refused("input-changed", "x.jsonl"):
            count_corpus([str(source)], str(tmp_path / "out"), Changing(), rows_per_task=BLOCK_ROWS)
        assert not (tmp_path / "out" / "_artifact.json").exists()

    def test_bad_rows_and_sizes_are_said(self, tmp_path: Path) -> None:
        """The error has the row's number in the file, not in the piece.

        So does a size that is not a multiple of a block.
        """
        source = tmp_path / "x.jsonl"
        source.write_text('{"text": "a b"}\n' * BLOCK_ROWS + "\n" + UNKNOWN)
        with refused("bad-shards", "x.jsonl", f"{BLOCK_ROWS + 1:}"):
            count_corpus([str(source)], str(tmp_path / "out"), Local(), rows_per_task=BLOCK_ROWS)
        with refused("wrong-setting", "8192"):
            count_corpus([str(source)], str(tmp_path / "other"), Local(), rows_per_task=100)
