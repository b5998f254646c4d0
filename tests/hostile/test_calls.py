"""Hostile calls, one per line: the words of a command, its status and the expected sentence; refusing machines."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.cli.main import run
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
    release_files,
    rows,
    write_shard,
)

SPACE, KEY, INPUT = "{space}", "{key}", "{input}"
ORDINARY = {
    "--space": SPACE,
    "--output": "{output}",
    "--mechanism": "ring-geometric",
    "--epsilon": "1",
    "--key": KEY,
    "--progress": "none",
}


@dataclass(frozen=True)
class Call:
    """One command line, and what its sentence names, divided by ``*``; ``{name}`` stands for a place of the test's."""

    words: tuple[str, ...]
    said: str
    status: int = 2


def privatize(said: str, *more: str, source: str | tuple[str, ...] = INPUT, status: int = 2, **instead: str) -> Call:
    """Return an ordinary call with some options replaced."""
    options = ORDINARY | {f"--{name.replace('_', '-')}": value for name, value in instead.items()}
    sources = (source,) if isinstance(source, str) else source
    return Call(("privatize", *sources, *(word for pair in options.items() for word in pair), *more), said, status)


def budgets() -> Iterator[Call]:
    for epsilon in ("nan", "-1", "0", "inf", "-0.0", "1e400", "1e-400", "1e-200"):
        yield privatize("epsilon", epsilon=epsilon)
    for epsilon in ("nan", "0", "1e-200"):
        yield privatize("epsilon", "--per", "document", epsilon=epsilon)
    for epsilon in ("abc", "", "1,5", "0x1"):
        yield privatize("--epsilon", epsilon=epsilon)
    yield privatize("--per", "--per", "word")
    words = privatize("--epsilon").words
    at = words.index("--epsilon")
    yield Call((*words[:at], *words[at + 2 :]), "--epsilon")


def mechanisms() -> Iterator[Call]:
    yield privatize("mechanism", mechanism="ring")
    yield privatize("mechanism", mechanism="")
    for name, value in (("gamma", "-1"), ("gamma", "0"), ("gamma", "x"), ("gamma", "1.5"), ("gamma", "NaN"),
                        ("gama", "3"), ("space", "3")):  # fmt: skip
        yield privatize(name, "--parameter", f"{name}={value}", mechanism="diffractor-exponential")
    for word in ("gamma", "=3", ""):
        yield privatize("NAME=VALUE", "--parameter", word, mechanism="diffractor-exponential")
    yield privatize("[unsuitable-data]", space="{listless}")


def options() -> Iterator[Call]:
    for name in ("unknown-words", "numbers", "layout", "engine", "on-bad-rows", "progress"):
        yield privatize(f"--{name}", f"--{name}", "sometimes")
    for policy in ("numbers", "contacts"):
        yield privatize(policy, f"--{policy}", "privatize")
    for name, values in (("workers", ("0", "-3", "two")), ("rows-per-task", ("0", "-8192", "many")),
                         ("format", ("xml", ""))):  # fmt: skip
        for value in values:
            yield privatize(f"--{name}", f"--{name}", value)
    yield privatize("[unsuitable-data]", "--format", "txt", "--keep", "id")
    yield privatize("--workers two: give a whole number. [wrong-setting]", "--workers", "two")
    for count in ("1", "8191", "8193"):
        yield privatize("8192*[wrong-setting]", "--rows-per-task", count)
    yield privatize("--master*--engine*[wrong-setting]", "--master", "spark://x:7077")
    yield privatize("--engine*[wrong-setting]", "--", "--x=y")
    yield privatize("DaskRunner", "--engine", "beam", "--runner", "DaskRunner")
    yield privatize("--key*--test-key*[wrong-setting]", "--test-key")
    for more, said in (
        (("--tokenizer", "gst"), "--collocations"), (("--collocations", "{release}"), "takes no"),
        (("--tokenizer", "gst", "--collocations", "{corpus}"), "no collocations"),
    ):  # fmt: skip
        yield privatize(said, *more)
    yield privatize("--nonsense", "--nonsense")
    yield privatize("--epsilonn", "--epsilonn", "1")
    yield privatize("ring-geometric?", mechanism="ring-geometrc")
    yield privatize("did you mean token?", "--per", "tokn")
    yield privatize("'bar', 'lines', 'none'. [", progress="br")
    yield Call(("privatize",), "INPUT")
    yield Call(("privatize", INPUT), "--output")
    yield Call(("privatise", INPUT), "privatise")
    yield Call(("mechanisms", "nonsense"), "nonsense")
    yield Call(("key", "new", KEY), "[unusable-address]")
    yield Call(("key", "new", "{file}/x.key"), "{file}")
    yield Call(("space", "--vectors", "{missing}", "--output", "{output}"), "{missing}")
    yield Call(("space", "--output", "{output}"), "--vectors")
    yield Call(("space", "--vectors", INPUT, "--output", "{output}"), INPUT)
    for name, value, said in (("lists", "-1", "--lists"), ("lists", "4", "lists=4"),
                              ("order", "best", "--order"), ("counts", "{missing}", "{missing}")):  # fmt: skip
        yield Call(("space", "--vectors", "{vectors}", f"--{name}", value, "--output", "{output}"), said)
    yield Call(("space", "--vectors", "{vectors}", "--output", SPACE), SPACE)
    yield Call(("space", "--vectors", "{vectors}", "--output", "{file}"), "{file}")


def keys() -> Iterator[Call]:
    for name, said in (("empty", " 0"), ("short", "31"), ("hex", "64"), ("zeros", "passphrase")):
        yield privatize(f"{said}*[wrong-setting]", key=f"{{keys}}/{name}.key")
    yield privatize("{missing}", key="{missing}")
    yield privatize("{input}", key="{input}/..")
    yield privatize("{output}/release.key*[unusable-address]", key="{output}/release.key")
    yield privatize("{release}*[unusable-address]", output="{release}", key="{keys}/other.key")


def paths() -> Iterator[Call]:
    yield privatize("{missing}", source="{missing}")
    yield privatize("{missing}", source=(INPUT, "{missing}"))
    yield privatize("{missing}*[missing-file]", source="{missing}/*.jsonl")
    yield privatize("{empty}*[missing-file]", source="{empty}")
    yield privatize("{hidden}*[missing-file]", source="{hidden}")
    yield privatize("short.key*[unsuitable-data]", source="{keys}/short.key")
    yield privatize("x.jsonl*x.csv*[unsuitable-data]", source=(INPUT, "{table}"))
    yield privatize("nonsense", source="nonsense://bucket/x.jsonl")
    yield privatize("nonsense", output="nonsense://bucket/out")
    yield privatize("nonsense", space="nonsense://bucket/space")
    yield privatize("{missing}", space="{missing}")
    yield privatize("{file}", space="{file}")
    yield privatize("{empty}*[missing-file]", space="{empty}")
    for part in PARTS:
        for damage in ("missing", "cut", *(["changed"] if part != "_artifact.json" else [])):
            yield privatize(f"{{damaged}}/{part}-{damage}", space=f"{{damaged}}/{part}-{damage}")
    yield privatize("version", space="{damaged}/version")
    yield privatize("{damaged}/kind", space="{damaged}/kind")
    yield privatize("the ledger*[unusable-address]", "--ledger", "{output}/L")
    yield privatize("the file of terms*[unusable-address]", "--spans", "{output}/terms.txt")
    yield privatize("{file}", output="{file}")
    yield privatize("{file}", output="{file}/out")
    yield privatize("{file}", records="{file}")
    yield privatize("{foreign}*[unusable-address]", output="{foreign}")
    yield privatize("{release}*[unusable-address]", output="{release}", epsilon="2")
    yield privatize("{release}*[unusable-address]", "--format", "csv", output="{release}")
    yield privatize("{release}.records*[unusable-address]", records="{release}.records")


def ledgers() -> Iterator[Call]:
    def counted(said: str, *more: str, ledger: str = "{output}.ledger") -> Call:
        return privatize(said, "--ledger", ledger, *more)

    yield privatize("--ledger", "--unit", "id")
    yield counted("--unit", "--cap", "1")
    yield counted("--cap", "--cap", "0", "--unit", "id")
    for unit in ("", "=", "=id", "id=", "content=id"):
        yield counted("unit", "--unit", unit)
    yield counted("unit", "--unit", "id", "--unit", "id=secret")
    yield counted("content", "--unit", "text")
    yield counted("nowhere", "--unit", "nowhere")
    yield counted("[cap-exceeded]", "--unit", "content", "--cap", "0.1")
    yield counted("memory://ledger", ledger="memory://ledger")
    yield counted("{release}", ledger="{release}")
    yield counted("{file}", ledger="{file}")
    yield Call(("ledger", "show", "{missing}"), "{missing}")
    yield Call(("ledger", "verify", "{empty}"), "{empty}")


KINDS = (budgets, mechanisms, options, keys, paths, ledgers)
PARTS = ("vectors.npy", "lists.npy", "vocabulary.parquet", "_artifact.json")


def damage_spaces(space: Path, folder: Path) -> None:
    """Copy a space, each time with one part of it missing, cut or changed; of another version; of another kind."""
    for name in PARTS:
        whole = (space / name).read_bytes()
        changed = bytearray(whole)
        changed[len(whole) * 3 // 4] ^= 1
        for damage, data in (("missing", None), ("cut", whole[: len(whole) // 2]), ("changed", bytes(changed))):
            copy = shutil.copytree(space, folder / f"{name}-{damage}")
            (copy / name).unlink() if data is None else (copy / name).write_bytes(data)
    for field, value in (("version", 99), ("kind", "counts")):
        description = shutil.copytree(space, folder / field) / "_artifact.json"
        description.write_text(json.dumps(json.loads(description.read_text()) | {field: value}))


@pytest.fixture(scope="module")
def places(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Make every place that a call names, each as hostile as its name."""
    folder = tmp_path_factory.mktemp("places")
    for name in ("empty", "hidden/.x", "keys", "foreign/data", "corpus"):
        (folder / name).mkdir(parents=True)
    (folder / "hidden" / ".x" / "x.jsonl").write_text("{}")
    (folder / "foreign" / "data" / "part-00000-of-00001.jsonl").write_text("{}")
    (folder / "file").write_text(UNKNOWN)
    (folder / "vectors.txt").write_text("a 1 2\nb 3 4\nc 5 6\n")
    for name, secret in (
        ("empty", b""), ("short", TEST_KEY[:31]), ("hex", TEST_KEY.hex().encode()), ("zeros", bytes(32)),
        ("other", bytes(range(150, 182))),
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


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that is the test's own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "300")


@pytest.mark.parametrize("kind", KINDS)
def test_is_one_sentence(places: dict[str, Path], tmp_path: Path, kind: Callable[[], Iterator[Call]]) -> None:
    """What is wrong is named; nothing that was there before is changed, and nothing half-done is there afterwards."""
    before = release_files(places["input"].parent)
    for number, call in enumerate(kind()):
        there = {name: str(path) for name, path in places.items()} | {"output": f"{tmp_path}/{number}/private"}
        ended = command(*(word.format(**there) for word in call.words))
        assert ended.status == call.status, (call, ended)
        lines = [line for line in ended.err.splitlines() if not line.startswith(("reading ", "ordering "))]
        assert all(name in " ".join(lines) for name in call.said.format(**there).split("*")), (call, lines)
        assert "Traceback" not in ended.err, call
        assert UNKNOWN not in ended.err, call
        assert not ended.out, "an announcement would bury the error"
        if not any(line.startswith("Usage:") for line in lines):
            assert len(lines) == 1, (call, lines)
            assert lines[0].startswith("corpusveil: "), call
        assert release_files(places["input"].parent) == before, call
        assert not [*tmp_path.rglob("part-*"), *tmp_path.rglob("manifest.json")], call


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
        cv.Key(TEST_KEY).save(key)
        ground.space.save(str(space))
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


def test_a_full_disk_leaves_no_partial_shard_and_the_next_run_finishes(ground: Ground, tmp_path: Path) -> None:
    """A limit for files stands for it: after an exec, as a fork that has gRPC's threads of other tests can abort."""
    source, output = write_shard(tmp_path / "in" / "x.jsonl", rows(1500, 1, words=30)), tmp_path / "out"
    words = ground.arguments(source, output, "--records", tmp_path / "records")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *COMMAND, *words], env=environment(tmp_path), capture_output=True, text=True,
        timeout=HANG_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("corpusveil: ")
    assert re.search(r"/out\S*: could not be written .*\[work-failed\]", sentence), sentence
    assert UNKNOWN not in done.stderr
    assert not data_files(output)
    assert not [*output.rglob("manifest.json"), *output.rglob(".*.part")]
    succeeds(*words)
    assert len(data_files(output)) == 1
