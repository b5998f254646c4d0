"""``corpusveil denoise`` spends nothing, and reads nothing but the release and public data: seen from outside."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil.cli.main import run
from corpusveil.language.denoise import NO_FACTS
from tests.calls import QUIET, fails, succeeds
from tests.engines.corpora import (
    TEST_KEY,
    data_files,
    make_space,
    manifest,
    read_shard,
    release_files,
    rows,
    write_shard,
)


@dataclass(frozen=True)
class Made:
    """A folder with everything from public text to a release that a ledger counts, and the release denoised."""

    folder: Path

    def at(self, *names: str) -> str:
        return str(self.folder.joinpath(*names))

    def privatize(self, source: str, output: str, *more: str) -> int:
        words = ["privatize", source, "--space", self.at("space"), "--mechanism", "ring-geometric", "--epsilon", "1"]
        words += ["--key", self.at("key"), "--output", self.at(output), "--progress", "none", "--corpus", "news"]
        return run([*words, *more])

    def denoise(self, release: str, output: str) -> list[str]:
        words = ["denoise", release, "--space", self.at("space"), "--model", self.at("model")]
        return [*words, "--output", output, "--progress", "none"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    made = Made(tmp_path_factory.mktemp("made"))
    make_space(made.folder / "space")
    cv.Key(TEST_KEY).save(made.folder / "key")
    write_shard(made.folder / "public.jsonl", rows(800, 90, words=20))
    succeeds("count", made.folder / "public.jsonl", "--min-count", "1", "--output", made.folder / "counts", *QUIET)
    succeeds("model", "--counts", made.folder / "counts", "--output", made.folder / "model", *QUIET)
    for number in range(2):
        write_shard(made.folder / "in" / f"{number}.jsonl", [*rows(60, number), {"text": None}])
    assert made.privatize(made.at("in"), "released", "--ledger", made.at("ledger")) == 0
    succeeds(*made.denoise(made.at("released"), made.at("readable")))
    return made


class TestTheLedger:
    def test_is_as_it_was(self, made: Made) -> None:
        before = release_files(made.folder / "ledger")
        assert len(before) == 4, "an entry, that it is kept, the units and the secret"
        ended = succeeds(*made.denoise(made.at("released"), made.at("again")))
        assert (ended.out + ended.err).splitlines()[-1] == NO_FACTS
        assert release_files(made.folder / "ledger") == before

    def test_takes_no_denoised_release(self, made: Made, capsys: pytest.CaptureFixture[str]) -> None:
        """Under any name, key or identity: the whole of it is refused, and the ledger is as it was."""
        before = release_files(made.folder / "ledger")
        for source in (["readable", "data"], ["readable", "data", "part-00000-of-00002.jsonl"]):
            capped = ["--unit", "content", "--cap", "9"]
            for more in (["--corpus", "other"], capped):
                assert made.privatize(made.at(*source), "twice", "--ledger", made.at("ledger"), *more) == 2
                assert "denoised release" in capsys.readouterr().err
        assert release_files(made.folder / "ledger") == before
        assert not Path(made.at("twice")).exists()
        assert run([*made.denoise(made.at("released"), made.at("x")), "--ledger", made.at("ledger")]) == 2, "no option"


@pytest.mark.parametrize("command", [["ledger", "show"], ["plan"]], ids=" ".join)
def test_a_release_says_what_it_spends(made: Made, command: list[str]) -> None:
    source = manifest(made.at("released"))
    told = " ".join(succeeds(*command, made.at("readable")).out.split())
    assert "nothing: no ledger has an entry for it" in told
    assert source["spends"]["name"] in told
    told = " ".join(succeeds(*command, made.at("released")).out.split())
    assert f"release {source['spends']['name']}, in metric {source['spends']['metric']}" in told
    assert "nothing" not in told


def test_all_that_a_release_keeps_stays(made: Made) -> None:
    """Rows without a text, and lines with other fields, too."""
    assert made.privatize(made.at("in"), "kept", "--keep", "all") == 0
    succeeds(*made.denoise(made.at("kept"), made.at("kept-readable")))
    for folders in zip(*(data_files(made.folder / name) for name in ("kept", "kept-readable")), strict=True):
        release, denoised = (read_shard(shard) for shard in folders)
        assert [row["text"] for row in (release[60], denoised[60])] == [None, None]
        before, after = ([{**row, "text": ""} for row in shard] for shard in (release, denoised))
        assert before == after
        assert (len(before), before[0].keys() >= {"id", "extra"}, before[60].keys()) == (61, True, {"text"})
    assert manifest(made.at("kept-readable"))["documents"] == 120


def test_a_model_is_asked_for(made: Made, tmp_path: Path) -> None:
    words = made.denoise(made.at("released"), str(tmp_path / "out"))
    fails(words[:4] + words[6:], "missing-setting", "--model")
    assert not data_files(tmp_path / "out")
    assert not (tmp_path / "out" / "manifest.json").exists()
