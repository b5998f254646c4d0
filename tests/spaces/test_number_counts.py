"""Public numbers: those that count keeps, those in a space, and the errors if they are missing or damaged."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusveil as cv
from corpusveil.cli.main import run
from corpusveil.collocations import count, counting_stages
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.collocations.word_counter import WordCounter
from corpusveil.errors import ArtefactError, ChangedError
from corpusveil.jobs.local import Local
from corpusveil.spaces.number_counts import NUMBERS, Numbers, read_numbers, write_numbers
from corpusveil.spaces.vectors import Vectors
from corpusveil.text.number_shapes import shape_of, units
from corpusveil.text.policy import NUMBER_SHAPES
from corpusveil.text.tokens import Tokenizer
from tests.calls import refused, succeeds

ROWS = [("0000", "1999", 7), ("0000", "2024", 3), ("0000", "", 4), ("00:00", "12:30", 2), ("00:00", "", 0)]
TEXTS = [
    "In 1999, 1999 and 2024 at 12:30 or 12:30, on 2024-05-17 and 2024-05-17: 4chan 4chan 17 \u0661\u0662 x",
    "1km 2km 3km 4km 5km 1km 2km 3km 4km 5km 7chan 7chan 1999 2,5 2,5 2,5 2001 word word",
]


def rows_of(numbers: Numbers) -> list[tuple[str, str, int]]:
    sizes = np.diff(numbers.firsts)
    shapes = np.repeat(np.array(numbers.shapes, object), sizes).tolist()
    kept = list(zip(shapes, numbers.numbers, numbers.counts.tolist(), strict=True))
    return sorted([*kept, *((s, "", c) for s, c in zip(numbers.shapes, numbers.others.tolist(), strict=True))])


def counted(folder: Path, texts: list[str] = TEXTS, name: str = "counts", **more: Any) -> Path:
    (folder / f"{name}.txt").write_text("\n".join(texts))
    count_corpus([str(folder / f"{name}.txt")], str(folder / name), Local(), CountOptions(2, 1), **more)
    return folder / name


def space_with(numbers: Numbers | None) -> cv.Space:
    return cv.build_space(Vectors(["aa", "bb", "cc"], np.eye(3, dtype=np.float32)), numbers=numbers)


@pytest.mark.parametrize(
    ("number", "shape"),
    [
        ("1,234.50", "0,000.00"), ("2024-05-17", "0000-00-00"), ("12:30", "00:00"), ("3rd", "0rd"), ("10KM", "00km"),
        ("\u0663\u0664", "00"), ("\u00bd", "0"), ("\u2167", "0"), ("7\u00e9", "0A"), ("1\ufe0f\u20e3", "0"),
        ("5\u03a3", "0A"), ("9/11", "0/00"),
    ],
)  # fmt: skip
def test_shapes(number: str, shape: str) -> None:
    assert shape_of(number) == shape


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("12:30", ["12:30"]), ("2024-05-17.", ["2024-05-17"]), ("1 2", ["1", "2"]), ("1- 2", ["1", "2"]),
        ("1--2", ["1", "2"]), ("1\u20132", ["1", "2"]), ("9/11/x-5", ["9/11", "5"]), ("1:2 3:4", ["1:2", "3:4"]),
        ("x12-13", ["13"]), ("May 17, 2024", ["17", "2024"]), ("1-a-2", ["1", "2"]), ("", []),
    ],
)  # fmt: skip
def test_numbers_that_touch_a_mark_between_them_are_one(text: str, joined: list[str]) -> None:
    tokens = Tokenizer.of_words([]).tokenize([text, text])
    firsts, lasts = units(tokens, join=True)
    found = [
        tokens.data[tokens.starts[a] : tokens.ends[b]].tobytes().decode() for a, b in zip(firsts, lasts, strict=True)
    ]
    assert found == joined * 2
    alone, same = units(tokens, join=False)
    assert (alone == same).all()
    assert len(alone) == int((tokens.classes == 1).sum())


class TestCount:
    def test_keeps_numbers_with_their_counts_and_how_often_others_of_the_shape_occur(self, tmp_path: Path) -> None:
        found = read_numbers(str(counted(tmp_path)))
        assert found is not None
        kilometres = [("0km", f"{n}km", 2) for n in range(1, 6)]
        assert rows_of(found) == sorted(
            [
                ("0,0", "", 0), ("0,0", "2,5", 3), ("0000", "", 2), ("0000", "1999", 3), ("0000-00-00", "", 0),
                ("0000-00-00", "2024-05-17", 2), ("00:00", "", 0), ("00:00", "12:30", 2), ("0km", "", 0), *kilometres,
            ]
        )  # fmt: skip

    def test_letters_that_few_numbers_have_do_not_stay(self, tmp_path: Path) -> None:
        """*4chan* and *7chan*, although they occur often; with five such numbers they would stay."""
        found = read_numbers(str(counted(tmp_path)))
        assert found is not None
        assert not any("chan" in shape for shape in found.shapes)
        more = read_numbers(str(counted(tmp_path, [*TEXTS, "1chan 2chan 3chan " * 2], "more")))
        assert more is not None
        assert "0chan" in more.shapes

    def test_spilling_and_parts_change_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        texts = [f"word {n % 37} {n % 11}:{n % 7} {n}km" for n in range(900)]
        before = read_numbers(str(counted(tmp_path, texts, "a")))
        monkeypatch.setattr(counting_stages, "WordCounter", lambda: WordCounter(20))
        monkeypatch.setattr(count, "PART_BYTES", 500)
        monkeypatch.setattr(count, "MOST", 10_000)
        assert read_numbers(str(counted(tmp_path, texts, "b"))) == before

    def test_only_the_most_frequent_are_kept(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(count, "MOST", 2)
        found = read_numbers(str(counted(tmp_path, ["word 10 10 10 11 11 12 12 12 12 13 13 7 7"])))
        assert found is not None
        assert rows_of(found) == [("00", "", 4), ("00", "10", 3), ("00", "12", 4)]

    def test_adds_up_to_a_count_of_everything(self, tmp_path: Path) -> None:
        first = counted(tmp_path, TEXTS[:1], "first")
        both = counted(tmp_path, TEXTS[1:], "both", add_to=str(first))
        assert read_numbers(str(both)) == read_numbers(str(counted(tmp_path, TEXTS, "whole")))

    def test_counts_of_before_numbers_can_be_added_to_and_then_have_none(self, tmp_path: Path) -> None:
        old = counted(tmp_path, TEXTS[:1], "old")
        (old / NUMBERS).unlink()
        assert read_numbers(str(counted(tmp_path, TEXTS[1:], "both", add_to=str(old)))) is None


class TestSpace:
    def test_without_them_a_release_says_to_count_again(self) -> None:
        mechanism = cv.mechanism("ring-geometric", space_with(None))
        with refused("missing-artefact"):
            cv.Release(mechanism, cv.Budget(1.0), cv.TextPolicy(numbers="surrogate"), key=cv.Key.generate())
        cv.Release(mechanism, cv.Budget(1.0), key=cv.Key.generate())

    def test_other_numbers_than_those_of_the_release_are_refused(self, tmp_path: Path) -> None:
        spaces = [space_with(Numbers.of(rows)).save(tmp_path / str(n)) for n, rows in enumerate((ROWS, ROWS[:3]))]
        releases = [
            cv.Release(
                cv.mechanism("ring-geometric", space), cv.Budget(1.0), cv.TextPolicy(numbers="surrogate"),
                key=cv.Key(bytes(range(32))),
            )
            for space in spaces
        ]  # fmt: skip
        assert releases[0].digest != releases[1].digest
        kernel = releases[0].kernel()
        object.__setattr__(kernel, "mechanism", releases[1].mechanism)
        with pytest.raises(ChangedError):
            kernel.privatize(pa.array(["1"], pa.large_string()), [b""], "text")

    def test_from_text_to_a_release_by_commands(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The announcement says what is disclosed; a space of counts of before says what to do, and nothing is made."""
        counts = counted(tmp_path)
        (tmp_path / "v.txt").write_text("word 1 0\nin 0 1\nat 1 1\n")
        (tmp_path / "private.txt").write_text("In 1853, at 08:15, 4chan 17 9km\n")
        space = ["space", "--vectors", str(tmp_path / "v.txt"), "--counts", str(counts), "--output"]
        release = ["privatize", str(tmp_path / "private.txt"), "--test-key", "--mechanism", "ring-geometric"]
        release += ["--epsilon", "1", "--numbers", "surrogate", "--progress", "none"]
        assert run([*space, str(tmp_path / "new")]) == 0
        assert NUMBER_SHAPES in succeeds(*release, "--space", tmp_path / "new", "--output", tmp_path / "out").out
        (text,) = (file.read_text() for file in (tmp_path / "out" / "data").iterdir())
        form = r"\w+ [0-9]{4}, \w+ [0-9]{2}:[0-9]{2}, [0-9][a-z]{4} [0-9]{2} [0-9]km\n"
        assert re.fullmatch(form, text)
        assert "1853" not in text
        (counts / NUMBERS).unlink()
        assert run([*space, str(tmp_path / "old")]) == 0
        assert run([*release, "--space", str(tmp_path / "old"), "--output", str(tmp_path / "other")]) == 2
        assert "count public text again" in capsys.readouterr().err
        assert not (tmp_path / "other").exists()

    @pytest.mark.parametrize("saved", [False, True])
    def test_goes_to_other_processes_with_them(self, tmp_path: Path, saved: bool) -> None:
        space = space_with(Numbers.of(ROWS))
        space = space.save(tmp_path / "space") if saved else space
        assert pickle.loads(pickle.dumps(space)).numbers == Numbers.of(ROWS)


class TestReading:
    @pytest.mark.parametrize("rows", [ROWS, []])
    def test_what_is_written_is_read(self, tmp_path: Path, rows: Any) -> None:
        write_numbers(Numbers.of(rows), str(tmp_path / NUMBERS))
        found = read_numbers(str(tmp_path))
        assert found == Numbers.of(rows)
        assert found is not None
        assert rows_of(found) == sorted(rows)

    @pytest.mark.parametrize(
        "rows",
        [
            [("00", "12", 0)], [("00", "12", -3)], [("00", "123", 3)], [("00", "1a", 3)], [("0A", "1A", 3)],
            [("rm 0", "rm 1", 3)], [("00", "12", 3), ("00", "12", 4)], [("", "", 3)],
            [("00", "12", 1 << 62), ("00", "13", 1)], [("00", None, 4)],
        ],
    )  # fmt: skip
    def test_unsound_rows_are_refused(self, tmp_path: Path, rows: Any) -> None:
        columns = dict(zip(("shape", "number", "count"), map(list, zip(*rows, strict=True)), strict=True))
        pq.write_table(pa.table(columns), tmp_path / NUMBERS)
        with pytest.raises(ArtefactError, match=NUMBERS):
            read_numbers(str(tmp_path))
