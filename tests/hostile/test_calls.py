"""Hostile calls: one sentence, the right status, nothing lost, no private text."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.cli.main import run
from corpusveil.errors import UserError
from corpusveil.spaces.vectors import Vectors
from tests.calls import command, succeeds
from tests.engines.corpora import (
    COMMAND,
    HANG_SECONDS,
    TEST_KEY,
    UNKNOWN,
    WORDS,
    Ground,
    data_files,
    environment,
    make_release,
    rows,
    write_shard,
)
from tests.hostile import calls
from tests.hostile.calls import Call

PARTS = {
    "vectors": "vectors.npy",
    "lists": "lists.npy",
    "vocabulary": "vocabulary.parquet",
    "description": "_artifact.json",
}


def damage_spaces(space: Path, folder: Path) -> None:
    """Copy a space, each time with one part of it missing, cut or changed; of another version; of another kind."""
    for part, name in PARTS.items():
        whole = (space / name).read_bytes()
        changed = bytearray(whole)
        changed[len(whole) * 3 // 4] ^= 1
        for damage, data in (("missing", None), ("cut", whole[: len(whole) // 2]), ("changed", bytes(changed))):
            copy = folder / f"{part}-{damage}"
            shutil.copytree(space, copy)
            (copy / name).unlink() if data is None else (copy / name).write_bytes(data)
    for field, value in (("version", 99), ("kind", "counts")):
        copy = folder / field
        shutil.copytree(space, copy)
        written = json.loads((copy / "_artifact.json").read_text())
        (copy / "_artifact.json").write_text(json.dumps(written | {field: value}))


@pytest.fixture(scope="module")
def places(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Make every place that a call names, each as hostile as its name."""
    folder = tmp_path_factory.mktemp("places")
    for name in ("empty", "hidden/.x", "keys", "foreign/data", "damaged", "corpus"):
        (folder / name).mkdir(parents=True)
    (folder / "hidden" / ".x" / "x.jsonl").write_text("{}")
    (folder / "foreign" / "data" / "part-00000-of-00001.jsonl").write_text("{}")
    (folder / "file").write_text(UNKNOWN)
    (folder / "vectors.txt").write_text("a 1 2\nb 3 4\nc 5 6\n")
    for name, secret in (
        ("empty", b""), ("short", TEST_KEY[:31]), ("long", TEST_KEY + b"x"), ("hex", TEST_KEY.hex().encode()),
        ("phrase", b"correct horse battery staple, no"), ("zeros", bytes(32)), ("other", bytes(range(150, 182))),
    ):  # fmt: skip
        (folder / "keys" / f"{name}.key").touch(mode=0o600)
        (folder / "keys" / f"{name}.key").write_bytes(secret)
    write_shard(folder / "x.jsonl", rows(20, 1))
    write_shard(folder / "corpus" / "x.jsonl", rows(20, 2))
    (folder / "x.csv").write_text(f"text\n{UNKNOWN}\n")
    random = np.random.default_rng(0).standard_normal((len(WORDS), 4)).astype(np.float32)
    cv.build_space(Vectors(list(WORDS), random), lists=0).save(str(folder / "listless"))
    damage_spaces(ground.space_folder, folder / "damaged")
    succeeds(*ground.arguments(folder / "x.jsonl", folder / "release"))
    names = ("empty", "hidden", "keys", "foreign", "damaged", "corpus", "file", "listless", "release", "missing")
    return {
        **{name: folder / name for name in names},
        "input": folder / "x.jsonl",
        "table": folder / "x.csv",
        "vectors": folder / "vectors.txt",
        "space": ground.space_folder,
        "key": ground.key,
    }


def state(folder: Path) -> dict[str, str]:
    """Return every file below a folder with a digest."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*")) if path.is_file()
    }


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that is the test's own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "300")


@pytest.mark.parametrize("kind", calls.KINDS)
def test_is_one_sentence(places: dict[str, Path], tmp_path: Path, kind: Callable[[], Iterator[Call]]) -> None:
    """What is wrong is named; nothing that was there before is changed, and nothing half-done is there afterwards."""
    before = state(places["input"].parent)
    for number, call in enumerate(kind()):
        there = {name: str(path) for name, path in places.items()} | {"output": f"{tmp_path}/{number}/private"}
        ended = command(*(word.format(**there) for word in call.words))
        assert ended.status == call.status, (call, ended)
        lines = [line for line in ended.err.splitlines() if not line.startswith(("reading ", "ordering "))]
        assert all(name in " ".join(lines) for name in call.said.format(**there).split("*")), (call, lines)
        assert "Traceback" not in ended.err, call
        assert UNKNOWN not in ended.err + ended.out, call
        if not any(line.startswith("Usage:") for line in lines):
            assert len(lines) == 1, (call, lines)
            assert lines[0].startswith("corpusveil: "), call
        assert state(places["input"].parent) == before, call
        assert not [*tmp_path.rglob("part-*"), *tmp_path.rglob("manifest.json")], call


Bad = tuple[str, Callable[[Any], Any], str]
PYTHON: list[Bad] = [
    ("a number for a text", lambda r: cv.privatize(["x", None, 5], r, [*"abc"]), r"row 2 .*of type int"),
    ("bytes for a text", lambda r: cv.privatize(["x", UNKNOWN.encode()], r, ["a", "b"]), "row 1 .*bytes"),
    ("no such parameter", lambda r: cv.mechanism("ring-geometric", r.mechanism.space, x=1), "x"),
    ("no such id", lambda r: r.mechanism.distribution(10**6, 1.0), "id"),
]


def test_python_calls_raise_one_sentence(ground: Ground) -> None:
    """From Python the same: a UserError of one line."""
    release = make_release(ground.space)
    for name, call, said in PYTHON:
        with pytest.raises(UserError, match=said) as caught:
            call(release)
        assert "\n" not in str(caught.value), name
        assert len(str(caught.value)) < 300, name


class TestNoPermission:
    """As an ordinary user, who may not do everything."""

    @pytest.fixture(autouse=True)
    def ordinary(self, tmp_path: Path) -> Iterator[None]:
        """Give up root's rights for the length of a test."""
        if os.geteuid() != 0:
            yield
            return
        path = tmp_path
        while path != path.parent:  # pytest's folders are closed to others
            if path.stat().st_uid == 0 and not path.stat().st_mode & 0o001 and str(path).startswith("/tmp"):
                path.chmod(path.stat().st_mode | 0o011)
            path = path.parent
        os.chown(tmp_path, 65534, 65534)
        os.seteuid(65534)
        yield
        os.seteuid(0)

    @pytest.mark.parametrize("what", ["input", "folder", "output", "records", "key", "space"])
    def test_is_said(self, ground: Ground, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str) -> None:
        """What may not be read or written is named."""
        source = write_shard(tmp_path / "in" / "x.jsonl", rows(5, 1))
        key, space = tmp_path / "k.key", tmp_path / "space"
        key.touch(mode=0o600)
        key.write_bytes(TEST_KEY)
        make_release(ground.space).mechanism.space.save(str(space))
        closed = {"input": source, "folder": source.parent, "key": key, "space": space / "_artifact.json"}.get(what)
        parent = tmp_path / "closed"
        parent.mkdir()
        parent.chmod(0o500)
        if closed is not None:
            closed.chmod(0)
        arguments = ground.arguments(source, parent / "out" if what == "output" else tmp_path / "out")
        arguments[arguments.index("--space") + 1] = str(space)
        arguments[arguments.index("--key") + 1] = str(key)
        if what == "records":
            arguments += ["--records", str(parent / "records")]
        status = run(arguments)
        err = capsys.readouterr().err
        for path in (source.parent, source, key, parent, space / "_artifact.json"):
            path.chmod(0o700)
        (sentence,) = err.splitlines()
        assert status in {1, 2}
        assert str(closed or parent) in sentence
        assert "ermission" in sentence
        assert UNKNOWN not in err
        assert not list(tmp_path.rglob("manifest.json"))


LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))
os.execv(sys.argv[1], sys.argv[1:])
"""


class TestFullDisk:
    """An unwritable output gives an error, leaves no partial shard, and is finished by the next run."""

    def check(self, ground: Ground, source: Path, output: Path, home: Path, first: Sequence[str] = ()) -> None:
        words = [*first, *COMMAND, *ground.arguments(source, output, "--records", home / "records")]
        done = subprocess.run(
            words, env=environment(home), capture_output=True, text=True, timeout=HANG_SECONDS, check=False
        )
        assert done.returncode == 1, done.stderr
        (sentence,) = done.stderr.splitlines()
        assert sentence.startswith("corpusveil: ")
        assert "could not be" in sentence
        assert UNKNOWN not in done.stderr
        assert not data_files(output)
        assert not (output / "manifest.json").exists()

    def test_files_that_may_not_grow(self, ground: Ground, tmp_path: Path) -> None:
        source = write_shard(tmp_path / "in" / "x.jsonl", rows(1500, 1, words=30))
        # after an exec: a fork of this process, which may have gRPC's threads of other tests, can abort before one
        self.check(ground, source, tmp_path / "out", tmp_path, [sys.executable, "-c", LIMITED])
        succeeds(*ground.arguments(source, tmp_path / "out"), "--records", tmp_path / "records")
        assert len(data_files(tmp_path / "out")) == 1
