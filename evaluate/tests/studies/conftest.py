"""Small data that studies are tried on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from corpusveil_evaluate.studies import bundled_text


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a file of random vectors for frequent words of the bundled text."""
    file = tmp_path_factory.mktemp("vectors") / "v.npz"
    words = sorted({word for text in bundled_text.news()[:60] for word in text.lower().split() if word.isalpha()})[:500]
    rng = np.random.default_rng(0)
    np.savez(file, vocab=np.array(words), vectors=rng.normal(size=(len(words), 16)).astype(np.float32))
    return str(file)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small public corpus in which two pairs of words always go together."""
    rng = np.random.default_rng(0)
    words = [f"w{n}x" for n in range(60)]
    lines = []
    for _ in range(1200):
        chosen = [words[n] for n in rng.integers(60, size=9)]
        chosen.insert(int(rng.integers(9)), "san marino" if rng.integers(2) else "hot dog")
        lines.append(" ".join(chosen))
    file = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    file.write_text("\n".join(lines) + "\n")
    return file
