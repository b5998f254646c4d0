"""Steps of the flow that are started again, or twice: finished ones do nothing and say so, one of several works."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from corpusveil.cli.main import run
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.errors import WorkError
from corpusveil.jobs.local import Local
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


@pytest.mark.parametrize("name", STEPS)
class TestAFinishedStep:
    def test_does_nothing_and_says_so(self, flow: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        """With status 0, and the same line about what is there."""
        before = release_files(flow / name)
        assert call(name, flow, flow / name) == 0
        said = capsys.readouterr()
        assert f"{flow / name}: already complete; nothing was done." in said.err
        assert said.out.startswith(f"{flow / name}: ")
        assert release_files(flow / name) == before

    def test_is_free_of_what_killed_runs_left(self, flow: Path, tmp_path: Path, name: str) -> None:
        """Unfinished files and the work folder, also of a run that was killed when all but tidying was done."""
        before = release_files(flow / name)
        for part in ("", "tokens", "work/made"):
            (flow / name / part).mkdir(parents=True, exist_ok=True)
            (flow / name / part / f".part-0.{'0' * 32}.part").touch()
        if name == "space":
            shutil.rmtree(flow / name / "work")
            (flow / name / "tokens").joinpath(f".part-0.{'0' * 32}.part").unlink()
        assert call(name, flow, flow / name) == 0
        assert release_files(flow / name) == before
        assert not (flow / name / lease.FOLDER).exists()

    def test_of_another_call_is_refused(self, flow: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        other = {
            "count": ("--max-n", "2"), "score": ("--threshold", "1"), "tokenize": ("--tokenizer", "mst"),
            "train": ("--window", "3"), "space": ("--seed", "7"),
        }[name]  # fmt: skip
        before = release_files(flow / name)
        assert call(name, flow, flow / name, *other) == 2
        assert "choose another" in capsys.readouterr().err
        assert release_files(flow / name) == before

    def test_of_other_input_is_refused(
        self, flow: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Of the same names and sizes."""
        shutil.copytree(flow, tmp_path / "copy")
        copy = tmp_path / "copy"
        if name == "train":
            shutil.rmtree(copy / name)  # tokens are known by their whole address
            assert call(name, copy, copy / name) == 0
        changed = {
            "count": "in", "tokenize": "in", "train": "tokenize/lines", "score": "count", "space": "train",
        }[name]  # fmt: skip
        path = min(path for path in (copy / changed).iterdir() if path.is_file())
        data = bytearray(path.read_bytes())
        if name in ("count", "tokenize"):
            data[9] ^= 1  # of a gzip header: the system that it was made on
        elif name == "train":
            data[4] ^= 1  # its time
        elif name == "score":
            data = bytearray(data.replace(b'"digest": "', b'"digest": "0', 1))
        else:
            data = bytearray((copy / changed / "vectors.npy").read_bytes())
            path = copy / changed / "vectors.npy"
            data[-1] ^= 1
        path.write_bytes(data)
        assert call(name, copy, copy / name) == 2
        assert "choose another" in capsys.readouterr().err

    def test_is_not_begun_while_another_run_is_at_it(
        self, flow: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with lease.hold(str(tmp_path / "out" / lease.FOLDER)):
            assert call(name, flow, tmp_path / "out") == 1
            assert list((tmp_path / "out").iterdir()) == [tmp_path / "out" / lease.FOLDER]
        assert "corpusveil: Another run is in progress (" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()


def test_many_identical_starts_end_with_one_artefact(flow: Path, tmp_path: Path) -> None:
    """Those that did nothing say so; the artefact is that of one start, and a further start ends well."""
    gate = threading.Barrier(6)

    def start(_: int) -> str:
        gate.wait()
        try:
            count_corpus([str(flow / "in")], str(tmp_path / "out"), Local(), CountOptions(3, 2))
        except WorkError as error:
            return str(error)
        return "done"

    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(start, range(6)))
    assert "done" in told
    assert all(one == "done" or one.startswith("Another run is in progress (") for one in told)
    assert call("count", flow, tmp_path / "out") == 0
    assert release_files(tmp_path / "out") == release_files(flow / "count")
