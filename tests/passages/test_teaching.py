"""Sentence vectors: what a teacher says is near becomes near, a space keeps them, and stores are made by them."""

from __future__ import annotations

import json
import pickle
import types
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.passages.encoder import ENCODERS, LENGTH, mean_vectors
from corpusveil.passages.teaching import said_by
from corpusveil.spaces.space import SENTENCES
from tests.calls import fails, refused, succeeds

TOPICS = [line.split() for line in (
    "river lake water boat fish shore wave sea swim bridge",
    "bread oven flour cake butter kitchen sugar cook meal soup",
    "train ticket station travel journey platform bus seat driver road",
)]  # fmt: skip


@pytest.fixture(scope="module")
def space() -> cv.Space:
    """The words of ``en`` without what was taught."""
    return cv.load_space("space://en").with_sentences(None)


@pytest.fixture(scope="module")
def lessons() -> list[str]:
    random = np.random.default_rng(3)
    return [" ".join(random.choice(TOPICS[topic], 5)) for topic in random.integers(0, 3, 1500)]


def products(space: cv.Space, texts: list[str]) -> np.ndarray:
    vectors = mean_vectors(space).encode(pa.array(texts, pa.large_string())).astype(int)
    return vectors @ vectors.T / LENGTH**2


def test_a_space_keeps_them_its_digest_covers_them_and_the_encoder_uses_them(space: cv.Space, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    words = random.integers(-127, 128, (len(space), 7)).astype(np.int8)
    made = space.with_sentences(words)
    saved = made.save(tmp_path / "space")
    opened = cv.load_space(tmp_path / "space")
    assert opened == saved == made != space
    assert np.array_equal(opened.sentences, words)
    assert isinstance(opened.sentences.base, np.memmap)
    assert np.array_equal(pickle.loads(pickle.dumps(made)).sentences, words)
    text = pa.array(["The cold river, the old house."], pa.large_string())
    expected = sum(words[space.id(word)].astype(int) for word in ["the", "cold", "river", "the", "old", "house"])
    vector = mean_vectors(opened).encode(text)[0].astype(int)
    assert vector.size == 8
    assert vector[:7] @ expected / np.linalg.norm(vector[:7]) / np.linalg.norm(expected) > 0.999
    fewer = made.without(["river"])
    assert np.array_equal(fewer.sentences[fewer.id("house")], words[space.id("house")])
    changed = words.copy()
    changed[0, 0] ^= 1
    np.save(tmp_path / "space" / SENTENCES, changed)
    with refused("damaged-artifact", "digest"):
        cv.load_space(tmp_path / "space")


def test_a_teacher_is_used_once_for_the_space_by_the_command(
    lessons: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encode(text: str) -> list[float]:
        read.append(text)
        return [1.0 + sum(text.count(word) for word in topic) for topic in TOPICS]

    read: list[str] = []
    monkeypatch.setitem(ENCODERS.entered, "tiny", types.SimpleNamespace(encode=encode))
    words, random = sorted({word for topic in TOPICS for word in topic}), np.random.default_rng(1)
    rows = (f"{word} {' '.join(f'{x:.4f}' for x in random.normal(size=20))}\n" for word in words)
    (tmp_path / "v.txt").write_text("".join(rows))
    (tmp_path / "counts.tsv").write_text("".join(f"{word}\t{9 + at}\n" for at, word in enumerate(words)))
    (tmp_path / "public.jsonl").write_text("".join(json.dumps({"text": f"{piece}."}) + "\n" for piece in lessons))
    call = [
        "space", "--vectors", tmp_path / "v.txt", "--counts", tmp_path / "counts.tsv", "--output", tmp_path / "space",
        "--teacher", "tiny",
    ]  # fmt: skip
    fails(call, "wrong-setting", "--lessons")
    succeeds(*call, "--lessons", tmp_path / "public.jsonl")
    space, once = cv.load_space(tmp_path / "space"), len(read)
    near = products(space, ["boat lake water", "wave shore sea", "butter sugar cake"])
    assert near[0, 1] > 0.5 > near[0, 2]
    assert len(read) == once
    assert "nothing was done" in succeeds(*call, "--lessons", tmp_path / "public.jsonl").err


def test_a_teacher_that_says_no_finite_numbers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for answer in ([1.0, float("nan")], [1.0, float("inf")], 1.0, [[1.0]]):
        monkeypatch.setitem(ENCODERS.entered, "tiny", types.SimpleNamespace(encode=lambda _, answer=answer: answer))
        with refused("missing-package", "tiny"):
            said_by("tiny", ["One.", "Two."])
