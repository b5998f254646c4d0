"""Tasks: the same from every format, the same split by equal seeds, and clear errors for faults."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusveil.errors import (
    BadRowError,
    BadTypeError,
    BadValueError,
    ColumnError,
    DataError,
    FormatError,
    ShapeError,
    UserError,
)
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts, read_task, split_rows

ROWS = [
    {"words": "good, film", "other": "b", "sentiment": 1, "part": "train"},
    {"words": 'a "bad" one', "other": "d", "sentiment": 0, "part": "validation"},
    {"words": "naïve", "other": "f", "sentiment": 1, "part": "test"},
]


def write(folder: Path, form: str) -> str:
    path = folder / f"reviews{form}"
    if form == ".parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    elif form == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        path.write_text(
            'words,other,sentiment,part\n"good, film",b,1,train\n"a ""bad"" one",d,0,validation\nnaïve,f,1,test\n'
        )
    return str(path)


@pytest.mark.parametrize("form", [".parquet", ".jsonl", ".csv"])
def test_every_form_gives_the_same_task(tmp_path: Path, form: str) -> None:
    """Labels are text whatever they were; a split may call development validation."""
    task = read_task(write(tmp_path, form), text="words", label="sentiment", second="other", split="part")
    assert task.texts == ("good, film", 'a "bad" one', "naïve")
    assert task.labels == ("1", "0", "1")
    assert task.pairs == ("b", "d", "f")
    assert task.split == ("train", "dev", "test")
    assert task.name == "reviews"
    assert task.classes == ("0", "1")
    train, test = task.train_and_test(7)
    assert (train.tolist(), test.tolist()) == ([0], [2])


def test_without_a_test_part_development_is_tested() -> None:
    task = LabelledTexts(["a", "b", "c"], ["x", "y", "x"], split=["train", "dev", "train"])
    assert [rows.tolist() for rows in task.train_and_test(0)] == [[0, 2], [1]]
    with pytest.raises(DataError):
        LabelledTexts(["a", "b"], ["x", "y"], split=["train", "train"]).train_and_test(0)


def test_a_split_by_seed_is_complete_and_pinned() -> None:
    """Another NumPy, or another order of parts, would test on what an earlier run trained on."""
    parts = split_rows(100, 3, (0.8, 0.1, 0.1))
    assert [part.size for part in parts] == [80, 10, 10]
    assert sorted(np.concatenate(parts)) == list(range(100))
    assert split_rows(12, 0, (0.75, 0.25))[-1].tolist() == [1, 8, 10]


def test_what_is_wrong_is_refused() -> None:
    two = {"texts": ["a", "b"], "labels": ["x", "y"]}
    wrong: list[tuple[dict[str, object], type[UserError]]] = [
        ({"texts": ["a"]}, ShapeError),
        ({"labels": ["x", None]}, BadRowError),
        ({"labels": ["x", " "]}, BadRowError),
        ({"labels": [0.5, 1.0]}, BadRowError),
        ({"texts": ["a", None]}, BadRowError),
        ({"pairs": ["c"]}, ShapeError),
        ({"split": ["train", "other"]}, BadRowError),
        ({"texts": "ab"}, BadTypeError),
    ]
    for arguments, error in wrong:
        with pytest.raises(error):
            LabelledTexts(**{**two, **arguments})  # type: ignore[arg-type]


def test_files_that_hold_no_task_are_refused(tmp_path: Path) -> None:
    for name, content in {"plain.txt": "a\n", "same.csv": "text,label\na,x\nb,x\n", "none.jsonl": ""}.items():
        (tmp_path / name).write_text(content)
    for path, error in {
        write(tmp_path, ".jsonl"): BadRowError,
        write(tmp_path, ".parquet"): ColumnError,
        str(tmp_path / "plain.txt"): FormatError,
        str(tmp_path / "same.csv"): DataError,
        str(tmp_path / "none.jsonl"): DataError,
    }.items():
        with pytest.raises(error):
            read_task(path, text="words" if "reviews" in path else "text")
    with pytest.raises(BadValueError):
        split_rows(10, 0, (0.5, 0.6))
    with pytest.raises(DataError):
        split_rows(3, 0)
