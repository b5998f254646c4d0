"""``corpusveil space``: the list configurations of the 1-Diffractor study, and lists over chosen words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.cli.main import run
from tests.calls import QUIET, fails, succeeds
from tests.engines.corpora import WORDS, data_files, manifest, rows, write_shard


def vectors(folder: Path, number: int, words: list[str]) -> str:
    """Write an embedding as GloVe text; return its path."""
    random = np.random.default_rng(number).standard_normal((len(words), 6))
    path = folder / f"E{number}.txt"
    path.write_text(
        "".join(f"{word} {' '.join(f'{x:.5f}' for x in row)}\n" for word, row in zip(words, random, strict=True))
    )
    return str(path)


@pytest.fixture
def five(tmp_path: Path) -> list[str]:
    """Five embeddings, none of which has quite the words of another."""
    return [vectors(tmp_path, n, WORDS[3 * n : 100 + 2 * n]) for n in range(5)]


def space(files: list[str], output: Path, *more: str) -> cv.Space:
    named = [word for file in files for word in ("--vectors", file)]
    assert run(["space", *named, "--output", str(output), "--progress", "none", *more]) == 0
    return cv.load_space(str(output))


@pytest.mark.parametrize(
    ("configuration", "used", "lists", "union", "order"),
    [("L0", 5, 1, False, "greedy"), ("L1", 5, 2, True, "improved"), ("L2", 1, 1, False, "improved")],
)
def test_configurations_of_the_study(
    five: list[str], tmp_path: Path, configuration: str, used: int, lists: int, union: bool, order: str
) -> None:
    """L0 is a list of each of five embeddings, L1 two of each, L2 one of the first; each privatizes and says so."""
    total = used * lists
    more = ["--lists", str(lists), "--order", order, *(["--union"] if union else [])]
    made = space(five[:used], tmp_path / "space", *more)
    everywhere = set(WORDS[12:100]) if used == 5 else set(WORDS[:100])
    anywhere = set(WORDS[:108]) if used == 5 else everywhere
    assert set(made.vocabulary.words) == (anywhere if union else everywhere)
    assert len(made.lists) == total
    assert len({tuple(order) for order in made.lists.tolist()}) == total
    assert [one["source"] for one in made.info["made"]["lists"]] == [
        f"E{n}.txt" for n in range(used) for _ in range(lists)
    ]
    source = write_shard(tmp_path / "x.jsonl", rows(30, 1))
    arguments = ["privatize", str(source), "--space", str(tmp_path / "space"), "--mechanism", "ring-geometric"]
    arguments += ["--epsilon", "1", "--test-key", "--output", str(tmp_path / "out"), "--progress", "none"]
    succeeds(*arguments)
    said = " ".join(manifest(tmp_path / "out")["guarantee_in_words"])
    assert (f"the largest over {total} lists" in said) == (total > 1)
    assert len(data_files(tmp_path / "out")) == 1


@pytest.mark.parametrize("how", ["bar", "lines", "none"])
def test_a_name_may_hold_any_character(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Braces and brackets in a file's name are shown as they are, in every manner; none shows nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("corpusveil.waiting.PATIENCE", 0.0)
    monkeypatch.setattr("corpusveil.waiting._TICK", 0.001)
    monkeypatch.setattr("corpusveil.waiting.LINE_SECONDS", 0.001)
    Path(vectors(tmp_path, 0, WORDS[:400])).rename("{E}[bold].txt")
    said = succeeds("space", "--vectors", "{E}[bold].txt", "--output", "space", "--progress", how).err
    assert ("reading {E}[bold].txt" in said) == (how != "none")
    assert ("ordering 400 words" in said) == (how != "none")


class TestVocabulary:
    def test_keeps_none_but_its_words(
        self, five: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """In the order of the embedding; words without a vector are counted and said."""
        words = [*WORDS[50:70][::-1], "nowhere", "norhere"]
        (tmp_path / "words.txt").write_text("\n".join(words) + "\n\n")
        made = space(five[:2], tmp_path / "space", "--vocabulary", str(tmp_path / "words.txt"))
        assert list(made.vocabulary.words) == WORDS[50:70]
        assert "2 of its 22 words" in capsys.readouterr().err

    def test_that_is_wrong_is_one_sentence(self, five: list[str], tmp_path: Path) -> None:
        file = tmp_path / "words.txt"
        arguments = ["space", "--vectors", five[0], "--output", tmp_path / "space", *QUIET, "--vocabulary", file]
        for content, code, named in (
            (b"", "wrong-format", file), (b"\n \n", "wrong-format", file), (b"a\nb\na\n", "bad-row", "line 3"),
            (b"a\nnew york\n", "bad-row", "line 2"), (b"\xff\xfe", "damaged-file", "UTF-8"),
            (b"nowhere\nnorhere\n", "unsuitable-data", "0 of"),
        ):  # fmt: skip
            file.write_bytes(content)
            fails(arguments, code, named)
            assert not (tmp_path / "space").exists(), content
