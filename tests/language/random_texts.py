"""Texts of small words, which tests count and make language models of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

LETTERS = "abcdefghijkl"
WORDS = [f"{one}{two}" for one in LETTERS for two in LETTERS]


def corpus(texts: int, seed: int, words: int = 30) -> list[str]:
    """Return texts of small words with Zipf's law and some order, full stops, numbers and commas among them."""
    rng = np.random.default_rng(seed)
    law = 1 / np.arange(1, words + 1)
    made = []
    for _ in range(texts):
        text, word = [], 0
        for _ in range(rng.integers(1, 15)):
            word = (word + 1) % words if rng.random() < 0.4 else int(rng.choice(words, p=law / law.sum()))
            text.append(WORDS[word])
            text += [[], [], [], [], [","], ["12"], [".\n"]][rng.integers(0, 7)]
        made.append(" ".join(text))
    return made


def sample_file(path: Path, rows: Sequence[Any]) -> str:
    """Write the sample of a model: texts that were not counted."""
    with pa.CompressedOutputStream(str(path), "zstd") as file:
        file.write(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return str(path)
