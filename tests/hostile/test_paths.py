"""Names that come from a file lead nowhere but where they should: no separators, no '..', no other folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpusveil.errors import AddressError, UserError
from corpusveil.spaces import load_space
from corpusveil.storage.durable import Done, PartTask, Stage
from corpusveil.storage.inputs import find_shards
from corpusveil.transforms.release.manifest import read_manifest
from tests.calls import refused
from tests.engines.corpora import Ground, rows, write_shard

NAMES = ["../x", "/etc/passwd", "a/b", "..", ".", "", "a\\b", "x\0y", "x\ny", "data/../../x", "~/x"]


def one_line(error: pytest.ExceptionInfo[UserError], named: object) -> None:
    assert str(named) in str(error.value)
    assert len(str(error.value).splitlines()) == 1


class _Made(Done):
    made: str | list[str]


class _Stage(Stage[_Made]):
    @property
    def name(self) -> str:
        return "s"

    def do_task(self, task: Any) -> dict[str, Any]:
        raise NotImplementedError


def test_a_record_of_a_stage(tmp_path: Path) -> None:
    """What it says was made is read by the next stage: a task whose record names another file is done again."""
    out = tmp_path / "out"
    work, record = out / "work", out / "work" / "s" / "done" / "part-00000-of-00001.json"
    record.parent.mkdir(parents=True)
    names: list[Any] = ["/etc/passwd", f"{out}/../x", str(out), "s3://elsewhere/x", "", [f"{out}/s/x", "/x"]]
    for name in names:
        record.write_text(json.dumps({"mark": "m", "input": "", "made": name}))
        assert _Stage(str(work), "m").read(PartTask(0, 1)) is None, name
    record.write_text(json.dumps({"mark": "m", "input": "", "made": [f"{work}/s/made/x.parquet", f"{out}/tokens/x"]}))
    assert _Stage(str(work), "m").read(PartTask(0, 1)) is not None


def test_a_manifest(tmp_path: Path) -> None:
    """What it says of files and risk leads nowhere else, and is one sentence where it is wrong."""
    manifest = {
        "kind": "release", "release": "r", "key_fingerprint": "f", "documents": 1, "tokens": 1, "content_sha256": "0",
        "configuration": {
            "space": "s", "mechanism": {"name": "m"}, "budget": {"epsilon": 1.0, "per": "token"}, "tokenizer": "t",
            "columns": {"keep": []}, "text": {},
        },
        "guarantee": {"disclosed": [], "epsilon": 1.0, "plain_ldp": 1.0},
        "checksums": "c", "guarantee_in_words": [], "spends": {"name": "n"},
    }  # fmt: skip

    def write(name: str, **risk: Any) -> None:
        shard = {"documents": 1, "tokens": 1, "sha256": "0", "file_sha256": "0", "name": name}
        chosen = {"risk": 0.5, "recovered": [[0.4, 0.01, "reader", "text"]]} | risk
        (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"shards": [shard], "risk": chosen}))

    write(right := "data/part-00000-of-00001.jsonl.zst")
    assert read_manifest(str(tmp_path))["shards"]
    wrong = [(name, {}) for name in (*NAMES, "data/part-00000-of-00001", "part-0-of-1.jsonl", "data/part-0-of-1.x")]
    measured = (5, [["news"]], [["much", 0.1, "reader", "text"]], [[0.4, 0.1, "reader", "a\nb"]])
    wrong += [(right, {"recovered": value}) for value in measured]
    for name, risk in (*wrong, (right, {"risk": None})):
        write(name, **risk)
        with refused("damaged-artifact", "damaged") as caught:
            read_manifest(str(tmp_path))
        one_line(caught, tmp_path)


def test_the_digest_of_a_space(ground: Ground, tmp_path: Path) -> None:
    """It names the folder of this machine's copy."""
    for path in ground.space_folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    written = json.loads((tmp_path / "_artifact.json").read_text())
    for digest in ("../" * 20 + "a" * 4, "A" * 64, "0" * 63, "/" * 64, 7, None):
        (tmp_path / "_artifact.json").write_text(json.dumps(written | {"digest": digest}))
        with refused("damaged-artifact") as caught:
            load_space(str(tmp_path))
        one_line(caught, tmp_path)


class TestLinks:
    """Links in an input folder: those to files are the files, all others an error; nobody goes in circles."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path / "in"
        write_shard(folder / "a.jsonl", rows(2, 1))
        write_shard(tmp_path / "blobs" / "b.jsonl", rows(2, 2))
        (folder / "link.jsonl").symlink_to(tmp_path / "blobs" / "b.jsonl")
        return folder

    def test_that_are_files(self, folder: Path) -> None:
        """They are read once, by their own name."""
        for pattern in ("", "/*.jsonl", "/**/*.jsonl"):
            assert [shard.relative for shard in find_shards([f"{folder}{pattern}"])] == ["a.jsonl", "link.jsonl"]

    def test_that_lead_to_a_folder_round_in_a_circle_or_nowhere_are_refused(self, folder: Path, tmp_path: Path) -> None:
        for place in (tmp_path / "blobs", folder, tmp_path / "nowhere"):
            (folder / "other.jsonl").symlink_to(place)
            with refused("unusable-address", "other.jsonl"):
                find_shards([str(folder)])
            (folder / "other.jsonl").unlink()

    def test_paths_in_identities_hold_no_parents(self, folder: Path, tmp_path: Path) -> None:
        """Also of inputs that are named by way of a parent folder, and below a root."""
        inputs = [f"{folder}/../blobs/b.jsonl", f"{folder}/a.jsonl"]
        assert [shard.relative for shard in find_shards(inputs)] == ["blobs/b.jsonl", "in/a.jsonl"]
        with pytest.raises(AddressError):
            find_shards(inputs, str(folder))
        assert [one.relative for one in find_shards(inputs, f"{folder}/..")] == ["blobs/b.jsonl", "in/a.jsonl"]
