"""Arcs follow public counts and public factors, are part of the space, and change nothing where there are none."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.spaces import load_space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.space import MOST_CELLS
from corpusveil.spaces.vectors import Vectors
from tests.calls import fails, refused, succeeds

WORDS = [f"w{'abcdef'[n // 10]}{'abcdefghij'[n % 10]}" for n in range(60)]
COUNTS = (1_000_000 / np.arange(1, 61) ** 1.5).astype(np.int64)


def embedding(words: list[str] = WORDS, seed: int = 0) -> Vectors:
    random = np.random.default_rng(seed)
    return Vectors(words, random.normal(size=(len(words), 4)).astype(np.float32), f"toy{seed}")


def arcs(counts: list[int], **how: Any) -> list[int]:
    words = WORDS[: len(counts)]
    space = build_space(embedding(words), counts=np.array(counts), **how)
    assert space.arcs is not None
    return space.arcs.tolist()


def test_arcs_are_a_power_of_the_counts_and_the_smallest_has_four_cells() -> None:
    """Of 1/2, 9/2 and 81/2 the roots are as 1, 3 and 9; and A = 1 is the counts themselves."""
    assert arcs([0, 4, 40] + [0] * 9, spacing=0.5) == [4, 12, 36] + [4] * 9
    assert arcs([1, 4, 7], spacing=1.0) == [4, 12, 20]


def test_sensitive_words_have_narrow_arcs_and_harmless_words_wide_ones() -> None:
    """By a factor of four or by their own, with and without a spacing; all others keep their proportions."""
    assert arcs([5, 5, 5], sensitive=[WORDS[0]]) == [4, 16, 16]
    assert arcs([5, 5, 5], harmless={WORDS[0]: 1.5, "not there": 1000}) == [6, 4, 4]
    assert arcs([0, 4, 40], spacing=0.5, sensitive={WORDS[2]: 3}, harmless=[WORDS[0]]) == [5, 4, 4]


def test_no_spacing_is_the_space_as_before() -> None:
    plain = build_space(embedding(), counts=COUNTS)
    zero = build_space(embedding(), counts=COUNTS, spacing=0, sensitive=[], harmless={})
    assert (zero.digest, zero.info) == (plain.digest, plain.info)
    assert zero.arcs is None
    seen = {plain.digest}, {plain.info["call"]}
    for how in ({"spacing": 0.5}, {"spacing": 0.25}, {"spacing": 0.5, "harmless": WORDS[:2]}, {"sensitive": WORDS[:2]}):
        space = build_space(embedding(), counts=COUNTS, **how)
        for value, values in zip((space.digest, space.info["call"]), seen, strict=True):
            assert value not in values
            values.add(value)


def test_a_spaced_space_is_saved_loaded_and_pickled_whole(tmp_path: Path) -> None:
    space = build_space(embedding(), counts=COUNTS, spacing=0.5)
    saved = space.save(tmp_path / "s")
    for copy in (load_space(tmp_path / "s"), pickle.loads(pickle.dumps(saved)), pickle.loads(pickle.dumps(space))):
        assert copy == space
        assert np.array_equal(copy.arcs, space.arcs)
        assert np.array_equal(copy.rings[1], np.repeat(space.lists, space.arcs[space.lists[0]], axis=1))
    changed = np.load(tmp_path / "s" / "arcs.npy") + 1
    np.save(tmp_path / "s" / "arcs.npy", changed)
    with refused("damaged-artefact", "digest"):
        load_space(tmp_path / "s")
    (tmp_path / "s" / "arcs.npy").unlink()
    with refused("damaged-artefact"):
        load_space(tmp_path / "s")


@pytest.mark.parametrize("wrong", [[0] + [1] * 59, [1] * 59, [MOST_CELLS] + [1] * 59])
def test_arcs_that_cannot_be_are_refused(wrong: list[int]) -> None:
    space = build_space(embedding(), counts=COUNTS)
    with pytest.raises(cv.UserError, match="arcs"):
        dataclasses.replace(space, arcs=np.array(wrong, np.int64))


def test_the_command_says_the_spacing_and_the_words_that_are_unknown(tmp_path: Path) -> None:
    """``space --spacing``, words with and without a factor, then ``audit`` and ``privatize`` on that space."""
    vectors, counts = tmp_path / "v.txt", tmp_path / "c.tsv"
    rows = zip(WORDS, embedding().vectors.tolist(), strict=True)
    vectors.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows))
    counts.write_text("".join(f"{word}\t{count}\n" for word, count in zip(WORDS, COUNTS.tolist(), strict=True)))
    (tmp_path / "narrow.txt").write_text(f"{WORDS[3]}\n\n{WORDS[4]} 8\nnobody\n")
    (tmp_path / "wide.txt").write_text(f"{WORDS[5]}\t2.5\n")
    command = ["space", "--vectors", vectors, "--counts", counts, "--spacing", 0.5, "--sensitive"]
    command += [tmp_path / "narrow.txt", "--harmless", tmp_path / "wide.txt", "--output", tmp_path / "s"]
    said = succeeds(*command)
    assert "1 of its 3 words are not in the vocabulary" in said.out + said.err
    assert "Spacing 0.5, 3 sensitive and 1 harmless words" in said.out + said.err
    factors = {"sensitive": {WORDS[3]: 4, WORDS[4]: 8, "nobody": 4}, "harmless": {WORDS[5]: 2.5}}
    assert load_space(tmp_path / "s") == build_space(
        cv.read_vectors(vectors), counts=COUNTS, balance=None, spacing=0.5, **factors
    )
    audited = succeeds("audit", "--space", tmp_path / "s", "--mechanism", "ring-geometric", "--epsilon", 1)
    assert "not refuted" in audited.out
    assert "mean arcs" in audited.out
    (tmp_path / "narrow.txt").write_text(f"{WORDS[3]} much\n")
    fails([*command[:-1], tmp_path / "other"], "bad-row", "narrow.txt, line 1")


def test_many_cells_are_avoided() -> None:
    """A ring has at most 16 cells for each word, and every word at least one."""
    wide = np.array(arcs([0] * 59 + [10**9], spacing=1.0))
    assert wide.min() == 1
    assert 800 < wide.sum() <= 16 * 60


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("wrong-value", {"spacing": -0.1}),
        ("wrong-value", {"spacing": 1.5}),
        ("wrong-value", {"sensitive": {"wa": 0}}),
        ("wrong-value", {"harmless": {"wa": float("nan")}}),
        ("wrong-type", {"harmless": "wa"}),
        ("conflicting-settings", {"sensitive": WORDS[:2], "harmless": WORDS[1:3]}),
        ("conflicting-settings", {"spacing": 0.5, "lists": 0}),
        ("missing-setting", {"spacing": 0.5, "counts": None}),
    ],
)
def test_what_cannot_be_spaced_is_said(code: str, how: dict[str, Any]) -> None:
    with refused(code, next(name for name in ("spacing", "sensitive", "harmless") if name in how)):
        build_space(embedding(), **{"counts": COUNTS, **how})
