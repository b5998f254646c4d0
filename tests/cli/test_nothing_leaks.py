"""Words planted in the input are nowhere in what a run writes or says, whether it succeeds or fails."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from corpusveil.cli.main import run as run_here
from corpusveil.kernel.kernel import Kernel
from corpusveil.storage.documents import Documents
from tests.engines.corpora import CANARIES, COLUMN_CANARY, NAME_CANARY, Ground, records_text, run, text_of, write_shard

OTHERS = ["canaryfield", "canary-mail", "canary-host", "pathcanary", "secretcanary", "canaryhandle"]
IN_TEXT = [*CANARIES.values(), *OTHERS]
PLANTED = [*IN_TEXT, COLUMN_CANARY]


def found(planted: list[str], text: str) -> list[str]:
    """Return which of the planted words stand in a text, in any case."""
    return [word for word in planted if word.lower() in text.lower()]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A corpus with canaries in its texts, in a column that is not named, and in the names of its files."""
    rng = random.Random(0)
    documents = [
        {"text": f"{text_of(rng, 5)} {word} {text_of(rng, 5)}, ({word.upper()}) {word}", "note": COLUMN_CANARY}
        for word in CANARIES.values()
    ]
    folder = tmp_path / "in"
    for number in range(2):
        write_shard(folder / f"{NAME_CANARY}-{number}.json.gz", documents * 3)
    return folder


def in_release(output: Path) -> str:
    """Return all that a release folder holds, uncompressed, with the names of its files."""
    told = []
    for path in output.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            told.append(path.name + (gzip.decompress(data) if path.name.endswith(".gz") else data).decode())
    return "".join(told)


@pytest.mark.parametrize("engine", [
    "local", pytest.param("beam", marks=pytest.mark.nightly),
    pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.nightly]),
])  # fmt: skip
def test_when_the_run_succeeds(ground: Ground, source: Path, tmp_path: Path, engine: str) -> None:
    """Neither the release nor what the command says has a word of the input, a column or a file's name."""
    output = tmp_path / "out"
    done = run(*ground.arguments(source, output, "--engine", engine, "--progress", "lines"), home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(in_release(output)) > 1000
    assert found([*PLANTED, NAME_CANARY], in_release(output)) == []
    assert found([*PLANTED, NAME_CANARY], done.stdout + done.stderr) == []
    assert found(PLANTED, records_text(output)) == []


BAD = ['{"text": "%s"', '{"%s": 1}', '{"text": ["%s"]}', '["%s"]']


def spoil(source: Path, bad: str) -> Path:
    """Add a shard whose only row is bad and full of canaries."""
    shard = source / "z.json.gz"
    shard.write_bytes(gzip.compress((bad % " ".join(IN_TEXT)).encode() + b"\n"))
    return shard


@pytest.mark.parametrize("bad", BAD)
def test_whatever_is_bad_about_it(
    ground: Ground, source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], bad: str
) -> None:
    """A row that cannot be read is named by its place, and quoted nowhere."""
    shard = spoil(source, bad)
    assert run_here(ground.arguments(source, tmp_path / "out")) == 2
    ended = capfd.readouterr()
    assert ended.err.splitlines()[-1].startswith((f"corpusveil: {shard}, row 1: ", f"corpusveil: {shard}: this file"))
    assert found(PLANTED, ended.out + ended.err + records_text(tmp_path / "out")) == []


def fail(_: Kernel, documents: Documents) -> None:
    raise ValueError(documents.texts[0].as_py())


@pytest.mark.parametrize(("engine", "debug"), [("local", False), ("local", True), ("beam", False)])
def test_when_the_code_fails_with_text_in_the_error(
    ground: Ground, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str], engine: str, debug: bool,
) -> None:  # fmt: skip
    """Unless debug is asked for."""
    monkeypatch.setattr(Kernel, "apply", fail)
    words = ground.arguments(source, tmp_path / "out", "--engine", engine)
    assert run_here([*(["--debug"] if debug else []), *words]) == 1
    ended = capfd.readouterr()
    assert "ValueError" in ended.err
    assert bool(found(PLANTED, ended.out + ended.err)) is debug


def test_what_is_kept_on_purpose_is_found(ground: Ground, source: Path, tmp_path: Path) -> None:
    """The search can find words: with other policies they are in the release."""
    more = ("--unknown-words", "keep", "--contacts", "keep", "--numbers", "keep", "--other", "keep")
    assert run_here(ground.arguments(source, tmp_path / "out", *more, "--keep", "note")) == 0
    assert found(PLANTED, in_release(tmp_path / "out")) == PLANTED
