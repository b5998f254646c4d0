"""A dataset card and Croissant, from a manifest alone: what their readers read, and nothing else of the corpus."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import corpusveil as cv
from tests.calls import refused
from tests.engines.corpora import CANARIES, COLUMN_CANARY, NAME_CANARY, UNKNOWN, make_release, make_space, write_corpus

WORDS = ["bade kilo mude", "nari sode teva bade"]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> cv.Release:
    return make_release(make_space(tmp_path_factory.mktemp("card") / "space"))


@pytest.fixture
def released(tmp_path: Path, release: cv.Release) -> Callable[..., Path]:
    """Release a corpus with everything private in it; return the folder."""

    def make(form: str = "same", **settings: Any) -> Path:
        texts = [*WORDS, *CANARIES.values()]
        shards = [[{"text": text, "id": f"{COLUMN_CANARY}/{n}", "n": n} for n, text in enumerate(texts)]] * 2
        corpus = write_corpus(tmp_path / NAME_CANARY, shards)
        output = tmp_path / f"out-{form}"
        cv.privatize_corpus(str(corpus), str(output), release, format=form, page=False, **settings)
        return output

    return make


@pytest.mark.parametrize("form", ["jsonl", "csv.gz", "parquet"])
def test_mlcroissant_accepts_the_metadata_and_reads_every_text(form: str, released: Callable[..., Path]) -> None:
    mlc = pytest.importorskip("mlcroissant")
    logging.getLogger("absl").setLevel(logging.ERROR)  # it recommends a license and a date
    output = released(form)
    made = cv.croissant(output)
    (output / "croissant.json").write_text(json.dumps(made))
    dataset = mlc.Dataset(jsonld=str(output / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    assert dataset.metadata.ctx.conforms_to.value.endswith("/1.1")
    texts = [record["documents/text"] for record in dataset.records("documents")]
    assert len(texts) == 2 * (len(WORDS) + len(CANARIES))
    if form == "jsonl":
        (first, *_) = sorted((output / "data").iterdir())
        assert texts[0].decode() == json.loads(first.read_text().splitlines()[0])["text"]
    del made["distribution"][1]["includes"]
    (output / "croissant.json").write_text(json.dumps(made))
    with pytest.raises(mlc.ValidationError):  # it would have noticed
        mlc.Dataset(jsonld=str(output / "croissant.json"))


def test_the_hubs_client_reads_the_card_and_datasets_loads_by_it(
    released: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, datasets = pytest.importorskip("huggingface_hub"), pytest.importorskip("datasets")
    output = released(id="id", keep=["n"])
    text = cv.dataset_card(output)
    data = hub.DatasetCard(text).data
    assert data.size_categories == ["n<1K"]
    assert data.configs == [{"config_name": "default", "data_files": "data/part-*"}]
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (output / "README.md").write_text(text)
    loaded = datasets.load_dataset(str(output), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded.num_rows == 2 * (len(WORDS) + len(CANARIES))
    for line in json.loads((output / "manifest.json").read_text())["guarantee_in_words"]:
        assert line in text
    assert "kept columns, outside every guarantee: n" in text


def test_both_come_from_the_manifest_alone_and_quote_nothing(released: Callable[..., Path], tmp_path: Path) -> None:
    output = released(id="id")
    private = [UNKNOWN, *CANARIES.values(), COLUMN_CANARY, NAME_CANARY, *" ".join(WORDS).split()]
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(output / "manifest.json", alone)
    for make in (cv.dataset_card, lambda folder: json.dumps(cv.croissant(folder))):
        text = make(output)
        assert make(alone) == text
        assert not [canary for canary in private if canary in text]
    disclosed = released("csv", id="id", keep=["id"])
    assert COLUMN_CANARY in next((disclosed / "data").iterdir()).read_text()  # there was something to quote


def test_what_could_be_a_value_is_only_counted_and_the_test_key_is_said(released: Callable[..., Path]) -> None:
    output = released()
    manifest = json.loads((output / "manifest.json").read_text())
    manifest["configuration"]["columns"]["keep"] = ["n", "<script>x</script>"]
    manifest["warning"] = "NOT PRIVATE: the test key"
    (output / "manifest.json").write_text(json.dumps(manifest))
    card = cv.dataset_card(output)
    assert "n and 1 more" in card
    assert "script" not in card
    assert "**NOT PRIVATE" in card
    assert "NOT PRIVATE" in cv.croissant(output)["description"]
    for text, code in (("{}", "damaged-record"), (None, "missing-file")):
        if text is None:
            (output / "manifest.json").unlink()
        else:
            (output / "manifest.json").write_text(text)
        for make in (cv.dataset_card, cv.croissant):
            with refused(code, "manifest.json"):
                make(output)
