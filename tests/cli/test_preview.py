"""``corpusveil preview``: a few texts before and after on the terminal, and nothing anywhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import corpusveil as cv
from tests.calls import QUIET, succeeds
from tests.engines.corpora import TEST_KEY, WORDS, make_space, read_shard, release_files, write_shard


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a space, a key and a corpus of eight documents."""
    folder = tmp_path_factory.mktemp("preview")
    make_space(folder / "space")
    cv.Key(TEST_KEY).save(folder / "key")
    write_shard(folder / "in" / "a.jsonl", [{"text": " ".join(WORDS[row : row + 9])} for row in range(8)])
    return folder


def call(ground: Path, *more: str) -> list[str]:
    return ["preview", str(ground / "in"), "--space", str(ground / "space"), *QUIET, *more]


def of(name: str, told: str) -> list[str]:
    """Return the texts of a name, in their order."""
    return [line.strip().removeprefix(name).strip() for line in told.splitlines() if line.strip().startswith(name)]


def test_nothing_is_written(ground: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no record, no file: not here, not in the home, not beside the input."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    monkeypatch.chdir(tmp_path)
    before = release_files(ground)
    succeeds(*call(ground, "--epsilon", "1"))
    assert release_files(ground) == before
    assert list(tmp_path.iterdir()) == []


def test_with_the_key_it_shows_what_will_be_written(ground: Path, tmp_path: Path) -> None:
    """Under the release's key and settings the texts are those of the release."""
    settings = ["--space", str(ground / "space"), "--key", str(ground / "key"), "--epsilon", "1", "--progress", "none"]
    settings += ["--mechanism", "ring-geometric", str(ground / "in")]
    succeeds("privatize", *settings, "--output", tmp_path / "out")
    shown = of("epsilon 1  ", succeeds("preview", *settings).out)
    written = [row["text"] for row in read_shard(tmp_path / "out" / "data" / "part-00000-of-00001.jsonl")]
    assert shown == written[:5]


def test_what_a_terminal_would_obey_is_not_shown(ground: Path, tmp_path: Path) -> None:
    """A text may hold codes that clear a screen or write to a clipboard."""
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": f"{WORDS[0]} \x1b]52;c;eA==\x07 \x9b2J {WORDS[1]}"}) + "\n")
    out = succeeds("preview", tmp_path / "a.jsonl", "--space", ground / "space", *QUIET).out
    assert not {"\x1b", "\x07", "\x9b"} & set(out)
    assert WORDS[1] in out
