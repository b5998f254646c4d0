"""Attackers of a page: they denoise first where they can, and none is below what a simpler one on the page reaches."""

from __future__ import annotations

import json

import numpy as np
import pytest

from corpusveil.budget import Budget
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.jobs.local import Local
from corpusveil.mechanisms import make
from corpusveil.sampling.keys import Key
from corpusveil.transforms.release.corpus import privatize_corpus
from corpusveil.transforms.release.release import Release
from corpusveil_evaluate.matching import match
from corpusveil_evaluate.report.evaluate_release import evaluate_release
from corpusveil_evaluate.report.findings import Findings
from corpusveil_evaluate.report.question import Question
from tests.contracts.spaces import small_space, words_of
from tests.engines.corpora import write_shard

WORDS = words_of(60)
WORD_CHAIN = ("words guessed by the released word", "words guessed one by one", "words guessed from context")


def said(rng: np.random.Generator, who: int) -> str:
    """Return words of a writer, who says them in an order of his own."""
    begin = int(rng.integers(0, 30))
    return " ".join(WORDS[30 * who + (begin + k) % 30] for k in range(10))


@pytest.fixture(scope="module", params=["ring-geometric", "cmp"])
def findings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Findings, Findings]:
    """A release and what is found of it, with public counts and without."""
    folder, rng = tmp_path_factory.mktemp("honest"), np.random.default_rng(4)
    rows = [{"text": said(rng, n % 2), "who": f"writer {n % 2}"} for n in range(300)]
    write_shard(folder / "in" / "x.jsonl", rows)
    write_shard(folder / "public" / "x.jsonl", [{"text": said(rng, n % 2)} for n in range(800)])
    count_corpus([str(folder / "public")], str(folder / "counts"), Local(), CountOptions(3, 1))
    epsilon = 0.2 if request.param == "ring-geometric" else 2.0
    space = small_space(words=WORDS)
    release = Release(make(request.param, space), Budget(epsilon), key=Key.for_tests())
    privatize_corpus(release, [str(folder / "in")], str(folder / "out"), Local())
    matched = match([str(folder / "in")], [str(folder / "out")], columns=("who",))
    manifest = json.loads((folder / "out" / "manifest.json").read_bytes())
    asked = Question.of(attribute="who", seeds=3, space=space, counts=str(folder / "counts"))
    blind = Question.of(attribute="who", seeds=3, space=space)
    return evaluate_release(matched, manifest, asked), evaluate_release(matched, manifest, blind)


def test_a_printed_risk_is_never_below_what_a_simpler_attack_reaches(findings: tuple[Findings, Findings]) -> None:
    """Words: not guessing, one by one, from context. The attribute: the constant, static, adaptive, denoised first."""
    for found in findings:
        shares = [found.at(name).value for name in WORD_CHAIN]
        assert shares == sorted(shares)
        for name in ("attribute", "attribute (macro F1)"):
            attacks = [one for one in found.measures if one.name.startswith(f"{name}, ") and "original" not in one.name]
            (best,) = [one for one in attacks if one.name == f"{name}, best attack"]
            assert len(attacks) == (5 if found is findings[0] else 3)
            assert best.value == max([*(one.value for one in attacks), *(one.floor or 0 for one in attacks)])


def test_who_denoises_first_learns_more_where_words_have_an_order(findings: tuple[Findings, Findings]) -> None:
    found, blind = findings
    if found.configuration["mechanism"]["name"] == "ring-geometric":
        for attacker in ("static", "adaptive"):
            first, drawn = (found.at(f"attribute, {attacker}{how}").value for how in (", denoised first", ""))
            assert first > drawn
        assert "denoised first" in found.at("attribute, best attack").model
    assert not any("denoised" in one.name for one in blind.measures)
    assert any("did not denoise first" in note for note in blind.notes)
