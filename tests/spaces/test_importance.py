"""Importance through the metric: vectors are scaled by public factors, and the guarantee holds where they then are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.spaces.vectors import Vectors, read_importance, scaled
from tests.calls import fails, refused, succeeds

WORDS = ["alder", "birch", "cedar", "elder"]
VECTORS = np.array([[1, 0], [0, 1], [1, 1], [-1, 0.5]], dtype=np.float32)


def save(folder: Path, text: str) -> str:
    (folder / "importance.tsv").write_text(text)
    return str(folder / "importance.tsv")


def test_scales_the_words_it_names(tmp_path: Path) -> None:
    factors = read_importance(save(tmp_path, "birch\t2\n\n elder \t 0.5\nunknown\t3\n"))
    found = scaled(Vectors(WORDS, VECTORS), factors)
    assert found.vectors.tolist() == [[1, 0], [0, 2], [1, 1], [-0.5, 0.25]]


@pytest.mark.parametrize(
    ("text", "line"),
    [("a 2\n", 1), ("a\t2\nb\tx\n", 2), ("a\t0\n", 1), ("a\tnan\n", 1), ("a\t-1\n", 1), ("a\t1\na\t2\n", 2),
     ("a\t1e9\n", 1), ("\t2\n", 1)],
)  # fmt: skip
def test_what_is_wrong_is_named_by_line(tmp_path: Path, text: str, line: int) -> None:
    with refused("bad-row", f"importance.tsv, line {line}"):
        read_importance(save(tmp_path, text))


def test_the_command(tmp_path: Path) -> None:
    """It makes another space; a file that names no word of it is an error."""
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(WORDS, VECTORS.tolist(), strict=True)]
    (tmp_path / "v.txt").write_text("\n".join(lines) + "\n")
    base = ["space", "--vectors", str(tmp_path / "v.txt"), "--progress", "none"]
    succeeds(*base, "--importance", save(tmp_path, "cedar\t3\n"), "--output", tmp_path / "a")
    found = cv.load_space(str(tmp_path / "a"))
    assert found.vectors[found.vocabulary.id("cedar")].tolist() == [3, 3]
    fails([*base, "--importance", save(tmp_path, "oak\t3\n"), "--output", tmp_path / "b"], "unsuitable-data")
    assert not (tmp_path / "b").exists()
