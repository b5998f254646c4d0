"""``corpusveil space``: lists over chosen words, and files of any name."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import corpusveil as cv
from tests.calls import QUIET, fails, refused, succeeds
from tests.engines.corpora import WORDS


def vectors(folder: Path, number: int, words: list[str]) -> str:
    """Write an embedding as GloVe text; return its path."""
    random = np.random.default_rng(number).standard_normal((len(words), 6))
    path = folder / f"E{number}.txt"
    path.write_text(
        "".join(f"{word} {' '.join(f'{x:.5f}' for x in row)}\n" for word, row in zip(words, random, strict=True))
    )
    return str(path)


class TestVocabulary:
    def test_keeps_none_but_its_words(self, tmp_path: Path) -> None:
        """In the order of the embedding; words without a vector are counted and said."""
        words = [*WORDS[50:70][::-1], "nowhere", "norhere"]
        (tmp_path / "words.txt").write_text("\n".join(words) + "\n\n")
        two = [vectors(tmp_path, number, WORDS[3 * number : 100 + 2 * number]) for number in range(2)]
        named = [word for file in two for word in ("--vectors", file)]
        more = ["--output", tmp_path / "space", "--vocabulary", tmp_path / "words.txt", *QUIET]
        assert "2 of its 22 words" in succeeds("space", *named, *more).err
        assert list(cv.load_space(tmp_path / "space").vocabulary.words) == WORDS[50:70]

    def test_has_no_excluded_word_in_any_case_or_before_an_apostrophe(self, tmp_path: Path) -> None:
        """Nor the words of one that is excluded later: the call that made a space includes the words."""
        words = ["plain", "Harsh", "harsh's", "new_harsh", "harsher", *WORDS[:40]]
        (tmp_path / "exclude.txt").write_text("harsh\nnowhere\n")
        more = ["--vectors", vectors(tmp_path, 0, words), "--exclude", tmp_path / "exclude.txt", *QUIET]
        for _ in range(2):
            succeeds("space", "--output", tmp_path / "space", *more)
        kept = ["plain", "harsher", *WORDS[:40]]
        assert list(cv.load_space(tmp_path / "space").vocabulary.words) == kept
        (tmp_path / "exclude.txt").write_text("harsh\nharsher\n")
        fails(["space", "--output", tmp_path / "space", *more], "unusable-address", "space")
        embedding = cv.read_vectors(vectors(tmp_path, 0, words))
        assert list(cv.build_space(embedding, exclude=["HARSH"]).vocabulary.words) == kept
        with refused("wrong-setting", "exclude"):
            cv.build_space(embedding, exclude="harsh")

    def test_that_is_wrong_is_one_sentence(self, tmp_path: Path) -> None:
        """It names the file, or the line, and no space is made."""
        file, embedding = tmp_path / "words.txt", vectors(tmp_path, 0, WORDS[:100])
        arguments = ["space", "--vectors", embedding, "--output", tmp_path / "space", *QUIET, "--vocabulary", file]
        for content, code, named in (
            (b"", "unsuitable-data", file), (b"\n \n", "unsuitable-data", file),
            (b"a\nb\na\n", "unsuitable-data", "line 3"),
            (b"a\nnew york\n", "unsuitable-data", "line 2"), (b"\xff\xfe", "unsuitable-data", "UTF-8"),
            (b"nowhere\nnorhere\n", "unsuitable-data", "0 of"),
        ):  # fmt: skip
            file.write_bytes(content)
            fails(arguments, code, named)
            assert not (tmp_path / "space").exists(), content
