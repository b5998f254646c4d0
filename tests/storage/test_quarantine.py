"""``--on-bad-rows quarantine``: what can't be read is set aside in private and counted; the rest is released."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusveil.display import several
from corpusveil.storage.records import WARNING
from corpusveil.storage.rows import BLOCK_ROWS
from tests.calls import fails, succeeds
from tests.engines.corpora import UNKNOWN, Ground, data_files, manifest, read_shard, release_files

SECRET = UNKNOWN.encode()
SOUND = b'{"text": "bababa dedede", "id": 1}\n'
BAD = {
    "x.jsonl": (SOUND + SECRET + b"\n" + SOUND + b'{"text": 1, "n": "' + SECRET + b'"}\n', [2, 4]),
    "x.csv": (b"text,n\nbababa,1\nkikiki," + SECRET + b",2\ndedede,2\n\xff" + SECRET + b",3\n", [2, 4]),
    "x.txt": (b"bababa\n\xff" + SECRET + b"\n\ndedede\n", [2]),
}
QUARANTINE = ("--on-bad-rows", "quarantine")


def set_aside(output: Path, name: str = "part-00000-of-00001.jsonl") -> list[dict[str, Any]]:
    """Return what was set aside, after a look at its first line."""
    path = output.with_name(output.name + ".records") / "quarantine" / name
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first, *lines = path.read_text().splitlines()
    assert json.loads(first) == {"_": WARNING}
    return [json.loads(line) for line in lines]


def counted(output: Path) -> Any:
    """Return the total that the private records give."""
    return json.loads((output.with_name(output.name + ".records") / "totals.json").read_text())["quarantined"]


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_are_set_aside_and_counted(ground: Ground, tmp_path: Path, name: str) -> None:
    """Each bad row stands in the records with number, reason and content; nothing of it is anywhere else."""
    data, numbers = BAD[name]
    (tmp_path / name).write_bytes(data)
    fails(ground.arguments(tmp_path / name, tmp_path / "out"), "bad-shards", f"{name}, row {numbers[0]}: ")
    ended = succeeds(*ground.arguments(tmp_path / name, tmp_path / "out", *QUARANTINE))
    assert f"{several(len(numbers), 'row')} could not be read" in ended.err
    assert UNKNOWN not in ended.out + ended.err
    rows = set_aside(tmp_path / "out")
    assert [row["row"] for row in rows] == numbers
    assert all(UNKNOWN in row["content"] and row["why"] for row in rows)
    assert counted(tmp_path / "out") == len(numbers)
    assert "quarantined" not in json.dumps(manifest(tmp_path / "out"))
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or SECRET not in path.read_bytes()


def test_bad_rows_of_parquet(ground: Ground, tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are bad rows there; ids may not be null, and a text may."""
    text = pa.StringArray.from_buffers(3, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0"), pa.py_buffer(b"a\xffb"))
    table = pa.table({"text": pa.chunked_array([text, pa.array([None, "kikiki"])]), "id": [1, 2, None, 4, 5]})
    pq.write_table(table, tmp_path / "x.parquet")
    arguments = ground.arguments(tmp_path / "x.parquet", tmp_path / "out", "--id", "id", *QUARANTINE)
    succeeds(*arguments)
    assert [row["row"] for row in set_aside(tmp_path / "out")] == [2, 3]
    assert manifest(tmp_path / "out")["documents"] == 2


def test_sound_rows_keep_their_numbers(ground: Ground, tmp_path: Path) -> None:
    """A bad row does not change other rows' noise: the place in the file identifies a row."""
    sound = [SOUND] * 9
    for name, lines in (("a", sound), ("b", [*sound[:4], b"{\n", *sound[5:]])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "y.jsonl").write_bytes(b"".join(lines))
        source = tmp_path / name / "y.jsonl"
        succeeds(*ground.arguments(source, tmp_path / f"{name}-out", "--corpus", "c", *QUARANTINE))
    whole, part = (read_shard(data_files(tmp_path / f"{name}-out")[0]) for name in ("a", "b"))
    assert part == whole[:4] + whole[5:]


def test_splitting_changes_nothing(ground: Ground, tmp_path: Path) -> None:
    """The same release and the same rows set aside, however a shard is split, also round a block that is all bad."""
    lines = [SOUND] * (2 * BLOCK_ROWS + 9)
    for number in (0, BLOCK_ROWS - 1, *range(BLOCK_ROWS, 2 * BLOCK_ROWS), 2 * BLOCK_ROWS + 3):
        lines[number] = b"{\n"
    (tmp_path / "x.jsonl").write_bytes(b"".join(lines))
    for name, more in (("whole", ()), ("split", ("--rows-per-task", BLOCK_ROWS))):
        succeeds(*ground.arguments(tmp_path / "x.jsonl", tmp_path / name, *QUARANTINE, *more))
    assert release_files(tmp_path / "whole") == release_files(tmp_path / "split")
    assert set_aside(tmp_path / "whole") == set_aside(tmp_path / "split")
    assert counted(tmp_path / "split") == BLOCK_ROWS + 3
    assert [path.name for path in (tmp_path / "split.records" / "quarantine").iterdir()] == [
        "part-00000-of-00001.jsonl"
    ]


def test_not_one_sound_row_is_a_wrong_call(ground: Ground, tmp_path: Path) -> None:
    """A wrong column name does not end as a release of nothing; in ranges of rows neither."""
    (tmp_path / "x.jsonl").write_bytes(SOUND * (BLOCK_ROWS + 1))
    for more in ((), ("--rows-per-task", BLOCK_ROWS)):
        words = ground.arguments(tmp_path / "x.jsonl", tmp_path / "out", *QUARANTINE, "--text", "txt", *more)
        fails(words, "bad-shards", "no row can be read")
        assert not list((tmp_path / "out").rglob("part-*"))
        assert not list((tmp_path / "out.records" / "quarantine").rglob("part-?????-of-?????.jsonl"))


def test_a_mended_input_leaves_nothing_aside(ground: Ground, tmp_path: Path) -> None:
    """Rows set aside from an earlier content of a shard are gone when the shard is sound."""
    for number in range(2):
        (tmp_path / f"{number}.jsonl").write_bytes(SOUND + b"{\n")
    (tmp_path / "2.jsonl").write_bytes(b"\x1f\x8b")
    arguments = ground.arguments(f"{tmp_path}/*.jsonl", tmp_path / "out", *QUARANTINE)
    fails(arguments, "bad-shards")
    assert len(set_aside(tmp_path / "out", "part-00001-of-00003.jsonl")) == 1
    for number in range(1, 3):
        (tmp_path / f"{number}.jsonl").write_bytes(SOUND)
    succeeds(*arguments)
    assert not (tmp_path / "out.records" / "quarantine" / "part-00001-of-00003.jsonl").exists()
    assert counted(tmp_path / "out") == 1
    without = [word for word in arguments if word not in QUARANTINE]
    fails(
        without, "output-in-use", "on_bad_rows"
    )  # a release with rows set aside is not continued as if there were none
