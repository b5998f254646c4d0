"""Profiles: each is its study's settings, says what they leave in the clear, and gives way to no explicit option."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.cli.derived import settings_of
from corpusveil.cli.main import run
from corpusveil.mechanisms.ring_geometric import RingGeometric
from corpusveil.spaces.vectors import Vectors
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.release.presets import PROFILES
from tests.calls import refused
from tests.contracts.spaces import small_space, words_of
from tests.engines.corpora import manifest

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
        profile = cv.profile(name)
        assert (profile.per, profile.text, profile.parameters) == study
        for mechanism, given in profile.parameters.items():
            made = cv.mechanism(mechanism, space, **given)
            assert {parameter: made.parameters()[parameter] for parameter in given} == dict(given)


@pytest.mark.parametrize("name", STUDIES)
def test_the_sentence_names_what_comes_out_unchanged(name: str) -> None:
    """What the kernel leaves of a text with every kind of token in it is what the profile says it leaves."""
    policy = cv.profile(name).policy()
    release = cv.Release(RingGeometric(small_space(words=WORDS)), cv.Budget(1e-6), policy, cv.Key.for_tests())
    out = " ".join(cv.privatize([TEXT] * 3, release, ids=["a", "b", "c"]))
    said = cv.profile(name).in_the_clear()
    assert 1 <= said.count(".") <= 2
    for token, words in (
        ("the", "stop words"), ("zzcanary", "words outside the vocabulary"), ("12", "numbers"),
        ("!", "punctuation"), ("\U0001f600", "emoji"), ("a@b.example", "e-mail addresses"),
    ):  # fmt: skip
        assert (token in out) == (words in said), token


def test_a_policy_takes_what_the_study_leaves_open_and_refuses_the_rest() -> None:
    assert cv.profile("collocations").policy(punctuation="drop") == TextPolicy(stop_words="keep", punctuation="drop")
    with refused("conflicting-settings", "stop_words = 'mask'"):
        cv.profile("collocations").policy(stop_words="mask")
    with refused("unknown-name", "pypantera"):
        cv.profile("pypantra")


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profiles")
    vectors = np.random.default_rng(1).standard_normal((len(WORDS), 4)).astype(np.float32)
    cv.build_space(Vectors(list(WORDS), vectors)).save(str(folder / "space"))
    (folder / "in.jsonl").write_text(json.dumps({"text": TEXT}) + "\n")
    return folder


def privatize(ground: Path, output: Path, *more: str) -> int:
    words = ["privatize", ground / "in.jsonl", "--space", ground / "space", "--output", output]
    settings = ["--mechanism", "ring-geometric", "--epsilon", "2", "--test-key", "--progress", "none"]
    return run([str(word) for word in (*words, *settings, *more)])


class TestOnTheCommandLine:
    @pytest.mark.parametrize("name", ["1-diffractor", "collocations"])
    def test_it_is_its_options_written_out(
        self, name: str, ground: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """With the profile and with its options: one digest, one manifest, without its name; and it says what it is."""
        per, text, _ = STUDIES[name]
        options = [word for field, value in text.items() for word in (f"--{field.replace('_', '-')}", value)]
        assert privatize(ground, tmp_path / "a", "--profile", name) == 0
        ended = capsys.readouterr()
        assert all(line in ended.err.splitlines() for line in cv.profile(name).lines())
        assert privatize(ground, tmp_path / "b", "--per", per, *options) == 0
        assert manifest(tmp_path / "a") == manifest(tmp_path / "b")
        assert manifest(tmp_path / "a")["configuration"]["budget"]["per"] == per
        assert manifest(tmp_path / "a")["configuration"]["text"].items() >= text.items()

    @pytest.mark.parametrize(
        ("profile", "more", "said"),
        [
            ("collocations", ["--per", "token"], "--per: token contradicts the profile collocations"),
            ("pypantera", ["--punctuation", "keep"], "--punctuation: keep contradicts the profile pypantera"),
            ("1-difractor", [], "did you mean 1-diffractor?"),
        ],
    )
    def test_against_another_option_it_is_refused(
        self, ground: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], profile: str, more: list[str], said: str
    ) -> None:
        """One sentence that names both, also where the option is the value that would hold without a profile."""
        assert privatize(ground, tmp_path / "out", "--profile", profile, *more) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
        assert not (tmp_path / "out").exists()

    def test_a_parameter_of_the_chosen_mechanism_is_settled_and_no_other(self) -> None:
        """Of all the profile's parameters those of the chosen mechanism are taken; a contradiction is refused."""

        def settled(mechanism: str, *parameters: str) -> dict[str, Any]:
            given = {"input": ["in"], "space": "s", "output": "o", "epsilon": 1.0, "profile": "pypantera"}
            given |= {"mechanism": mechanism, "parameter": list(parameters)}
            chosen = settings_of("privatize", given, []).settled().mechanism
            assert chosen is not None
            return chosen.parameters

        assert settled("tem") == {"beta": 0.001}
        assert settled("tem", "gamma=3.0", "beta=0.001") == {"gamma": 3.0, "beta": 0.001}
        assert settled("ring-geometric", "beta=0.5") == {"beta": 0.5}
        with refused("conflicting-settings", "--parameter beta", "0.5"):
            settled("tem", "beta=0.5")
