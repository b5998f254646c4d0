"""Hostile input: one sentence, the right status, nothing lost, no private text."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from corpusveil.cli.main import run
from tests.calls import fails, succeeds
from tests.engines.corpora import UNKNOWN, Ground, data_files, encode, release_files, rows
from tests.hostile import calls, inputs
from tests.hostile.inputs import Hostile


def test_the_tables_are_long_enough() -> None:
    """Some 200 hostile inputs and calls, no two of them alike."""
    words = [call.words for kind in calls.KINDS for call in kind()]
    assert len(inputs.ALL) + len(words) >= 200
    assert len({(one.file, one.data, one.more) for one in inputs.ALL}) == len(inputs.ALL)
    assert len(set(words)) == len(words)


@pytest.mark.parametrize("hostile", inputs.ALL, ids=lambda hostile: hostile.label)
@pytest.mark.parametrize("aside", [False, True], ids=["fail", "quarantine"])
def test_is_one_sentence(
    ground: Ground, tmp_path: Path, capsys: pytest.CaptureFixture[str], hostile: Hostile, aside: bool
) -> None:
    """The file is named, nothing private is said, no half shard appears, the input stays as it was.

    Setting rows aside mends rows only: whatever is wrong with the file or the call stays an error.
    """
    source = tmp_path / hostile.file
    source.write_bytes(hostile.data)
    more = ("--on-bad-rows", "quarantine") if aside else ()
    status = run(ground.arguments(source, tmp_path / "out", *hostile.more, *more))
    ended = capsys.readouterr()
    assert UNKNOWN not in ended.err + ended.out
    assert "Traceback" not in ended.err
    assert source.read_bytes() == hostile.data
    if aside and status == 0:  # the bad row is set aside
        assert ", row " not in ended.err
        assert " set aside in the private records" in ended.err
        for path in (tmp_path / "out").rglob("*"):
            assert path.is_dir() or UNKNOWN.encode() not in path.read_bytes()
        return
    assert status == 2
    (sentence,) = ended.err.splitlines()
    assert sentence.startswith("corpusveil: ")
    assert hostile.said in sentence
    if not hostile.more:
        assert str(source) in sentence
    assert not list((tmp_path / "out").rglob("*part*"))
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_what_was_finished_stays(ground: Ground, tmp_path: Path) -> None:
    """Sound shards beside a hostile one are kept; mended, the run ends as if nothing had been wrong."""
    folder, good = tmp_path / "in", gzip.compress(encode(rows(50, 1)))
    folder.mkdir()
    for number in (0, 2):
        (folder / f"{number}.json.gz").write_bytes(good)
    (folder / "1.json.gz").write_bytes(good[:-20])
    fails(ground.arguments(folder, tmp_path / "out"), "bad-shards", "1.json.gz")
    before = {path.name: path.stat().st_mtime_ns for path in data_files(tmp_path / "out")}
    assert len(before) == 2
    (folder / "1.json.gz").write_bytes(good)
    succeeds(*ground.arguments(folder, tmp_path / "out"))
    after = {path.name: path.stat().st_mtime_ns for path in data_files(tmp_path / "out")}
    assert {name: after[name] for name in before} == before
    succeeds(*ground.arguments(folder, tmp_path / "fresh"))
    assert release_files(tmp_path / "out") == release_files(tmp_path / "fresh")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=[pytest.mark.nightly] if kind == "words" and name != "x.jsonl" else [])
        for name in ("x.jsonl", "x.csv", "x.txt")
        for kind in ("words", "zeros", "open")
    ],
)
def test_a_line_of_40_megabytes(
    ground: Ground, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, kind: str
) -> None:
    """A huge line is a document like any other where it is one, and one sentence where it is not."""
    form = name[2:]
    before = {"jsonl": b'{"text": "', "csv": b"text\n", "txt": b""}[form]
    body = {"words": b"bababa dede " * 3_400_000, "zeros": bytes(40 << 20), "open": b'"' + b"a" * (40 << 20)}[kind]
    behind = b'"}\n' if form == "jsonl" and kind != "open" else b"\n"
    (tmp_path / name).write_bytes(before + body + behind)
    status = run(ground.arguments(tmp_path / name, tmp_path / "out"))
    err = capsys.readouterr().err
    sound = kind == "words" or form == "txt" or (form == "csv" and kind == "zeros")
    assert status == (0 if sound else 2)
    errors = [line for line in err.splitlines() if not line.startswith("warning: many words")]
    assert len(errors) == (0 if sound else 1)
    assert len(err) < 1000
    assert bool(data_files(tmp_path / "out")) == sound
