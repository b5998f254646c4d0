"""A release is denoised to the same bytes on every engine, with any number of workers, however often it was killed.

One module, so that one process holds its one Spark session.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.errors import InUseError
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark
from corpusveil.language.denoise import Search
from corpusveil.language.model import LanguageModel, load_model
from corpusveil.language.modelling import build_model
from corpusveil.storage.tasks import ShardTask
from corpusveil.transforms.release.corpus import privatize_corpus
from corpusveil.transforms.release.denoise_corpus import denoise
from tests.calls import refused
from tests.engines.corpora import WORDS, Ground, encode, make_release, release_files, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def model(ground: Ground) -> LanguageModel:
    folder = ground.folder / "public"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(encode(rows(2000, 90, words=20)))
    count_corpus([str(folder)], str(ground.folder / "counts"), Local(), CountOptions(3, 1))
    build_model(str(ground.folder / "counts"), str(ground.folder / "model"), Local())
    return load_model(ground.folder / "model")


@pytest.fixture(scope="module")
def release(ground: Ground) -> str:
    output = ground.folder / "to-denoise"
    privatize_corpus(make_release(ground.space), [str(ground.corpus)], str(output), Local())
    return str(output)


@pytest.fixture(scope="module")
def reference(ground: Ground, release: str, model: LanguageModel) -> dict[str, str]:
    output = ground.folder / "denoised"
    denoise(release, str(output), space=ground.space, model=model)
    return release_files(output)


@pytest.fixture
def run(ground: Ground, release: str, model: LanguageModel, tmp_path: Path) -> Callable[[Any], dict[str, str]]:
    def made(engine: Any) -> dict[str, str]:
        denoise(release, str(tmp_path / "output"), space=ground.space, model=model, engine=engine)
        return release_files(tmp_path / "output")

    return made


def test_the_reference_is_another_text_of_the_same_words(
    ground: Ground, release: str, reference: dict[str, str]
) -> None:
    assert reference.keys() == release_files(Path(release)).keys()
    assert len(set(reference.values()) & set(release_files(Path(release)).values())) <= 2, (
        "one shard is empty, and one of a single text"
    )
    manifest = json.loads((ground.folder / "denoised" / "manifest.json").read_text())
    assert manifest["documents"] == json.loads((Path(release) / "manifest.json").read_text())["documents"]
    assert len(WORDS) == len(ground.space)


def test_two_processes(run: Callable[[Any], dict[str, str]], reference: dict[str, str]) -> None:
    assert run(Local(2)) == reference


def test_beam(run: Callable[[Any], dict[str, str]], reference: dict[str, str]) -> None:
    assert run(Beam("FnApiRunner", 1, ())) == reference


@pytest.mark.usefixtures("spark")
def test_spark(run: Callable[[Any], dict[str, str]], reference: dict[str, str]) -> None:
    assert run(Spark()) == reference


def test_candidates_are_listed_to_the_same_bytes(ground: Ground, release: str, tmp_path: Path) -> None:
    """On every engine, in one process and two."""
    engines = {"here": None, "local": Local(2), "beam": Beam("FnApiRunner", 1, ()), "spark": Spark()}
    for name, engine in engines.items():
        denoise(release, str(tmp_path / name), space=ground.space, candidates=3, engine=engine)
    files = [release_files(tmp_path / name) for name in engines]
    assert files == files[:1] * len(files)


CHOOSER = """
def choose(batch):
    return [[len(document.text) % len(place.candidates) for place in document.places] for document in batch]
"""


@pytest.mark.nightly
def test_engines_import_a_chooser_or_say_that_they_cannot(
    ground: Ground, release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's workers do not search the path of the driver's process."""
    (tmp_path / "chooser_of_engines.py").write_text(CHOOSER)
    monkeypatch.syspath_prepend(tmp_path)
    options: dict[str, Any] = {"space": ground.space, "chooser": "chooser_of_engines:choose"}
    engines = {"here": None, "local": Local(2), "beam": Beam("FnApiRunner", 1, ())}
    for name, engine in engines.items():
        denoise(release, str(tmp_path / name), **options, engine=engine)
    files = [release_files(tmp_path / name) for name in engines]
    assert files == files[:1] * len(files)
    with refused("bad-shards", "chooser_of_engines:choose", "cannot be imported"):
        denoise(release, str(tmp_path / "spark"), **options, engine=Spark())
    assert not (tmp_path / "spark" / "manifest.json").exists()


class KilledError(Exception):
    pass


class Dying:
    """Dies before its n-th task."""

    def __init__(self, tasks: int) -> None:
        self.left = tasks

    def run(self, function: Callable[[ShardTask], Any], tasks: Sequence[ShardTask]) -> None:
        for task in tasks:
            if self.left == 0:
                raise KilledError
            self.left -= 1
            function(task)

    def slots(self) -> int:
        return 1


def test_a_killed_run_goes_on(
    ground: Ground,
    release: str,
    model: LanguageModel,
    run: Callable[[Any], dict[str, str]],
    reference: dict[str, str],
    tmp_path: Path,
) -> None:
    """To the same bytes, without doing a shard again; another call does not go on with it."""
    with pytest.raises(KilledError):
        run(Dying(2))
    done = {path: path.stat().st_mtime_ns for path in (tmp_path / "output" / "data").iterdir()}
    assert len(done) == 2
    assert not (tmp_path / "output" / "manifest.json").exists()
    with pytest.raises(InUseError):
        denoise(
            release, str(tmp_path / "output"), space=ground.space, model=model, search=Search(aim="sentence"),
            engine=Local(),
        )  # fmt: skip
    assert run(Local()) == reference
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert not (tmp_path / "output.work").exists()


def test_a_task_that_fails_is_told_of(ground: Ground, release: str, model: LanguageModel, tmp_path: Path) -> None:
    """A damaged shard ends the run in a sentence; with the shard back it goes on."""
    shutil.copytree(release, tmp_path / "copy")
    shard = sorted((tmp_path / "copy" / "data").iterdir())[3]
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    options: dict[str, Any] = {"space": ground.space, "model": model}
    with refused("bad-shards", shard.name):
        denoise(str(tmp_path / "copy"), str(tmp_path / "output"), **options)
    shard.write_bytes(whole)
    denoise(str(tmp_path / "copy"), str(tmp_path / "output"), **options)
