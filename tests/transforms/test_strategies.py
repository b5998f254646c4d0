"""Collocations in releases: strategies S1 to S4, how a document's budget is shared, and what is stated of documents.

Whole documents are enumerated: what an allocation promises is what its exact output distribution keeps; statements are
held against the epsilons that the kernel really gives to units.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusveil as cv
from corpusveil.budget import Budget
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.errors import SettingError
from corpusveil.mechanisms import Mechanism
from corpusveil.sampling import grid
from corpusveil.transforms.release.release import Release
from tests.calls import QUIET, save, succeeds
from tests.contracts.spaces import ring_distances, small_space
from tests.engines.corpora import TEST_KEY, release_files, write_shard
from tests.kernel.test_kernel import Spy

WORDS = ["i", "think", "therefore", "am", "river", "bank", "the", "new", "york"]
PAIRS = {"i think": 4.23, "therefore i": 3.3, "i am": 8.2, "new york": 9.0, "the river bank": 5.0}
TOKENS = [pair.replace(" ", "_") for pair in PAIRS]
KEY, GST = cv.Key(TEST_KEY), cv.TextPolicy(tokenizer="gst")
EXAMPLE = "I think, therefore I am"


SPACE = small_space(words=[*WORDS, *TOKENS])


def table_of(pairs: dict[str, float]) -> pa.Table:
    numbers = pa.array([pair.count(" ") + 1 for pair in pairs], pa.int8())
    return pa.table({"ngram": list(pairs), "n": numbers, "count": [9] * len(pairs), "score": list(pairs.values())})


TABLE = Collocations.from_table(table_of(PAIRS))


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
    release = Release(mechanism, cv.Budget(10.0, "document", allocation), policy, key=KEY, collocations=table)
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
    release = Release(mechanism, cv.Budget(8.0, "document", "word-share"), policy, key=KEY)
    (text,) = cv.privatize(["the river the bank"], release, ["a"])
    assert [SPACE.word(id) for id in spy.ids[0]] == ["river", "bank"]
    assert set(spy.epsilons) == {2.0}
    assert text.split()[0] == text.split()[2] == "the" or text.startswith("the ")


def test_only_collocations_of_the_space_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collocation without a vector stays apart, and its words are privatized; a word without one is unknown."""
    space = small_space(words=[*WORDS[:-1], "i_think", "new_york"])
    mechanism = cv.mechanism("ring-geometric", space)
    spy = Spy(monkeypatch, mechanism)
    release = Release(mechanism, cv.Budget(1.0), GST, key=KEY, collocations=TABLE)
    cv.privatize(["I think I am, new York; york the river bank"], release, ["a"])
    assert [space.word(id) for id in spy.ids[0]] == ["i_think", "i", "am", "new_york", "the", "river", "bank"]


def test_the_table_is_part_of_the_release() -> None:
    """Another table is another release; the same one in another order is not; none leaves digests as they were."""
    mechanism = cv.mechanism("ring-geometric", SPACE)

    def digest(table: Collocations | None, tokenizer: Any = "gst") -> str:
        policy = cv.TextPolicy(tokenizer=tokenizer)
        return Release(mechanism, cv.Budget(1.0), policy, key=KEY, collocations=table).digest

    turned = Collocations.from_table(table_of(dict(reversed(PAIRS.items()))))
    other = Collocations.from_table(table_of({**PAIRS, "i am": 1.0}))
    assert digest(TABLE) == digest(turned) != digest(other)
    assert digest(TABLE) != digest(TABLE, "mst")
    for table, tokenizer in ((None, "gst"), (TABLE, "word")):
        with pytest.raises(SettingError):
            digest(table, tokenizer)


FEW = ("river", "lake", "bank", "loan", "new_york")
SLACK = 1e-4
"""Integer weights: 2^-19 a token, and rounding."""

Epsilons = Callable[[Sequence[int]], list[float]]
Reading = Callable[[list[float], list[float]], float]


@pytest.fixture(scope="module")
def mechanism() -> Mechanism:
    return cv.mechanism("ring-geometric", small_space(words=FEW))


def law(mechanism: Mechanism, document: Sequence[int], epsilons: Sequence[float]) -> npt.NDArray[np.float64]:
    """Return the logarithm of the probability of every output document."""
    out = np.zeros(())
    for word, epsilon in zip(document, epsilons, strict=True):
        out = np.add.outer(out, np.log(mechanism.distribution(word, epsilon)))
    return out


def excesses(mechanism: Mechanism, epsilons: Epsilons, readings: Sequence[Reading]) -> list[float]:
    """Return by how much the worst log-ratio of two documents of one skeleton exceeds readings of the bound."""
    worst = [-np.inf] * len(readings)
    distances = ring_distances(mechanism.space)  # gamma only shortens them
    documents = list(itertools.product(range(len(FEW)), repeat=3))
    shares = {document: epsilons(document) for document in documents}
    laws = {document: law(mechanism, document, shares[document]) for document in documents}
    for first, second in itertools.product(documents, repeat=2):
        lengths = [[FEW[word].count("_") for word in document] for document in (first, second)]
        if first == second or lengths[0] != lengths[1]:
            continue
        steps = [float(distances[a, b]) for a, b in zip(first, second, strict=True)]
        ratio = float((laws[first] - laws[second]).max())
        worst = [max(most, ratio - read(shares[first], steps)) for most, read in zip(worst, readings, strict=True)]
    return worst


READINGS: list[Reading] = [
    lambda shares, steps: float(np.dot(shares, steps)),  # each times its own distance
    lambda shares, steps: max(shares) * sum(steps),
    lambda shares, steps: sum(shares) * max(steps),
]
SOUND = {
    "per token": Budget(0.9),
    "uniform": Budget(3.0, "document"),
    "word-share": Budget(3.0, "document", "word-share"),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_allocation_keeps_every_reading_and_no_smaller_one_would_do(
    monkeypatch: pytest.MonkeyPatch, mechanism: Mechanism, name: str
) -> None:
    """All 125 documents of three units against all others of one skeleton, over all 125 outputs."""
    spy, table = Spy(monkeypatch, mechanism), Collocations.from_table(table_of({"new york": 9.0}))
    release = cv.Release(mechanism, SOUND[name], GST, key=KEY, collocations=table)

    def epsilons(document: Sequence[int]) -> list[float]:
        """Return the epsilons of a document's tokens, as the kernel really hands them out."""
        spy.epsilons.clear()
        cv.privatize([", ".join(FEW[word].replace("_", " ") for word in document)], release, ["a"])
        return list(spy.epsilons)

    *kept, smaller = excesses(
        mechanism, epsilons, [*READINGS, lambda shares, steps: 0.9 * float(np.dot(shares, steps))]
    )
    assert max(kept) <= SLACK
    assert smaller > 0.1


def by_rarity(document: Sequence[int]) -> list[float]:
    """Share E = 3 by how rare a word is: inverse document frequency, as many papers do."""
    rarity = np.array([1.0, 1.5, 2.5, 4.0, 6.0])[list(document)]
    return list(3 * rarity / rarity.sum())


def test_an_allocation_that_looks_at_the_words_breaks_them_all(mechanism: Mechanism) -> None:
    """Which is why such names are refused: two documents get budgets that tell them apart."""
    assert min(excesses(mechanism, by_rarity, READINGS)) > 0.1


@pytest.mark.parametrize(("name", "plain"), [
    ("s1", {"budget": {"allocation": "word-share"}}),
    ("s2", {"budget": {"allocation": "word-share"}, "text": {"tokenizer": "gst"}}),
    ("s3", {"text": {"tokenizer": "gst"}}), ("s4", {"text": {"tokenizer": "mst"}}),
])  # fmt: skip
def test_a_strategy_is_the_options_it_stands_for(tmp_path: Path, name: str, plain: dict[str, dict[str, str]]) -> None:
    SPACE.save(str(tmp_path / "space"))
    pq.write_table(table_of(PAIRS), tmp_path / "table.parquet")
    texts = [EXAMPLE, "The river bank in New York.", "", "I am; I think new york"]
    source = write_shard(tmp_path / "in" / "a.jsonl", [{"text": text} for text in texts])
    table = {} if name == "s1" else {"collocations": str(tmp_path / "table.parquet")}
    for output, budget, text in (
        ("a", {"strategy": name}, {}), ("b", {"per": "document", **plain.get("budget", {})}, plain.get("text", {})),
    ):  # fmt: skip
        given = {
            "corpus": {"input": [str(source)]}, "space": {"path": str(tmp_path / "space")},
            "mechanism": {"name": "cmp"},
            "budget": {"epsilon": 75.0, **budget}, "text": {**table, **text}, "key": {"test": True},
            "output": {"path": str(tmp_path / output)},
        }  # fmt: skip
        succeeds("run", save(tmp_path / f"{output}.toml", given), *QUIET)
    assert release_files(tmp_path / "a") == release_files(tmp_path / "b")
