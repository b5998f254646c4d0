"""Leaked keys: the own key confirms whole guesses, nothing else does, and the report says if keys cannot be tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpusveil.budget import Budget
from corpusveil.mechanisms import make
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil.transforms.identities import RowNumbers
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.table import privatize as privatized
from corpusveil_evaluate.attacks.leaked_keys import replay
from corpusveil_evaluate.matching import match
from corpusveil_evaluate.report.evaluate_release import evaluate_release
from corpusveil_evaluate.report.findings import Findings
from corpusveil_evaluate.report.question import Question
from corpusveil_evaluate.statistics.statistic import Figure
from evaluate.tests.releases import manifest_of, privatize, texts
from tests.engines.corpora import write_shard

CONFIRMED, WORDS, ONE = (
    "documents confirmed, whole guesses",
    "words recovered, whole guesses",
    "one unknown word recovered",
)


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "release.key"
    Key.generate().save(path)
    return path


@pytest.fixture(scope="module")
def secret(source: Path, space: Space, key: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release under a key of its own, at an epsilon that leaves next to no word as it was."""
    return privatize(source, space, tmp_path_factory.mktemp("s") / "out", 0.05, "--key", str(key), "--keep", "url")


def test_a_guess_that_is_wrong_anywhere_confirms_nothing_and_what_any_key_confirms_is_chance(space: Space) -> None:
    """One letter, or another identity: all the noise is another. Control: texts without a word, and no change."""
    key, other, rows = Key.generate(), Key.generate(), RowNumbers("corpus")
    made, sharp = (Release(make("santext", space), Budget(epsilon), key=key) for epsilon in (0.01, 1e4))
    originals, ids = [row["text"] for row in texts(50)], list(range(50))
    private = privatized(originals, made, ids=ids)
    assert replay(made, private, [f"{text}." for text in originals], key, ids=ids).share == 0
    assert replay(made, private, originals, key, ids=rows).share == 0
    assert replay(made, private, originals, key, ids=ids).share == 1
    nothing = ["?! ..."] * 5
    found = replay(made, privatized(nothing, made, rows), nothing, other, ids=rows)
    assert found.share == found.by_chance == 1
    assert replay(sharp, originals, originals, other, ids=rows).by_chance > 0.9


def by_key(found: Findings, name: str) -> dict[str, Figure]:
    return {one.model: one for one in found.measures if one.name == name}


def asked(source: Path, release: Path, space: Space, *keys: Key, id: str | None = None) -> Findings:
    matched = match([str(source)], [str(release)], id=id)
    return evaluate_release(matched, manifest_of(release), Question.of(seeds=2, space=space, keys=keys))


def test_the_releases_own_key_gives_back_what_is_guessed_and_no_other_does(
    source: Path, secret: Path, space: Space, key: Path
) -> None:
    own, other = Key.load(key), Key.generate()
    found = asked(source, secret, space, own, other)
    names = [f"leaked key {one.fingerprint()}" for one in (own, other)]
    for name, expected in zip(["published test key", *names], (0, 1, 0), strict=True):
        for figure in (CONFIRMED, WORDS):
            told = by_key(found, figure)[name]
            assert (told.value, told.floor) == (expected, 0), (name, figure)
        assert ("not made with" in by_key(found, CONFIRMED)[name].note) is (expected == 0)
    assert list(by_key(found, ONE)) == names[:1]
    assert by_key(found, ONE)[names[0]].value == 1  # the candidates are the whole vocabulary
    assert all(one.of_input for one in found.measures if "key" in one.model)


def test_a_document_is_known_by_the_id_that_it_was_released_under(
    source: Path, space: Space, key: Path, tmp_path: Path
) -> None:
    """A release by ids is confirmed by these, and not by files and rows; one by rows also where ids are given."""
    options = ("--key", str(key), "--id", "url", "--keep", "url")
    first = min(source.iterdir())
    made = privatize(first, space, tmp_path / "out", 0.05, *options)
    own = Key.load(key)
    name = f"leaked key {own.fingerprint()}"
    assert by_key(asked(first, made, space, own, id="url"), CONFIRMED)[name].value == 1
    assert by_key(asked(first, made, space, own), CONFIRMED)[name].value == 0


@pytest.mark.parametrize("more", [("--duplicates", "same-noise"), ("--duplicates", "drop", "--text", "body")])
def test_whatever_else_the_release_was_made_with(
    source: Path, space: Space, key: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """The manifest tells it all: copies, the budget, and the column that the noise is of."""
    rows = [{**row, "body": row["text"]} for row in texts(30)] + texts(5) * ("drop" in more)
    write_shard(tmp_path / "in" / "x.jsonl", [{"body": row["text"], **row, "url": n} for n, row in enumerate(rows)])
    made = privatize(tmp_path / "in", space, tmp_path / "out", 0.05, "--key", str(key), "--keep", "url", *more)
    own, text = Key.load(key), "body" if "body" in more else "text"
    matched = match([str(tmp_path / "in")], [str(made)], text=text, id="url")
    found = evaluate_release(matched, manifest_of(made), Question.of(seeds=2, space=space, keys=(own,)))
    assert len(matched.originals) == 30
    assert by_key(found, CONFIRMED)[f"leaked key {own.fingerprint()}"].value == 1


def test_a_release_that_this_version_would_not_make_is_said(source: Path, secret: Path, space: Space) -> None:
    matched, manifest = match([str(source)], [str(secret)]), manifest_of(secret)
    manifest["release"] = "0" * 64
    found = evaluate_release(matched, manifest, Question.of(seeds=2, space=space))
    assert "Keys were not tried" in " ".join(found.notes)
    assert not by_key(found, CONFIRMED)
