"""A model of the user's own: candidates with the law that was sampled, and a function that chooses among them."""

from __future__ import annotations

import gc
import itertools
import json
import pickle
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import corpusveil as cv
from corpusveil.errors import ChooserError, InUseError
from corpusveil.jobs.local import Local
from corpusveil.language.choosing import BATCH, SCHEMA, Chooser, ReleasedText
from corpusveil.language.denoise import Search
from corpusveil.language.model import LanguageModel
from corpusveil.spaces import Space
from corpusveil.transforms.release.denoise_corpus import denoise
from tests.calls import refused
from tests.language.random_texts import corpus
from tests.language.test_denoise import KEY, VOCABULARY, model, release_of, space, texts_of

__all__ = ["model", "space"]  # fixtures
SCRIPT = """
def choose(batch):
    return [[len(place.candidates) - 1 for place in document.places] for document in batch]
"""


def released(batch: Sequence[ReleasedText]) -> list[list[int]]:
    """Choose the released words."""
    return [[[c.word for c in place.candidates].index(place.word) for place in document.places] for document in batch]


def likeliest(batch: Sequence[ReleasedText]) -> list[Any]:
    """Choose by numpy's numbers."""
    return [np.zeros(len(document.places), np.int64) for document in batch]


def listed(output: str | Path) -> list[dict[str, Any]]:
    return [row for path in sorted(Path(output, "data").iterdir()) for row in pq.read_table(path).to_pylist()]


# The table


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
    denoise(release, str(tmp_path / "out"), space=space, candidates=4)
    rows = listed(tmp_path / "out")
    assert [row["text"] for row in rows] == texts_of(release)
    assert pq.read_schema(next((tmp_path / "out" / "data").iterdir())) == SCHEMA
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


# The chooser


def test_what_is_chosen_is_written_with_the_layout_capitals_and_masks_of_the_release(
    space: Space, model: LanguageModel, tmp_path: Path
) -> None:
    """Choosing the released words writes the release; choosing others, other words in the same places."""
    texts = ["AA  ab;\n Ac zzz 12", "", "[unknown]", "Ad aé — ae AF"]
    release = release_of(space, tmp_path, texts, unknown_words="mask", numbers="keep", case="restore", layout="keep")
    denoise(release, str(tmp_path / "same"), space=space, chooser=released)
    assert texts_of(tmp_path / "same") == texts_of(release)
    last = [lambda batch: [[2] * len(document.places) for document in batch], likeliest]
    for number, chooser in enumerate(last):
        output = tmp_path / str(number)
        denoise(release, str(output), space=space, model=model, candidates=3, chooser=chooser)
        denoise(release, f"{output}-listed", space=space, model=model, candidates=3)
        for text, row in zip(texts_of(output), listed(f"{output}-listed"), strict=True):
            expected, end = "", 0
            for place in row["places"]:
                seen = row["text"][place["start"] : place["end"]]
                word = place["candidates"][2 - 2 * number]["word"]
                word = word.upper() if seen.isupper() else word.capitalize() if seen.istitle() else word
                expected += row["text"][end : place["start"]] + word
                end = place["end"]
            assert text == expected + row["text"][end:]


CANARIES = {"an original word": "zzcanaryword", "a kept column": "canarycolumn", "a file": "canaryfile"}


def test_the_chooser_sees_released_text_and_candidates_alone(space: Space, tmp_path: Path) -> None:
    """Canaries are in the original, its key, a kept column, the records and paths; none is in anything that it gets.

    All objects that can be reached are looked at: they are tuples, texts and numbers. The release itself has the kept
    column, so a view that carried its rows would be caught.
    """
    folder = tmp_path / "canaryfile"
    (folder / "in").mkdir(parents=True)
    rows = [{"text": f"{text} zzcanaryword", "kept": "canarycolumn"} for text in corpus(200, 4, 40)]
    (folder / "in" / "canaryfile.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = cv.Release(cv.mechanism("ring-geometric", space), cv.Budget(1.0), cv.TextPolicy(), KEY)
    cv.privatize_corpus(str(folder / "in"), str(folder / "release"), made, keep=["kept"])
    assert "canarycolumn" in next((folder / "release" / "data").iterdir()).read_text()
    seen: list[Any] = []

    def choose(*given: Any, **named: Any) -> list[list[int]]:
        assert (len(given), named) == (1, {})
        seen.append(given[0])
        return likeliest(given[0])

    denoise(str(folder / "release"), str(folder / "out"), space=space, chooser=choose)
    assert len(seen) > 1
    assert max(map(len, seen)) == BATCH
    reached, left = set(), list(itertools.chain(*seen))
    while left:
        value = left.pop()
        reached.add(type(value).__name__)
        if not isinstance(value, str | int | float):
            left += value if isinstance(value, tuple) else gc.get_referents(value)
    assert reached == {"tuple", "ReleasedText", "Place", "Candidate", "str", "int", "float"}
    data = pickle.dumps(seen)
    assert texts_of(folder / "release")[0].encode() in data
    for what, canary in CANARIES.items():
        assert canary.encode() not in data, what
    assert bytes(range(32)) not in data
    with pytest.raises(AttributeError):
        seen[0][0].text = "x"
    written = next((folder / "out" / "data").iterdir()).read_text().splitlines()
    assert {json.loads(line)["kept"] for line in written} == {"canarycolumn"}


WRONG_ANSWERS: list[Callable[[Any], Any]] = [
    lambda batch: None,
    lambda batch: 1 / 0,
    lambda batch: sys.exit(3),
    lambda batch: [],
    lambda batch: [[0] * (len(d.places) + 1) for d in batch],
    lambda batch: [[4] * len(d.places) for d in batch],
    lambda batch: [[-1] * len(d.places) for d in batch],
    lambda batch: [[0.0] * len(d.places) for d in batch],
]


def test_what_is_wrong_ends_the_run_in_a_sentence(space: Space, model: LanguageModel, tmp_path: Path) -> None:
    """Nothing is half written: an answer, a chooser that cannot be had, and calls that make no sense."""
    release, out = release_of(space, tmp_path, corpus(9, 5, 40)), str(tmp_path / "out")
    for number, answer in enumerate(WRONG_ANSWERS):
        with refused("chooser-failed", "chooser tests.language.test_choosing:<lambda>"):
            denoise(release, f"{out}{number}", space=space, candidates=4, chooser=answer)
        assert not list(tmp_path.glob("out*/data/*"))
        assert not list(tmp_path.glob("out*/manifest.json"))
    for name in ("json", "json:", ":choose", "no_such_module:choose", "json:no_such", "json:dumps.x"):
        with refused("chooser-failed", name):
            Chooser.of(name)
    calls: dict[str, dict[str, Any]] = {
        "chooser-failed": {"chooser": WRONG_ANSWERS[0], "engine": Local(2)},
        "wrong-value": {"candidates": 0},
        "mismatch": {"model": model, "candidates": 3, "search": Search()},
        "missing-setting": {},
    }
    for code, options in calls.items():
        with refused(code):
            denoise(release, out, space=space, **options)
    assert not Path(out).exists()


def test_processes_import_the_chooser_and_a_changed_one_is_refused(
    space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the working folder; the manifest has its name and the digest of its file."""
    release = release_of(space, tmp_path, corpus(40, 5, 40))
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "some_chooser.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "path", [*sys.path])
    name = "some_chooser:choose"
    options: dict[str, Any] = {"space": space, "candidates": 2, "chooser": name}
    denoise(release, str(tmp_path / "out"), **options, engine=Local(2))
    denoised = json.loads((tmp_path / "out" / "manifest.json").read_text())["denoised"]
    assert (denoised["chooser"], denoised["candidates"]) == (name, 2)
    denoise(release, str(tmp_path / "alone"), **options)
    assert texts_of(tmp_path / "out") == texts_of(tmp_path / "alone")
    (tmp_path / "here" / "some_chooser.py").write_text(SCRIPT + "# changed\n")
    with pytest.raises(InUseError):
        denoise(release, str(tmp_path / "out"), **options)
    worker = pickle.loads(pickle.dumps(Chooser(name, denoised["chooser_sha256"])))
    with pytest.raises(ChooserError, match="another file"):
        worker([])
