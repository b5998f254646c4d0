"""Corpora whose n-grams are known from how they were made."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.calls import QUIET, Ended, command
from tests.engines.corpora import write_shard

STEPS = ("count", "score", "tokenize", "train", "space")

SYLLABLES = ("ba", "de", "ki", "lo", "mu", "na", "ri", "so", "ta", "ve", "\u00e9l", "o'")
WORDS = [a + b + c for a in SYLLABLES[:-1] for b in SYLLABLES for c in SYLLABLES[:-1]]


@dataclass
class Made:
    """Documents, and what a count of them has to give, by a plain ``Counter``."""

    documents: list[dict[str, Any]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    sentences: int = 0
    words: int = 0


def make(documents: int, seed: int, max_n: int = 3, vocabulary: Sequence[str] = WORDS, sentences: int = 8) -> Made:
    """Make documents of sentences of runs of words; nothing but a run's neighbors form n-grams, also over hyphens."""
    rng, hyphens = random.Random(seed), random.Random(seed)
    made = Made()
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]
    for _ in range(documents):
        texts = []
        for _ in range(rng.randrange(sentences)):
            runs = [rng.choices(vocabulary, weights, k=rng.randrange(1, 12)) for _ in range(rng.randrange(1, 4))]
            made.sentences += 1
            for run in runs:
                made.words += len(run)
                for n in range(1, max_n + 1):
                    made.counts.update(" ".join(run[k : k + n]) for k in range(len(run) - n + 1))
            shown = [[word.upper() if rng.random() < 0.05 else word for word in run] for run in runs]
            parts = ["".join(word + hyphens.choice("    -") for word in run)[:-1] for run in shown]
            text = rng.choice((", ", " 17 ", " \u2013 ", "; ")).join(parts)
            texts.append(text[0].upper() + text[1:] + rng.choice((".", "!", "?", "\n")))
        made.documents.append({"text": " ".join(texts)})
    return made


def write(folder: Path, made: Made, shards: int) -> Path:
    """Write the documents as so many shards."""
    for number in range(shards):
        write_shard(folder / f"c4.{number:05d}.json.gz", made.documents[number::shards])
    return folder


def kept(counts: Counter[str], min_count: int) -> Iterator[tuple[str, int, int]]:
    """Yield the rows of the table of counts."""
    for ngram, count in counts.items():
        if count >= min_count:
            yield ngram, ngram.count(" ") + 1, count


def step(name: str, folder: Path, output: Path, *more: str) -> Ended:
    """Run a step on what the steps before it made in a folder."""
    arguments = {
        "count": [str(folder / "in"), "--min-count", "2"],
        "score": ["--counts", str(folder / "count")],
        "tokenize": [str(folder / "in"), "--tokenizer", "gst", "--collocations", str(folder / "score")],
        "train": ["--tokens", str(folder / "tokenize"), "--dimensions", "8", "--epochs", "1"],
        "space": ["--vectors", str(folder / "train")],
    }[name]
    return command(name, *arguments, "--output", output, *QUIET, *more)
