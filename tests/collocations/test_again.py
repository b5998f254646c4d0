"""Steps of the flow that are started again, or twice: finished ones do nothing and say so, one of several works."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from corpusveil.storage import lease
from tests.collocations.corpora import STEPS, step
from tests.engines.corpora import release_files

OTHER_CALL = {
    "count": ("--max-n", "2"), "score": ("--threshold", "1"), "tokenize": ("--tokenizer", "mst"),
    "train": ("--window", "3"), "space": ("--lists", "2"),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
class TestAFinishedStep:
    def test_does_nothing_but_tidy_and_says_so_and_is_refused_for_another_call(self, flow: Path, name: str) -> None:
        """Also what a run left that was killed when all but tidying was done goes."""
        before = release_files(flow / name)
        for part in ("", "tokens", "work/made"):
            (flow / name / part).mkdir(parents=True, exist_ok=True)
            (flow / name / part / f".part-0.{'0' * 32}.part").touch()
        if name == "space":
            shutil.rmtree(flow / name / "work")
            (flow / name / "tokens").joinpath(f".part-0.{'0' * 32}.part").unlink()
        said = step(name, flow, flow / name)
        assert said.status == 0
        assert f"{flow / name}: already complete; nothing was done." in said.err
        assert said.out.startswith(f"{flow / name}: ")
        assert not (flow / name / lease.LEASE).exists()
        refused = step(name, flow, flow / name, *OTHER_CALL[name])
        assert refused.status == 2
        assert "choose another" in refused.err
        assert release_files(flow / name) == before

    def test_of_other_input_is_refused(self, flow: Path, tmp_path: Path, name: str) -> None:
        """Of the same names and sizes: another system or time in the header of gzip, another digest or number."""
        copy = shutil.copytree(flow, tmp_path / "copy")
        changed, at = {
            "count": ("in/*", 9), "tokenize": ("in/*", 9), "train": ("tokenize/_artifact.json", None),
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
        refused = step(name, copy, copy / name)
        assert refused.status == 2
        assert "choose another" in refused.err
