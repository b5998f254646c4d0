"""A release is denoised to the same bytes on every engine, with any number of workers, however often it was killed.

One module, so that one process holds its one Spark session.
"""

from __future__ import annotations

import gzip
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.errors import InUseError, WorkError
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark
from corpusveil.language.denoise import Search
from corpusveil.language.model import LanguageModel, load_model
from corpusveil.language.modelling import build_model
from corpusveil.transforms.release.corpus import privatize_corpus
from corpusveil.transforms.release.denoise_corpus import denoise
from tests.calls import Halting, refused
from tests.engines.corpora import Ground, encode, make_release, release_files, rows, write_corpus

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def ground(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """A small corpus, whose shards are small, empty and of one document: a search takes a while for each word."""
    folder = tmp_path_factory.mktemp("denoise")
    shards = [rows(500, 0), rows(200, 1, words=3), [], rows(20, 2, words=100), rows(1, 3)]
    return replace(ground, folder=folder, corpus=write_corpus(folder / "c4", shards))


@pytest.fixture(scope="module")
def model(ground: Ground) -> LanguageModel:
    folder = ground.folder / "public"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(encode(rows(800, 90, words=20)))
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


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("engine", [Local(2), Beam(), Spark()], ids=lambda engine: type(engine).__name__)
def test_an_engine_writes_the_same_bytes(
    engine: Any, ground: Ground, release: str, model: LanguageModel, reference: dict[str, str], tmp_path: Path
) -> None:
    """And refuses a release of which a line was changed."""
    denoise(release, str(tmp_path / "output"), space=ground.space, model=model, engine=engine)
    assert release_files(tmp_path / "output") == reference
    changed = shutil.copytree(release, tmp_path / "changed")
    shard = min((changed / "data").iterdir())
    shard.write_bytes(gzip.compress(gzip.decompress(shard.read_bytes()).replace(b'":"', b'":"x', 1)))
    with refused("input-changed", shard.name):
        denoise(str(changed), str(tmp_path / "none"), space=ground.space, engine=engine, model=model)
    assert not (tmp_path / "none" / "manifest.json").exists()


def test_a_killed_run_goes_on(
    ground: Ground, release: str, model: LanguageModel, reference: dict[str, str], tmp_path: Path
) -> None:
    """To the same bytes, without doing a shard again; another call does not go on with it; a bad shard is named."""
    output = tmp_path / "output"
    options: dict[str, Any] = {"space": ground.space, "model": model}
    with pytest.raises(WorkError):
        denoise(release, str(output), **options, engine=Halting(2))
    done = {path: path.stat().st_mtime_ns for path in (output / "data").iterdir()}
    assert len(done) == 2
    assert not (output / "manifest.json").exists()
    with pytest.raises(InUseError):
        denoise(release, str(output), **options, search=Search())
    shard = sorted((Path(release) / "data").iterdir())[3]
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    with refused("bad-shards", shard.name):
        denoise(release, str(output), **options)
    shard.write_bytes(whole)
    denoise(release, str(output), **options)
    assert release_files(output) == reference
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert not (tmp_path / "output.work").exists()
    page = tmp_path / "output.report.html"
    page.unlink()  # as by a crash between the manifest and the page
    (tmp_path / "output.work").mkdir()
    assert not denoise(release, str(output), **options).words
    assert page.exists()
    assert not (tmp_path / "output.work").exists()
