"""Profiles: each is its study's settings, says what they leave in the clear."""

from __future__ import annotations

from typing import Any

import pytest

import corpusveil as cv
from corpusveil.mechanisms.ring_geometric import RingGeometric
from corpusveil_evaluate.studies.profiles import PROFILES
from tests.contracts.spaces import small_space, words_of

# What the papers say, and for D what its package does: per, text, and the parameters of Mahalanobis (lambda), of
# Vickrey (t), TEM (gamma, beta) and CusText (K). Nothing else may be in a profile: it would be our invention.
STUDIES: dict[str, tuple[str, dict[str, str], dict[str, dict[str, Any]]]] = {
    "1-diffractor": (
        "token",
        {
            "unknown_words": "keep", "stop_words": "keep", "numbers": "keep", "contacts": "keep",
            "punctuation": "keep", "other": "keep", "case": "lower",
        },
        {},
    ),
    "collocations": (
        "document",
        {"stop_words": "keep"},
        {"mahalanobis": {"lam": 0.2}, "vickrey-mahalanobis": {"lam": 0.2}},
    ),
    "comparative-mldp": (
        "token",
        {"stop_words": "drop", "numbers": "drop", "punctuation": "drop", "case": "lower"},
        {
            "mahalanobis": {"lam": 0.2}, "vickrey-cmp": {"t": 0.5}, "vickrey-mahalanobis": {"lam": 0.2, "t": 0.5},
            "tem": {"gamma": 0.5},
        },
    ),
    "pypantera": (
        "token",
        {"numbers": "drop", "punctuation": "drop", "case": "lower"},
        {
            "mahalanobis": {"lam": 1.0}, "vickrey-cmp": {"t": 0.75}, "vickrey-mahalanobis": {"lam": 1.0, "t": 0.75},
            "tem": {"beta": 0.001}, "custext": {"K": 10},
        },
    ),
    "adversarial-robustness": ("token", {"stop_words": "privatize"}, {}),
}  # fmt: skip
WORDS = words_of(40)
TEXT = f"The {WORDS[0]}, 12 zzcanary {WORDS[1]}! \U0001f600 a@b.example"


def test_a_profile_is_what_the_study_says_and_no_more() -> None:
    """Under names of parameters that the mechanisms have."""
    space = small_space(words=WORDS)
    assert set(PROFILES) == set(STUDIES)
    for name, study in STUDIES.items():
        profile = PROFILES[name]
        assert (profile.per, profile.text, profile.parameters) == study
        for mechanism, given in profile.parameters.items():
            made = cv.mechanism(mechanism, space, **given)
            assert {parameter: made.parameters()[parameter] for parameter in given} == dict(given)


@pytest.mark.parametrize("name", STUDIES)
def test_the_sentence_names_what_comes_out_unchanged(name: str) -> None:
    """What the kernel leaves of a text with every kind of token in it is what the profile says it leaves."""
    policy = PROFILES[name].policy()
    release = cv.Release(RingGeometric(small_space(words=WORDS)), cv.Budget(1e-6), policy, cv.Key.for_tests())
    out = " ".join(cv.privatize([TEXT] * 3, release, ids=["a", "b", "c"]))
    said = PROFILES[name].in_the_clear()
    assert 1 <= said.count(".") <= 2
    for token, words in (
        ("the", "stop words"), ("zzcanary", "words outside the vocabulary"), ("12", "numbers"),
        ("!", "punctuation"), ("\U0001f600", "emoji"), ("a@b.example", "e-mail addresses"),
    ):  # fmt: skip
        assert (token in out) == (words in said), token
