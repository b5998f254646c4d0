"""Which files an input names, and which folders may not be written to."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

import corpusveil as cv
from corpusveil.errors import AddressError, UserError
from corpusveil.storage import formats, home
from corpusveil.storage.inputs import InputShard, find_shards, folder_of, refuse_nested, refuse_overlap
from tests.calls import fails, refused, succeeds
from tests.engines.corpora import Ground, make_release, rows, write_shard


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * len(name))
    return folder


def relative(*inputs: str | Path) -> list[str]:
    return [shard.relative for shard in find_shards([str(one) for one in inputs])]


class TestFound:
    def test_a_name_with_the_signs_of_a_glob_in_it(self, tmp_path: Path) -> None:
        touch(tmp_path, "a[1].json", "a b*.json")
        assert relative(tmp_path / "a[1].json") == ["a[1].json"]
        assert relative(tmp_path) == ["a b*.json", "a[1].json"]

    def test_each_once_in_one_order_however_named(self, tmp_path: Path) -> None:
        touch(tmp_path, "b/1.json", "a/1.json", "a/2.json")
        names = ["a/1.json", "a/2.json", "b/1.json"]
        assert (
            relative(tmp_path / "b", tmp_path / "a")
            == relative(tmp_path / "a" / "*", tmp_path, tmp_path / "b")
            == names
        )

    def test_below_a_root_by_paths_that_hold_no_parents(self, tmp_path: Path) -> None:
        """They are in identities: also of inputs that are named by way of a parent folder."""
        touch(tmp_path, "blobs/b.json", "in/a.json")
        inputs, names = [f"{tmp_path}/in/../blobs/b.json", f"{tmp_path}/in/a.json"], ["blobs/b.json", "in/a.json"]
        assert relative(*inputs) == names
        assert [shard.relative for shard in find_shards(inputs, f"{tmp_path}/in/..")] == names
        with pytest.raises(AddressError):
            find_shards(inputs, f"{tmp_path}/in")


def test_rows_of_a_folder_whose_column_begins_with_an_underscore_are_read_and_what_is_hidden_is_said(
    ground: Ground, tmp_path: Path
) -> None:
    """By a folder and by globs alike; what begins with a dot or an underscore has to be named."""
    names = ["_day=1/a.json", "_day=2/a.json", "_temporary/day=1/a.json", ".ipynb_checkpoints/b.json", "_SUCCESS"]
    for name in names:
        write_shard(tmp_path / "in" / name, rows(2, 0))
    for pattern in ("", "/**", "/*/*.json", "/**/a.json"):
        hidden = set[str]()
        shards = find_shards([f"{tmp_path}/in{pattern}"], f"{tmp_path}/in", hidden=hidden)
        assert [shard.relative for shard in shards] == names[:2], pattern
        assert hidden >= {f"{tmp_path}/in/_temporary"}, pattern
    assert relative(tmp_path / "in" / "_*" / "day=*" / "*.json", tmp_path / "in" / ".*" / "*") == sorted(names[2:4])
    counting = ["count", tmp_path / "in", "--output", tmp_path / "counts", "--min-count", 1]
    for command in (ground.arguments(tmp_path / "in", tmp_path / "out"), counting):
        assert "not read: 3 hidden files or folders of the input" in succeeds(*command).out
    with refused("missing-file", "in/.ipynb_checkpoints"):
        find_shards([f"{tmp_path}/in/*_checkpoints/*"])


def test_the_folder_of_shards_is_one_however_it_is_written(tmp_path: Path) -> None:
    """It names a corpus where nobody did, so that it is in identities: whole, and in the plain form of its store."""
    (tmp_path / "in" / "sub").mkdir(parents=True)
    for name in ("a.jsonl", "sub/b.jsonl"):
        (tmp_path / "in" / name).write_bytes(b"{}\n")
    for given in ([f"{tmp_path}/in"], [f"{tmp_path}/in/sub/../*.jsonl", f"{tmp_path}/in/sub/"], [f"{tmp_path}/in/**"]):
        assert folder_of(find_shards(given)) == f"{tmp_path}/in"
    assert folder_of(find_shards([f"{tmp_path}/in/sub"], "/")) == "/"
    for url, relative, folder in (
        ("s3://b/in/x/a.jsonl", "x/a.jsonl", "s3://b/in"), ("s3a://b/a.jsonl", "a.jsonl", "s3://b"),
        ("memory:///in/a.jsonl", "a.jsonl", "memory:///in"), ("s3://b/a.jsonl", "b/a.jsonl", "s3:"),
        ("https://h/in/a.jsonl?sig=x", "a.jsonl", "https://h/in"),
    ):  # fmt: skip
        assert folder_of([InputShard(url, relative, 1)]) == folder


def test_a_table_in_whose_folder_deleted_rows_can_lie_is_refused(tmp_path: Path) -> None:
    """Named by its folder, from above, from below, by one of its files, or by a link to one."""
    names = ("data/day=1/a.parquet", "b.parquet")
    for number, log in enumerate((
        "_delta_log/0.json", ".hoodie/hoodie.properties", "metadata/v1.metadata.json", "_spark_metadata/0",
        "metadata/00001-5f.gz.metadata.json",
    )):  # fmt: skip
        table = touch(tmp_path / "db" / str(number), log, *names)
        link = tmp_path / f"link{number}.parquet"
        link.symlink_to(table / names[0])
        below = ("", "*.parquet", "**/*.parquet", "data", "d*/day=1/*", "data/day=1", *names)
        for given in (*(f"{table}/{name}" for name in below), str(link)):
            with refused("unsuitable-data", given, "Delta"):
                find_shards([given])
    with refused("unsuitable-data", "Delta"):
        find_shards([f"{tmp_path}/db"])
    assert relative(touch(tmp_path / "other", "metadata/about.json", *names) / "data") == ["a.parquet"]


def test_a_file_with_two_names_is_drawn_once_or_refused(tmp_path: Path) -> None:
    """Two links, hard or not, and a folder that is reached in two ways; a path with ``..`` is the same name."""
    folder = touch(tmp_path / "in", "sub/a.json", "b.json")
    again = folder / "sub" / ".." / "sub" / "a.json"
    assert relative(folder / "sub", again, folder / "b.json") == ["b.json", "sub/a.json"]
    (tmp_path / "again").symlink_to(folder)
    for other in (folder / "c.json", folder / "sub" / "c.json", tmp_path / "again" / "b.json"):
        if other.parent != tmp_path / "again":
            (other.hardlink_to if "sub" in other.parts else other.symlink_to)(folder / "b.json")
        with refused("unusable-address", other, folder / "b.json"):
            find_shards([str(folder), str(other)])
        aliens: list[str] = []
        left = find_shards([str(folder), str(other)], aliens=aliens)
        assert ([shard.relative.split("/")[-1] for shard in left], len(aliens)) == (["a.json"], 1)
        other.unlink()
        touch(folder, "b.json")


def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    touch(tmp_path, "in/a.json")
    for name in ("in/pipe.json", "in/zero.json"):
        (os.mkfifo if "pipe" in name else partial(os.symlink, "/dev/zero"))(tmp_path / name)
        for given in ("in", "in/*.json", name):
            with refused("unusable-address", name, "pipe"):
                find_shards([f"{tmp_path}/{given}"])
        aliens: list[str] = []
        assert len(find_shards([f"{tmp_path}/in"], aliens=aliens)) == len(aliens) == 1
        (tmp_path / name).unlink()


def test_the_signature_of_an_address_is_in_no_sentence_path_or_name_of_a_key() -> None:
    """Whoever has it reads the file; and each time it is another, for the same documents."""
    signed = [f"https://h.example:8080/in/a.jsonl.gz?X-Amz-Date=1:{name}&X-Amz-Signature={name}#f" for name in "xy"]
    assert {formats.suffix_of_file(url) for url in signed} == {".jsonl.gz"}
    assert len({home.own_key("/out", [url, "in/q?x.json"], None) for url in signed}) == 1
    for end in (": gone.", ", which is here", " ", ".", "", "\n", ")."):
        assert str(AddressError(signed[0] + end)).startswith("https://h.example:8080/in/a.jsonl.gz" + end.strip())
        assert "Sig" not in str(AddressError(signed[0] + end))
    assert str(AddressError("q?x.json, s3://b/q?x.json: gone")) == "q?x.json, s3://b/q?x.json: gone"


def test_a_link_is_followed_or_refused_but_never_left_out(tmp_path: Path) -> None:
    """To a file; to a folder, round in a circle, and to nothing. Hidden ones are as other hidden files."""
    touch(tmp_path, "in/a.json", "in/b/c.json", "away/d.json")
    (tmp_path / "in" / "d.json").symlink_to(tmp_path / "away" / "d.json")
    for name, target in ((".e", "away"), ("_f.json", "nowhere")):
        (tmp_path / "in" / name).symlink_to(tmp_path / target)
    assert [shard.relative for shard in find_shards([str(tmp_path / "in")])] == ["a.json", "b/c.json", "d.json"]
    for target in ("away", "in", "nowhere"):
        (tmp_path / "in" / "b" / "link.json").symlink_to(tmp_path / target)
        for pattern in ("in", "in/**/*.json"):
            with refused("unusable-address", "in/b/link.json"):
                find_shards([f"{tmp_path}/{pattern}"])
        (tmp_path / "in" / "b" / "link.json").unlink()


class TestGlobs:
    """A folder or a glob finds the same on a disk and at a store."""

    @pytest.mark.parametrize("where", ["local", "memory"])
    def test_find(self, where: str, tmp_path: Path) -> None:
        """Hidden files are found only where they are named."""
        names = ["a.json", "b/a.json", "b/c/a.json", "b/.h/a.json", ".h/a.json", "b/.a.json", "bb/a.json", "bb/d.txt"]
        names += ["y/k.json", "y/z/k.json", "y/.d.json", "y/.e/f.json", "y/_SUCCESS", "y/_temporary/g.json"]
        memory, root = fsspec.filesystem("memory"), str(tmp_path) if where == "local" else "memory://base"
        for name in names:
            memory.pipe_file(f"/base/{name}", b"x")
        touch(tmp_path, *names)
        for pattern, names in (
            ("*.json", ["a.json"]),
            ("b*/*.json", ["b/a.json", "bb/a.json"]),
            ("?/*/a.json", ["a.json"]),
            ("b/**/*.json", ["a.json", "c/a.json"]),
            ("**/a.json", ["a.json", "b/a.json", "b/c/a.json", "bb/a.json"]),
            (".h/*.json", ["a.json"]),
            ("b/.*.json", [".a.json"]),
            ("[!a]/c/*", ["a.json"]),
            ("y", ["k.json", "z/k.json"]),
        ):
            assert relative(f"{root}/{pattern}") == names, pattern
        memory.store.clear()

    def test_a_folder_that_can_not_be_listed_is_not_left_out(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        touch(tmp_path, "a/1.json", "b/2.json")
        listed = LocalFileSystem.ls

        def fail(self: LocalFileSystem, path: str, **options: object) -> object:
            if path.endswith("/b"):  # root, who runs these tests now and then, may list everything
                raise PermissionError(13, "Permission denied")
            return listed(self, path, **options)

        monkeypatch.setattr(LocalFileSystem, "ls", fail)
        for pattern in (tmp_path, tmp_path / "*" / "*.json", tmp_path / "**" / "*.json"):
            with pytest.raises(AddressError):
                relative(pattern)


class TestOutput:
    """Nothing is written where it could be read as input, and nothing private into the release."""

    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        write_shard(tmp_path / "in" / "a.json", rows(3, 0))
        return tmp_path / "in"

    def test_is_refused(self, ground: Ground, source: Path, tmp_path: Path) -> None:
        """Nothing is read twice, or written into the input or the release."""
        write_shard(source / "deeper" / "b.json", rows(3, 0))
        (tmp_path / "link").symlink_to(source)
        before = sorted(tmp_path.rglob("*"))
        for input, output, records in (
            ("in", "in", None), ("in", "in/../in/private", None), ("in", "private", "in/records"),
            ("in/deeper", "in", None), ("in/deeper/b.json", "in/deeper", None), ("in/deeper/*", "in", None),
            ("in", "private", "private/records"), ("in", "private", "private"), ("in", "records/private", "records"),
            ("in/deeper", "private", "in"), ("link", "in/private", None),
        ):  # fmt: skip
            more = () if records is None else ("--records", tmp_path / records)
            fails(ground.arguments(tmp_path / input, tmp_path / output, *more), "unusable-address")
            assert sorted(tmp_path.rglob("*")) == before
        fails(["count", source, "--output", source / "counts"], "unusable-address")
        assert sorted(tmp_path.rglob("*")) == before

    def test_is_refused_at_a_store_under_any_name(self) -> None:
        shard = InputShard("s3://b/in/a.json", "a.json", 1)
        for source, output, records in (
            ("s3://b/in", "s3a://b/in/", "s3://b/records"), ("s3a://b/in/", "s3://b/in/out", "s3://b/records"),
            ("s3://b/in", "s3://b//in//out/", "s3://b/records"), ("s3://b", "s3://b/out", "s3://b/records"),
            ("s3://b/in/*", "s3://b/in", "s3://b/records"), ("s3://b/in/*", "s3://b", "s3://b/records"),
            ("s3://b/in", "s3://b/out", "s3a://b/in/records"), ("s3://b/in", "s3://b/out", "s3a://b/out/records/"),
            ("s3://b/in", "s3://b/out/", "s3a://b/out"), ("s3://b/in", "s3://b/records/out", "s3://b/records"),
            ("s3://b/in", "s3://b/x/../in", "s3://b/records"), ("s3://b/in", "s3://b/./in", "s3://b/records"),
        ):  # fmt: skip
            with pytest.raises(UserError):
                refuse_overlap([source], [shard], output, records)
        for output in ("s3://b/in-private", "s3://b/i", "s3://c/in", "memory://b/in", "b/in"):
            refuse_overlap(["s3://b/in"], [shard], output, f"{output}.records")

    def test_holds_no_ledger_and_lies_in_none(self, ground: Ground, source: Path, tmp_path: Path) -> None:
        """Also for callers in Python, under any name of a store, and through links."""
        (tmp_path / "link").symlink_to(tmp_path / "out")
        for ledger, output in (("out/L", "out"), ("link/L", "out"), ("L", "L/out"), ("L", "L")):
            with refused("unusable-address", "the ledger"):
                cv.privatize_corpus(
                    source, tmp_path / output, make_release(ground.space), ledger=cv.Ledger(tmp_path / ledger),
                    unit="content",
                )  # fmt: skip
        for private, public in (("s3a://b/out//L", "s3://b/out"), ("s3://b/L/", "s3://b//L/out")):
            with refused("unusable-address", private):
                refuse_nested(private, "the ledger", public)
        refuse_nested("s3://b/out.ledger", "the ledger", "s3://b/out")
