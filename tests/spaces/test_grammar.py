"""Grammar in the order of lists: words of one class are near, nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from corpusveil.spaces import Vocabulary
from corpusveil.spaces.build import build_space
from corpusveil.spaces.grammar import Neighbors
from corpusveil.spaces.public_counts import read_counts, read_neighbors
from corpusveil.spaces.vectors import Vectors
from tests.calls import fails, succeeds

CLASSES, EACH = 4, 60
WORDS = [f"{'nvap'[number % CLASSES]}{number // CLASSES}" for number in range(CLASSES * EACH)]
WORDS = [word.translate(str.maketrans("0123456789", "qwertyuiop")) for word in WORDS]
RNG = np.random.default_rng(7)
MEANING = RNG.standard_normal((EACH, 12))
"""One meaning for a word of each class, as *refund* and *refunded*: only use tells their classes apart."""
VECTORS = np.float32(np.repeat(MEANING, CLASSES, axis=0) + 0.1 * RNG.standard_normal((CLASSES * EACH, 12)))


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Counts of sentences in which the classes follow one another in turn."""
    folder = tmp_path_factory.mktemp("grammar")
    chosen = RNG.integers(0, EACH, (14_000, CLASSES))
    lines = [" ".join(WORDS[CLASSES * word + at] for at, word in enumerate(row)) for row in chosen.tolist()]
    (folder / "in.jsonl").write_text("".join(json.dumps({"text": f"{line}."}) + "\n" for line in lines))
    succeeds("count", folder / "in.jsonl", "--output", folder / "counts", "--max-n", 2, "--min-count", 1)
    return folder / "counts"


def near_share(order: np.ndarray) -> float:
    """The share of neighbors on the list that are of one class."""
    return float((order % CLASSES == np.roll(order, 1) % CLASSES).mean())


@pytest.fixture(scope="module")
def neighbors(counts: Path) -> Neighbors:
    vocabulary = Vocabulary.from_words(WORDS)
    return read_neighbors(str(counts), Vocabulary.from_words(WORDS, read_counts(str(counts), vocabulary)))


def test_neighbors_on_the_list_are_used_alike_and_vectors_are_unchanged(neighbors: Neighbors) -> None:
    vectors = Vectors(WORDS, VECTORS)
    plain = build_space(vectors, order="improved")
    asked = build_space(vectors, order="improved", neighbors=neighbors, grammar=1.0)
    assert near_share(plain.lists[0]) < 0.4
    assert near_share(asked.lists[0]) > 0.7
    assert np.array_equal(asked.vectors, VECTORS)
    assert asked.info["made"]["grammar"] == 1.0
    assert build_space(vectors, order="improved", neighbors=neighbors, grammar=0.0) == plain
    assert build_space(vectors, order="improved", neighbors=neighbors) == asked, (
        "1 is the default where there are pairs"
    )


def test_the_command_uses_pairs_where_counts_have_them(counts: Path, tmp_path: Path) -> None:
    """And a call with another grammar is another space."""
    np.savez(tmp_path / "v.npz", vocab=np.array(WORDS), vectors=VECTORS)
    call = "space", "--vectors", tmp_path / "v.npz", "--counts", counts, "--output", tmp_path / "space"
    assert "Grammar 1 in the order of the lists" in succeeds(*call).out
    assert json.loads((tmp_path / "space/_artifact.json").read_bytes())["made"]["grammar"] == 1.0
    fails((*call, "--grammar", 0.5), "unusable-address", "another artifact is saved here")
    fails((*call, "--grammar", 2000), "wrong-setting", "grammar")
