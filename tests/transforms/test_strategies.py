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
from corpusveil.cli.main import run
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.errors import ConflictError
from corpusveil.sampling import grid
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from corpusveil.transforms.release.release import Release
from tests.calls import succeeds
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


class TestTheCommand:
    @pytest.fixture
    def ground(self, tmp_path: Path) -> Path:
        SPACE.save(str(tmp_path / "space"))
        pq.write_table(table_of(PAIRS), tmp_path / "table.parquet")
        texts = [EXAMPLE, "The river bank in New York.", "", "I am; I think new york"]
        write_shard(tmp_path / "in" / "a.jsonl", [{"text": text} for text in texts])
        return tmp_path

    def arguments(self, ground: Path, output: str, *more: str) -> list[str]:
        words = ["privatize", str(ground / "in"), "--space", str(ground / "space"), "--mechanism", "cmp", "--test-key"]
        return [*words, "--epsilon", "10", "--output", str(ground / output), "--progress", "none", *more]

    @pytest.mark.parametrize("name", ["s1", "s2", "s3", "s4"])
    def test_a_strategy_is_the_options_it_stands_for(self, ground: Path, name: str) -> None:
        table = [] if name == "s1" else ["--collocations", str(ground / "table.parquet")]
        succeeds(*self.arguments(ground, "a", "--strategy", name, "--epsilon", "75", *table))
        plain = {
            "s1": ["--allocation", "word-share", "--stop-words", "keep"],
            "s2": ["--allocation", "word-share", "--tokenizer", "gst"],
            "s3": ["--tokenizer", "gst"],
            "s4": ["--tokenizer", "mst"],
        }[name]
        succeeds(*self.arguments(ground, "b", "--per", "document", "--epsilon", "75", *plain, *table))
        assert release_files(ground / "a") == release_files(ground / "b")

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            (["--strategy", "s5"], "s1, s2, s3, s4"),
            (["--strategy", "s3"], "--collocations"),
            (["--strategy", "s3", "--tokenizer", "mst"], "--tokenizer: mst contradicts"),
            (["--strategy", "s1", "--per", "token"], "--per: token contradicts"),
            (["--tokenizer", "gst"], "--collocations"),
            (["--collocations", "{table}"], "takes no"),
            (["--allocation", "word-share"], "per document"),
            (["--tokenizer", "gst", "--collocations", "{in}"], "no collocation table"),
        ],
    )
    def test_what_contradicts_it_is_said(
        self, ground: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
    ) -> None:
        filled = [word.format(table=ground / "table.parquet", **{"in": ground / "in"}) for word in more]
        assert run(self.arguments(ground, "out", *filled)) == 2
        assert said in capsys.readouterr().err
        assert not (ground / "out").exists()
