"""Strategies S1 to S4: how text is parted, how a document's budget is shared, and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusveil as cv
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.errors import ConflictError
from corpusveil.sampling import grid
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from corpusveil.transforms.release.release import Release
from tests.calls import QUIET, succeeds
from tests.engines.corpora import TEST_KEY, release_files, write_shard
from tests.kernel.test_kernel import Spy

WORDS = ["i", "think", "therefore", "am", "river", "bank", "the", "new", "york"]
PAIRS = {"i think": 4.23, "therefore i": 3.3, "i am": 8.2, "new york": 9.0, "the river bank": 5.0}
TOKENS = [pair.replace(" ", "_") for pair in PAIRS]
KEY, GST = cv.Key(TEST_KEY), cv.TextPolicy(tokenizer="gst")
EXAMPLE = "I think, therefore I am"


def space_of(words: Sequence[str]) -> Space:
    vectors = np.random.default_rng(3).standard_normal((len(words), 5)).astype(np.float32)
    return cv.build_space(Vectors(list(words), vectors))


SPACE = space_of([*WORDS, *TOKENS])


def table_of(pairs: dict[str, float]) -> pa.Table:
    numbers = pa.array([pair.count(" ") + 1 for pair in pairs], pa.int8())
    return pa.table({"ngram": list(pairs), "n": numbers, "count": [9] * len(pairs), "score": list(pairs.values())})


TABLE = Collocations.of(table_of(PAIRS))


@pytest.mark.parametrize(
    ("tokenizer", "allocation", "units", "shared_by"),
    [
        ("word", "word-share", ["i", "think", "therefore", "i", "am"], 5),
        ("gst", "word-share", ["i_think", "therefore_i", "am"], 5),
        ("gst", "uniform", ["i_think", "therefore_i", "am"], 3),
        ("mst", "uniform", ["i_think", "therefore", "i_am"], 3),
    ],
    ids=["S1", "S2", "S3", "S4"],
)
def test_the_studys_example(
    monkeypatch: pytest.MonkeyPatch, tokenizer: Any, allocation: Any, units: list[str], shared_by: int
) -> None:
    """The units of each strategy and the budget of each; the comma, which the study counts, is no word of ours."""
    mechanism = cv.mechanism("ring-geometric", SPACE)
    spy = Spy(monkeypatch, mechanism)
    policy = cv.TextPolicy(tokenizer=tokenizer)
    table = None if tokenizer == "word" else TABLE
    release = Release(mechanism, cv.Budget(10.0, "document", allocation), policy, KEY, table)
    (text,) = cv.privatize([EXAMPLE], release, ["a"])
    assert [[SPACE.word(id) for id in ids] for ids in spy.ids] == [units]
    (share,) = set(spy.epsilons)
    assert share == grid.round_down(np.array([10.0 / shared_by]))[0] <= 10.0 / shared_by
    assert "_" not in text
    assert text.count(",") == 1


def test_s1_leaves_stop_words_and_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop words stay, and the budget is still divided by all words."""
    mechanism = cv.mechanism("ring-geometric", SPACE)
    spy = Spy(monkeypatch, mechanism)
    policy = cv.TextPolicy(stop_words="keep")
    release = Release(mechanism, cv.Budget(8.0, "document", "word-share"), policy, KEY)
    (text,) = cv.privatize(["the river the bank"], release, ["a"])
    assert [SPACE.word(id) for id in spy.ids[0]] == ["river", "bank"]
    assert set(spy.epsilons) == {2.0}
    assert text.split()[0] == text.split()[2] == "the" or text.startswith("the ")


def test_only_collocations_of_the_space_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collocation without a vector stays apart, and its words are privatized; a word without one is unknown."""
    space = space_of([*WORDS[:-1], "i_think", "new_york"])
    mechanism = cv.mechanism("ring-geometric", space)
    spy = Spy(monkeypatch, mechanism)
    release = Release(mechanism, cv.Budget(1.0), GST, KEY, TABLE)
    cv.privatize(["I think I am, new York; york the river bank"], release, ["a"])
    assert [space.word(id) for id in spy.ids[0]] == ["i_think", "i", "am", "new_york", "the", "river", "bank"]


def test_the_table_is_part_of_the_release() -> None:
    """Another table is another release; the same one in another order is not; none leaves digests as they were."""
    mechanism = cv.mechanism("ring-geometric", SPACE)

    def digest(table: Collocations | None, tokenizer: Any = "gst") -> str:
        policy = cv.TextPolicy(tokenizer=tokenizer)
        return Release(mechanism, cv.Budget(1.0), policy, KEY, table).digest

    turned = Collocations.of(table_of(dict(reversed(PAIRS.items()))))
    other = Collocations.of(table_of({**PAIRS, "i am": 1.0}))
    assert digest(TABLE) == digest(turned) != digest(other)
    assert digest(TABLE) != digest(TABLE, "mst")
    for table, tokenizer in ((None, "gst"), (TABLE, "word")):
        with pytest.raises(ConflictError):
            digest(table, tokenizer)


@pytest.mark.parametrize(("name", "plain"), [
    ("s1", ["--allocation", "word-share", "--stop-words", "keep"]),
    ("s2", ["--allocation", "word-share", "--tokenizer", "gst"]), ("s3", ["--tokenizer", "gst"]),
    ("s4", ["--tokenizer", "mst"]),
])  # fmt: skip
def test_a_strategy_is_the_options_it_stands_for(tmp_path: Path, name: str, plain: list[str]) -> None:
    SPACE.save(str(tmp_path / "space"))
    pq.write_table(table_of(PAIRS), tmp_path / "table.parquet")
    texts = [EXAMPLE, "The river bank in New York.", "", "I am; I think new york"]
    source = write_shard(tmp_path / "in" / "a.jsonl", [{"text": text} for text in texts])
    words = ["privatize", source, "--space", tmp_path / "space", "--mechanism", "cmp", "--test-key", "--epsilon", "75"]
    words += [] if name == "s1" else ["--collocations", tmp_path / "table.parquet"]
    succeeds(*words, "--output", tmp_path / "a", "--strategy", name, *QUIET)
    succeeds(*words, "--output", tmp_path / "b", "--per", "document", *plain, *QUIET)
    assert release_files(tmp_path / "a") == release_files(tmp_path / "b")
