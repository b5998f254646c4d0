"""Labeled documents of two topics and two kinds of author, and their release: what tests of the report share."""

from __future__ import annotations

import random
from pathlib import Path

from corpusveil.cli.main import run
from corpusveil.spaces import Space
from tests.engines.corpora import WORDS

DOCUMENTS = 240


def texts(documents: int, seed: int = 0, words: int = 12) -> list[dict[str, str]]:
    """Return labeled documents: which half of the vocabulary a text draws from is its topic and its author's trait."""
    rng = random.Random(seed)
    rows = []
    for number in range(documents):
        topic, trait = rng.randrange(2), rng.randrange(2)
        chosen = [rng.choice(WORDS[100 * topic : 100 * topic + 100]) for _ in range(words // 2)]
        chosen += [rng.choice(WORDS[200 + 100 * trait : 300 + 100 * trait]) for _ in range(words // 2)]
        rng.shuffle(chosen)
        rows.append({"text": " ".join(chosen), "topic": f"t{topic}", "trait": f"a{trait}", "url": f"u{number}"})
    return rows


def privatize(source: Path, space: Space, output: Path, epsilon: float, *more: str) -> Path:
    """Release a corpus by the command, under the test key unless ``more`` names one."""
    words = ["privatize", str(source), "--space", str(space.url), "--output", str(output), "--mechanism"]
    words += ["ring-geometric", "--epsilon", str(epsilon), "--progress", "none", *more]
    assert run(words if "--key" in more else [*words, "--test-key"]) == 0
    return output


def call(source: Path, private: Path, output: Path, *more: str) -> list[str]:
    """Return a call of the command."""
    return ["evaluate", "release", str(source), str(private), "--output", str(output), *more]
