"""Equal documents are found anywhere, counted, and, if requested, left out except for the first."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corpusveil as cv
from corpusveil.jobs.local import Local
from corpusveil.ledger.caps import Spending
from corpusveil.spaces import Space
from corpusveil.storage.rows import Columns
from corpusveil.transforms.release import corpus
from corpusveil.transforms.release.corpus import Outcome, privatize_corpus
from tests.engines.corpora import WORDS, Ground, data_files, make_release, read_shard, write_shard

TEXTS = tuple(f"{WORDS[k]} {WORDS[k + 7]} {WORDS[2 * k]}" for k in range(12))


@pytest.fixture(scope="module")
def space(ground: Ground) -> Space:
    return ground.space


def release_of(space: Space) -> cv.Release:
    """Return a release; at this epsilon every word comes back as it was."""
    return dataclasses.replace(make_release(space, 60.0), duplicates="drop")


def write(folder: Path, shards: list[list[int]]) -> str:
    numbers = itertools.count()
    for shard, lines in enumerate(shards):
        rows = [{"text": TEXTS[line], "id": next(numbers)} for line in lines]
        write_shard(folder / f"{shard}.jsonl", rows)
    return str(folder)


def read(output: Path) -> list[list[Any]]:
    """Return the documents of each shard as numbers of ``TEXTS``."""
    return [[TEXTS.index(row["text"]) for row in read_shard(path)] for path in data_files(output)]


def go(release: cv.Release, source: str, output: Path, **named: Any) -> Outcome:
    return privatize_corpus(release, [source], str(output), named.pop("engine", Local()), **named)


SHARDS: list[list[int]] = [[0, 1, 0, 2], [1, 1, 1], [3, 2, 4, 3, 0], [5]]


class TestDrop:
    @settings(max_examples=25, deadline=None)
    @given(st.lists(st.lists(st.integers(0, 5), max_size=9), min_size=1, max_size=4))
    def test_leaves_the_first_of_each(
        self, tmp_path_factory: pytest.TempPathFactory, space: Space, shards: list[list[int]]
    ) -> None:
        folder = tmp_path_factory.mktemp("drop")
        outcome = go(release_of(space), write(folder / "in", shards), folder / "out")
        seen: set[int] = set()
        firsts = []  # by plain Python
        for lines in shards:
            firsts.append(list(dict.fromkeys(one for one in lines if one not in seen)))
            seen |= set(lines)
        assert read(folder / "out") == firsts
        documents = sum(map(len, shards))
        assert outcome.counts.documents + outcome.counts.dropped == documents

    def test_ids_ledger_and_manifest_are_of_the_rows_that_stay(self, tmp_path: Path, space: Space) -> None:
        """Run again it changes nothing, and nothing of the pass is left in the records."""
        source, ledger = write(tmp_path / "in", SHARDS), cv.Ledger(str(tmp_path / "ledger"))
        more: dict[str, Any] = {"columns": Columns(id="id", keep=("id",)), "spending": Spending(ledger.url)}
        outcome = go(release_of(space), source, tmp_path / "out", **more)
        shards = [file.read_text().splitlines() for file in sorted((tmp_path / "out/data").iterdir())]
        assert [json.loads(line)["id"] for lines in shards for line in lines] == [0, 1, 3, 7, 9, 12]
        (line,) = ledger.spent().releases
        assert line["documents"] == outcome.counts.documents == 6
        assert ledger.verify(tmp_path / "out.records").differences == ()
        manifest = json.loads((tmp_path / "out/manifest.json").read_text())
        assert any("missing" in line for line in manifest["guarantee_in_words"])
        assert any("no two documents are equal" in line for line in manifest["guarantee"]["disclosed"])
        assert "dropped" not in manifest
        assert go(release_of(space), source, tmp_path / "out", **more).content_sha256 == outcome.content_sha256
        left = {path.name for path in (tmp_path / "out.records").iterdir()}
        assert left == {"run.json", "shards", "totals.json"}

    def test_an_edit_brings_a_copy_back(self, tmp_path: Path, space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
        """A run that is stopped, an edit that takes the first away: the shard that was done without it is redone."""
        source = write(tmp_path / "in", [[0, 1], [1, 2]])

        def stop(*_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(corpus, "write_manifest", stop)
        with pytest.raises(KeyboardInterrupt):
            go(release_of(space), source, tmp_path / "out")
        monkeypatch.undo()
        write(tmp_path / "in", [[0, 3], [1, 2]])
        go(release_of(space), source, tmp_path / "out")
        assert read(tmp_path / "out") == [[0, 3], [1, 2]]
