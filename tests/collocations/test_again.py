"""Steps of the flow that are started again, or twice: finished ones do nothing and say so, one of several works."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from corpusveil.cli.main import run
from corpusveil.storage import lease
from tests.collocations.corpora import make, write
from tests.engines.corpora import release_files

STEPS = ("count", "score", "tokenize", "train", "space")


def call(name: str, folder: Path, output: Path, *more: str) -> int:
    """Run a step on what the steps before it made in a folder."""
    arguments = {
        "count": [str(folder / "in"), "--min-count", "2"],
        "score": ["--counts", str(folder / "count")],
        "tokenize": [str(folder / "in"), "--tokenizer", "gst", "--collocations", str(folder / "score")],
        "train": ["--tokens", str(folder / "tokenize"), "--dimensions", "8", "--epochs", "1"],
        "space": ["--vectors", str(folder / "train")],
    }[name]
    return run([name, *arguments, "--output", str(output), "--progress", "none", *more])


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpus and what each step made of it."""
    folder = tmp_path_factory.mktemp("flow")
    write(folder / "in", make(300, 3), 2)
    for name in STEPS:
        assert call(name, folder, folder / name) == 0
    return folder


OTHER_CALL = {
    "count": ("--max-n", "2"), "score": ("--threshold", "1"), "tokenize": ("--tokenizer", "mst"),
    "train": ("--window", "3"), "space": ("--seed", "7"),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
class TestAFinishedStep:
    def test_does_nothing_but_tidy_and_says_so_and_is_refused_for_another_call(
        self, flow: Path, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Also what a run left that was killed when all but tidying was done goes."""
        before = release_files(flow / name)
        for part in ("", "tokens", "work/made"):
            (flow / name / part).mkdir(parents=True, exist_ok=True)
            (flow / name / part / f".part-0.{'0' * 32}.part").touch()
        if name == "space":
            shutil.rmtree(flow / name / "work")
            (flow / name / "tokens").joinpath(f".part-0.{'0' * 32}.part").unlink()
        assert call(name, flow, flow / name) == 0
        said = capsys.readouterr()
        assert f"{flow / name}: already complete; nothing was done." in said.err
        assert said.out.startswith(f"{flow / name}: ")
        assert not (flow / name / lease.FOLDER).exists()
        assert call(name, flow, flow / name, *OTHER_CALL[name]) == 2
        assert "choose another" in capsys.readouterr().err
        assert release_files(flow / name) == before

    def test_of_other_input_is_refused(
        self, flow: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Of the same names and sizes: another system or time in the header of gzip, another digest or number."""
        copy = shutil.copytree(flow, tmp_path / "copy")
        if name == "train":
            shutil.rmtree(copy / name)  # tokens are known by their whole address
            assert call(name, copy, copy / name) == 0
        changed, at = {
            "count": ("in/*", 9), "tokenize": ("in/*", 9), "train": ("tokenize/lines/*", 4),
            "space": ("train/*.npy", -1),
            "score": ("count/_artifact.json", None),
        }[name]  # fmt: skip
        path = min(copy.glob(changed))
        data = bytearray(path.read_bytes())
        if at is None:
            data = bytearray(data.replace(b'"digest": "', b'"digest": "0', 1))
        else:
            data[at] ^= 1
        path.write_bytes(data)
        assert call(name, copy, copy / name) == 2
        assert "choose another" in capsys.readouterr().err


def test_a_step_is_not_begun_while_another_run_is_at_it(
    flow: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with lease.hold(str(tmp_path / "out" / lease.FOLDER)):
        assert call("count", flow, tmp_path / "out") == 1
        assert list((tmp_path / "out").iterdir()) == [tmp_path / "out" / lease.FOLDER]
    assert "corpusveil: Another run is in progress (" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
