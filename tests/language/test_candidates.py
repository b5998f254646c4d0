"""For a model of the user's own: the likeliest originals of released words, with the law that was sampled."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.language.candidates import SCHEMA
from corpusveil.spaces import Space
from tests.calls import refused
from tests.language.random_texts import corpus
from tests.language.test_denoise import KEY, VOCABULARY, release_of, space, space_of, texts_of

__all__ = ["space"]  # a fixture


@pytest.mark.parametrize(
    ("name", "budget"),
    [
        ("ring-geometric", cv.Budget(0.3)),
        ("diffractor-geometric", cv.Budget(2.0)),
        ("santext", cv.Budget(30.0, "document")),
        ("cmp", cv.Budget(1.0)),
    ],
)
def test_the_likeliest_words_of_all_are_listed_with_the_law_that_is_sampled(
    tmp_path: Path, name: str, budget: cv.Budget
) -> None:
    """K of all words, by prior times law, the released word among them; an estimated law says so.

    Of three lists the choice is part of the law; a document's budget is shared among its words. Without a model,
    priors are the counts of the space.
    """
    rng = np.random.default_rng(0)
    vectors = cv.Vectors(VOCABULARY, rng.normal(size=(40, 4)).astype(np.float32))
    space = cv.build_space(vectors, lists=3, counts=rng.integers(1, 1000, 40))
    assert space.counts is not None
    mechanism, shares = cv.mechanism(name, space), (space.counts + 0.5) / (space.counts + 0.5).sum()
    texts = ["Aa é AB.  ac", "", "ad\n(ae) zz 12", *corpus(8, 6, 40)]
    release = release_of(space, tmp_path, texts, numbers="keep", mechanism=mechanism, budget=budget)
    tables = [table for _, table in cv.candidates(release, space=space, count=4)]
    rows = [row for table in tables for row in table.to_pylist()]
    assert [row["text"] for row in rows] == texts_of(release)
    assert all(table.schema == SCHEMA for table in tables)
    assert {place["exact"] for row in rows for place in row["places"]} == {name != "cmp"}
    for row in rows if name != "cmp" else []:
        count = np.array([len(row["places"])])
        epsilon = float(budget.shares(count)[0]) if budget.per == "document" and count else budget.epsilon
        law = mechanism.distributions(np.arange(40), epsilon)
        for place in row["places"]:
            assert row["text"][place["start"] : place["end"]].lower() == place["word"]
            output = space.id(place["word"])
            best = np.argsort(-shares * law[:, output], kind="stable")[:4].tolist()
            best = best if output in best else [*best[:-1], output]
            assert [space.id(candidate["word"]) for candidate in place["candidates"]] == best
            for word, candidate in zip(best, place["candidates"], strict=True):
                exact = np.log(law[word, output])
                assert abs(candidate["log_likelihood"] - exact) < 1e-14 + 1e-15 * abs(exact)
                assert candidate["log_prior"] == pytest.approx(np.log(shares[word]), abs=1e-14)


def test_every_row_of_every_shard_is_listed_and_nothing_of_other_columns(space: Space, tmp_path: Path) -> None:
    """By the shard's name and the row's number, without a text too; kept columns are the user's to join."""
    (tmp_path / "in").mkdir()
    texts = [*corpus(7, 5, 40), None]
    for name in ("a.jsonl", "b.jsonl"):
        rows = [{"text": text, "kept": "canarycolumn"} for text in texts]
        (tmp_path / "in" / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = cv.Release(cv.mechanism("ring-geometric", space), cv.Budget(1.0), cv.TextPolicy(), key=KEY)
    cv.privatize_corpus(str(tmp_path / "in"), str(tmp_path / "release"), made, keep=["kept"])
    tables = [*cv.candidates(str(tmp_path / "release"), space=space, count=2)]
    names = [name for name, table in tables for _ in range(len(table))]
    rows = [row for _, table in tables for row in table.to_pylist()]
    assert [(name, row["row"]) for name, row in zip(names, rows, strict=True)] == [
        (f"data/part-0000{shard}-of-00002.jsonl", row) for shard in (0, 1) for row in range(len(texts))
    ]
    assert [row["text"] for row in rows] == texts_of(tmp_path / "release")
    assert "canarycolumn" not in str(rows)


def test_wrong_calls_and_changed_releases_are_refused(space: Space, tmp_path: Path) -> None:
    """Wrong settings when the call is made; a changed shard before any of its rows is given."""
    release = release_of(space, tmp_path, corpus(9, 5, 40))
    for count in (0, 257, 2.0, True):
        with refused("wrong-value", f"count = {count}"):
            cv.candidates(release, space=space, count=count)
    with refused("mismatch", "another space"):
        cv.candidates(release, space=space_of(VOCABULARY, seed=1))
    shard = next(Path(release, "data").iterdir())
    shard.write_text(shard.read_text().replace("a", "b", 1))
    with refused("input-changed", shard.name):
        next(cv.candidates(release, space=space))
