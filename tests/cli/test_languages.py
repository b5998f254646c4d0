"""``--language`` from the corpus to the release: what each step records, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import corpusveil as cv
from tests.calls import QUIET, fails, succeeds
from tests.spoken import private, public


@pytest.fixture(scope="module", params=["fr", "ja"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return a language, and the folder with a space that the commands made of its texts."""
    language, folder = request.param, tmp_path_factory.mktemp("languages")
    (folder / "public.txt").write_text("\n".join(public(language) * 9))
    text = folder / "public.txt"
    succeeds("count", text, "--language", language, "--output", folder / "counts", *QUIET)
    succeeds("tokenize", text, "--language", language, "--tokenizer", "word", "--output", folder / "tokens", *QUIET)
    small = ("--dimensions", "8", "--epochs", "1", "--min-count", "1")
    succeeds("train", "--tokens", folder / "tokens", "--output", folder / "vectors", *small, *QUIET)
    succeeds(
        "space", "--vectors", folder / "vectors", "--counts", folder / "counts", "--output", folder / "space", *QUIET
    )
    return language, folder


def test_each_step_records_the_language(made: tuple[str, Path]) -> None:
    """Counts, tokens, vectors and the space say how their text was read."""
    language, folder = made
    for name in ("counts", "tokens", "vectors"):
        recorded = json.loads((folder / name / "_artifact.json").read_text())
        assert recorded["language"] == language, name
        assert ("/icu-" in str(recorded["tokenizer"])) == (language == "ja"), name
    space = cv.load_space(folder / "space")
    assert space.language == language
    assert {"fr": "imprimante", "ja": "事務所"}[language] in space.vocabulary
    assert not [word for word in space.vocabulary.words if "'" in word]


def test_a_release_is_read_as_the_space_was(made: tuple[str, Path], tmp_path: Path) -> None:
    language, folder = made
    (tmp_path / "private.txt").write_text(private(language))
    call = ("privatize", tmp_path / "private.txt", "--space", folder / "space", "--mechanism", "ring-geometric",
            "--epsilon", "1", "--test-key", *QUIET)  # fmt: skip
    succeeds(*call, "--output", tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["configuration"]["text"]["language"] == language
    other = [*call, "--output", tmp_path / "other", "--language"]
    fails([*other, "German"], "wrong-setting", "language", language)
    fails([*other, "Klingon"], "wrong-setting", "language", "Klingon")
    assert not (tmp_path / "other").exists()
