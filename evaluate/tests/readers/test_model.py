"""A model is the one of its counts; what is damaged is refused."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.errors import AddressError, SettingError
from corpusveil.jobs.local import Local
from corpusveil_evaluate.readers.ngrams import model
from corpusveil_evaluate.readers.ngrams.fixed import LEAST, ONE
from corpusveil_evaluate.readers.ngrams.lookup import ROUGH
from corpusveil_evaluate.readers.ngrams.model import Arrays, digest_of, sums_of
from corpusveil_evaluate.readers.ngrams.modelling import build_model, load_model, model_of_counts
from evaluate.tests.readers.random_texts import corpus, log_probabilities
from tests.calls import refused
from tests.engines.corpora import write_shard


@pytest.fixture
def counts(tmp_path: Path) -> str:
    for number in range(3):
        write_shard(tmp_path / "in" / f"{number}.jsonl", [{"text": text} for text in corpus(400, number, 70)])
    count_corpus([str(tmp_path / "in")], str(tmp_path / "counts"), Local(), CountOptions(3, 1))
    return str(tmp_path / "counts")


@pytest.fixture(autouse=True)
def nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model.SAVED, "opened", {})


def content(url: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(url).glob("*") if path.is_file()}


def test_the_artefact_is_the_model_in_memory(counts: str, tmp_path: Path) -> None:
    """The same arrays, hence the same probabilities; and what is complete is not made again."""
    told = build_model(counts, str(tmp_path / "model"))
    saved, whole = load_model(tmp_path / "model"), model_of_counts(counts)
    for name, array in whole.arrays._asdict().items():
        np.testing.assert_array_equal(getattr(saved.arrays, name), array, err_msg=name)
    assert saved.digest == whole.digest == told["digest"]
    assert list(saved.vocabulary.words) == list(whole.vocabulary.words)
    assert told["trigrams"] > told["bigrams"] > told["words"] == len(saved)
    made = (tmp_path / "model" / "_artifact.json").stat().st_mtime_ns
    assert build_model(counts, str(tmp_path / "model"))["digest"] == told["digest"]
    assert (tmp_path / "model" / "_artifact.json").stat().st_mtime_ns == made
    assert sorted(content(str(tmp_path / "model"))) == sorted(
        ["_artifact.json", "vocabulary.parquet", *(f"{name}.npy" for name in saved.arrays._fields)]
    )


def test_pruned_counts_are_the_model_of_fewer_ngrams(counts: str, tmp_path: Path) -> None:
    told = build_model(counts, str(tmp_path / "model"), 3)
    whole = load_model(tmp_path / "model")
    full = model_of_counts(counts)
    assert told["least"] == 3
    assert 0 < whole.arrays.slots3.size < full.arrays.slots3.size
    pairs = np.random.default_rng(3).integers(-1, whole.unknown, (100, 2))
    table = np.exp(log_probabilities(whole, pairs, np.arange(whole.unknown + 1)))
    assert np.abs(table.sum(axis=1) - 1).max() < 1e-3
    with pytest.raises(SettingError):
        build_model(counts, str(tmp_path / "wrong"), 0)
    with pytest.raises(AddressError):
        build_model(counts, str(tmp_path / "model"))


def test_a_model_pickles_as_its_address(counts: str, tmp_path: Path) -> None:
    build_model(counts, str(tmp_path / "model"))
    saved = load_model(tmp_path / "model")
    assert len(pickle.dumps(saved)) < 400
    assert pickle.loads(pickle.dumps(saved)) == saved
    assert isinstance(np.load(tmp_path / "model" / "slots3.npy", mmap_mode="r"), np.memmap)
    shutil.copytree(tmp_path / "model", tmp_path / "copy")
    assert load_model(tmp_path / "copy") == saved


def test_a_damaged_model_and_other_artefacts_are_refused(counts: str, tmp_path: Path) -> None:
    for code, folder in (("wrong-setting", counts), ("missing-file", str(tmp_path))):
        with refused(code):
            load_model(folder)
    build_model(counts, str(tmp_path / "model"))
    for path in sorted((tmp_path / "model").glob("[!_]*")):
        whole = path.read_bytes()
        for harmed in (whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:], whole[:-4]):
            path.write_bytes(harmed)
            with refused("damaged-artifact", "damaged"):
                load_model(tmp_path / "model")
        path.write_bytes(whole)


Tables = dict[str, np.ndarray]
LOW = np.uint64(2**32 - 1)
HARMS: dict[str, Callable[[Tables], None]] = {
    "leaves the slots": lambda of: of["regions"].__setitem__(1, of["regions"][-1] + 2),
    "descends": lambda of: of["regions"].__setitem__(2, 0),
    "nothing is empty": lambda of: of["slots"].__setitem__(of["slots"] == 0, of["slots"].max()),
    "no such entry": lambda of: of["slots"].__setitem__(of["slots"] > 0, (1 << 43) | (99999 << 11)),
    "no such word": lambda of: of["slots"].__setitem__(of["slots"] > 0, 99999 << 43),
    "begins elsewhere": lambda of: of["bigrams"].__setitem__(1, 1 << 60),
    "words after it, and no table": lambda of: of["bigrams"].__setitem__(slice(2, None, 3), 2**64 - 1),
    "nothing is empty, of three": lambda of: of["slots3"].__setitem__(of["slots3"] == 0, of["slots3"].max()),
    "no such entry, of three": lambda of: of["slots3"].__setitem__(of["slots3"] > 0, 99999 << 32),
    **{
        f"{name} is {log}": lambda of, name=name, log=log: of[name].__setitem__(3, log)
        for name in ("first", "start", "left2")
        for log in (-(2**31), LEAST - 1, 1)
    },
    **{
        f"{kind} is -{units}": lambda of, name=name, step=step, shift=shift, units=units: of[name].__setitem__(
            slice(0, None, step), of[name][::step] & ~(LOW << shift) | (units << shift) * (of[name][::step] > 0)
        )
        for kind, name, step, shift in (
            ("a bigram", "bigrams", 3, np.uint64(0)),
            ("the factor after it", "bigrams", 3, np.uint64(32)),
            ("a trigram", "slots3", 1, np.uint64(0)),
        )
        for units in (np.uint64(1 - LEAST), np.uint64(256 * ONE), LOW)
    },
    "a rough logarithm": lambda of: of["slots"].__ior__((of["slots"] > 0) * np.uint64(ROUGH - 1)),
}


def test_a_model_whose_tables_were_changed_is_refused_whatever_its_digest(counts: str, tmp_path: Path) -> None:
    """A look-up in it would not end, or would leave the memory: the digest only says that it was made this way."""
    build_model(counts, str(tmp_path / "model"))
    made = load_model(tmp_path / "model")
    for number, (name, harm) in enumerate(HARMS.items()):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "model", folder)
        arrays = {field: np.array(array) for field, array in made.arrays._asdict().items()}
        harm(arrays)
        for field, array in arrays.items():
            np.save(folder / f"{field}.npy", array)
        about = json.loads((folder / "_artifact.json").read_text())
        about["digest"] = digest_of(made.vocabulary, sums_of(Arrays(**arrays)), made.reading)
        (folder / "_artifact.json").write_text(json.dumps(about))
        with refused("damaged-artifact", "damaged"):
            pytest.fail(f"{name}: {load_model(folder)}")
