"""Attackers over the whole vocabulary: laws by steps against whole rows, and no attacker below a simpler one."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import pytest

from corpusveil.collocations.public_texts import public_texts
from corpusveil.mechanisms import make_mechanism
from corpusveil.spaces import Space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil_evaluate.attacks import word_attacks
from corpusveil_evaluate.attacks.word_attacks import (
    attack_words,
    prior_by,
)
from corpusveil_evaluate.readers.ngrams.word_risk import word_risk
from corpusveil_evaluate.report.findings import Findings
from corpusveil_evaluate.statistics.perplexity import KneserNey
from tests.mechanisms.spaces import normal

CHAIN = ("words guessed by the released word", "words guessed one by one", "words guessed from context")


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return list(itertools.islice(public_texts(), 300))


@pytest.fixture(scope="module")
def language(texts: list[str]) -> KneserNey:
    return KneserNey.of_texts(texts[::2])


@pytest.fixture(scope="module")
def space(texts: list[str]) -> Space:
    """Return more words than any attacker of frequent words would consider, of which a language model lacks some."""
    counts = Counter(re.findall(r"[a-z]+", " ".join(texts).lower()))
    words = sorted(counts)
    assert len(words) > 5000
    return build_space(Vectors(words, normal(len(words), 4)))


def test_a_reader_of_half_of_the_originals_is_not_one_of_public_text(
    space: Space, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside each other, on the same words: a public model of other text guesses less than one of these originals."""
    monkeypatch.setattr(word_attacks, "ATTACKED", 2000)
    own, other = KneserNey.of_texts(texts[:150]), KneserNey.of_texts(texts[150:])
    given = {"epsilon_given": True, "model_public": False, "public": other.model}
    found = {
        each.name: each
        for each in attack_words(make_mechanism("ring-geometric", space), 0.5, texts[:150], own, **given)
    }  # type: ignore[arg-type]
    public, half = (found[f"content words guessed {how}"] for how in ("from context", "with half of the originals"))
    assert public.value < half.value - 0.05
    first = Findings("release", None, None, (), (), tuple(found.values())).lines()[:2]
    assert [line.partition(" (")[0] for line in first] == [public.name, half.name]
    assert (public.model, half.model) == (
        "a reader with public trigrams", "a reader with trigrams of every second original, who guesses the others",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [("ring-geometric", 1.0), ("diffractor-geometric", 5.0), pytest.param("cmp", 2.0, marks=pytest.mark.nightly)],
)
def test_no_printed_attack_is_below_a_simpler_one(
    space: Space, texts: list[str], language: KneserNey, name: str, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not guessing at all <= one by one <= from context, on every page, and what is promised of them likewise."""
    monkeypatch.setattr(word_attacks, "ATTACKED", 400)
    found = [
        *attack_words(make_mechanism(name, space), epsilon, texts, language, epsilon_given=True, model_public=True)
    ]
    for chain in (CHAIN, [f"content {name}" for name in CHAIN[1:]]):
        shares = [one.value for wanted in chain for one in found if one.name == wanted]
        assert len(shares) == len(chain)
        assert shares == sorted(shares)
    if name == "cmp":  # has no law to be optimal by
        assert "public samples" in next(one for one in found if one.name == CHAIN[1]).note
        return
    (risk,) = [one for one in found if one.name == "words guessed, Bayes-optimal"]
    assert risk.floor is not None
    assert risk.value >= risk.floor
    assert risk.value == word_risk(make_mechanism(name, space), epsilon, prior_by(language, space)).share
