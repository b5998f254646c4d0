"""Shards that are too large for their share of the work are split; what is written does not change."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from corpusveil.jobs.local import Local
from corpusveil.storage import tasks
from corpusveil.storage.inputs import InputShard, find_shards
from corpusveil.storage.rows import BLOCK_ROWS
from corpusveil.storage.tasks import MOST_PIECES, SPLIT_FROM_BYTES, plan
from corpusveil.transforms.release.corpus import privatize_corpus
from tests.engines.corpora import make_release, make_space, release_files

LARGE = 4 * SPLIT_FROM_BYTES


def shards(*sizes: int) -> list[InputShard]:
    return [InputShard(f"{number}.json", f"{number}.json", size) for number, size in enumerate(sizes)]


def sizes_of(*sizes: int, slots: int) -> list[int]:
    """Return into how many pieces each shard is split."""
    split = tasks._shares(shards(*sizes), lambda: slots)
    return [split.get(number, 1) for number in range(len(sizes))]


def test_what_is_split() -> None:
    """Large shards of two shares or more, in no more pieces than so many; equal shards if they are half the slots."""
    assert sizes_of(LARGE, slots=2) == [2]
    assert sizes_of(LARGE, slots=1) == [1]
    first, *others = sizes_of(LARGE, *[1000] * 50, slots=8)
    assert first == 7
    assert others == [1] * 50
    for slots in (2, 8, 10, 15):
        assert sizes_of(*[LARGE] * 8, slots=slots) == [1] * 8
    for slots in (16, 23):
        assert sizes_of(*[LARGE] * 8, slots=slots) == [2] * 8
    assert sizes_of(SPLIT_FROM_BYTES - 1, slots=64) == [1]
    assert sizes_of(1000 * LARGE, slots=1000) == [MOST_PIECES]
    assert tasks._shares(shards(1, 2, 3), lambda: pytest.fail("an engine has to be started to answer")) == {}


def as_lines(path: Path, count: int) -> Path:
    path.write_bytes(b"".join(json.dumps({"text": f"bababa dedede {row}"}).encode() + b"\n" for row in range(count)))
    return path


def test_a_split_shard_is_written_as_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the guess of its rows was far off: pieces behind its end are empty, the last takes what is left."""
    rows = 2 * BLOCK_ROWS + 5
    source = tmp_path / "a.json.gz"
    source.write_bytes(gzip.compress(as_lines(tmp_path / "lines", rows).read_bytes(), 1, mtime=0))
    release = make_release(make_space(tmp_path / "space"))
    whole = tmp_path / "whole"
    privatize_corpus(release, [str(source)], str(whole), Local())
    monkeypatch.setattr(tasks, "SPLIT_FROM_BYTES", 1)
    assert len(plan(find_shards([str(source)]), None, None, lambda: 2)) > 1
    guesses: list[Any] = [tasks._about_rows, lambda *_: 10 * rows, lambda *_: 1 + rows // 10]
    for number, guess in enumerate(guesses):
        monkeypatch.setattr(tasks, "_about_rows", guess)
        output = tmp_path / f"split{number}"
        privatize_corpus(release, [str(source)], str(output), _Two())
        assert release_files(output) == release_files(whole)


class _Two(Local):
    """One process that says it were two."""

    def slots(self) -> int:
        return 2


def test_rows_are_guessed_from_the_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = as_lines(tmp_path / "a.json", 100_000)
    assert tasks._about_rows(str(source), ".json") == 100_000
    monkeypatch.setattr(tasks, "_LOOKED_AT", 2)
    assert 90_000 < tasks._about_rows(str(source), ".json") < 110_000
