"""Epsilon by risk: the table of a space decides, its digest covers it, and a release says what chose its epsilon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import corpusveil as cv
from corpusveil.spaces import Space
from corpusveil.spaces.risk_table import Recovered, RiskTable
from corpusveil.storage.corpus import CorpusIn
from corpusveil.transforms.release.manifest import draft
from corpusveil.transforms.release.risk import epsilon_at, risk_of
from tests.calls import fails, refused, succeeds
from tests.contracts.spaces import small_space

KEY = cv.Key(bytes(range(32)))
POLICY = cv.TextPolicy()
POINTS = [(0.25, 0.2, 0.01), (1.0, 0.6, 0.02), (4.0, 0.99, 0.01)]


@pytest.fixture(scope="module")
def bare() -> Space:
    words = ["the", "river", "of", "doctor", "ran", "lake", "tree", "house", "street", "letter"]
    return small_space(words=words, counts=range(1, 11))


def recovered(space: Space, points: Any = None, **more: Any) -> Recovered:
    law = cv.RingGeometric(space)
    fields = {"mechanism": law.name, "parameters": law.parameters(), "stop_words": "privatize", "reader": "a reader",
              "text": "letters", "points": POINTS if points is None else points}  # fmt: skip
    return Recovered(**fields | more)


def with_table(space: Space, *texts: Recovered) -> Space:
    return space.with_risk(RiskTable(recovered=list(texts)))


def test_epsilon_is_the_largest_whose_share_is_at_most_the_risk(bare: Space) -> None:
    """On the grid 2^(j/8), between measured epsilons by their logarithm; more epsilon never has less risk."""
    law = cv.RingGeometric(with_table(bare, recovered(bare)))
    for risk, epsilon, share in ((0.2, 0.25, 0.2), (0.4, 0.5, 0.4), (0.401, 0.5, 0.4), (0.6, 1.0, 0.6)):
        chosen = epsilon_at(law, risk, POLICY)
        assert (chosen.epsilon, chosen.recovered[0][0]) == (epsilon, pytest.approx(share)), risk
        assert chosen.plain_ldp == law.guarantee(epsilon).plain_ldp
    dips = recovered(bare, [(0.25, 0.5, 0.01), (0.5, 0.4, 0.01), (4.0, 0.99, 0.01)])
    with refused("unsuitable-data", "0.45", "letters"):
        epsilon_at(cv.RingGeometric(with_table(bare, dips)), 0.45, POLICY)
    with refused("unsuitable-data", "risk = 0.1", "20.0%"):
        epsilon_at(law, 0.1, POLICY)


def test_a_table_is_in_the_digest_and_is_saved(bare: Space, tmp_path: Path) -> None:
    made = with_table(bare, recovered(bare))
    other = with_table(bare, recovered(bare, [(0.25, 0.2, 0.01), (64.0, 1.0, 0.0)]))
    assert len({bare.digest, made.digest, other.digest}) == 3
    assert made.save(tmp_path / "space").digest == made.digest
    opened = cv.load_space(tmp_path / "space")
    assert (opened.risk, opened) == (made.risk, made)
    assert with_table(bare, recovered(bare)).without(["lake"]).risk == b"", "another vocabulary was not measured"
    (tmp_path / "space/risk.json").write_bytes(other.risk)
    with refused("damaged-artifact", "digest"):
        cv.load_space(tmp_path / "space")
    (tmp_path / "space/risk.json").unlink()
    with refused("damaged-artifact", "risk.json"):
        cv.load_space(tmp_path / "space")


def test_a_forged_table_chooses_nothing(bare: Space) -> None:
    """At epsilon 64 almost every word stays, so no reader recovers half of them: the law says so."""
    forged = recovered(bare, [(0.25, 0.2, 0.01), (64.0, 0.5, 0.01)])
    with refused("damaged-artifact", "64", "letters"):
        epsilon_at(cv.RingGeometric(with_table(bare, forged)), 0.5, POLICY)
    for broken in (b"[]", b"{}", b'{"recovered": [1]}', b"\xff", json.dumps({"recovered": []}).encode() * 100_000):
        space = Space(bare.vocabulary, bare.vectors, bare.lists, bare.digest, None, bare.info, broken)
        with refused("damaged-artifact", "table of risk"):
            epsilon_at(cv.RingGeometric(space), 0.5, POLICY)
    for points in ([(1.0, 0.2, 0.0), (0.5, 0.3, 0.0)], [(1.0, 0.2, 0.0), (1.0, 0.3, 0.0)]):
        with refused("damaged-artifact", "table of risk"):
            epsilon_at(cv.RingGeometric(with_table(bare, recovered(bare, points))), 0.5, POLICY)


def test_what_was_not_measured_names_the_command_that_measures(bare: Space) -> None:
    made = with_table(bare, recovered(bare))
    for law, policy in (
        (cv.RingGeometric(bare), POLICY),
        (cv.RingGeometric(made, gamma=2), POLICY),
        (cv.DiffractorGeometric(made), POLICY),
        (cv.RingGeometric(made), cv.TextPolicy(stop_words="keep")),
    ):
        with refused("wrong-setting", "corpusveil evaluate risk"):
            epsilon_at(law, 0.5, policy)


def test_a_release_says_what_chose_its_epsilon_and_has_it(bare: Space) -> None:
    made = with_table(bare, recovered(bare), recovered(bare, [(0.25, 0.3, 0.01), (4.0, 0.99, 0.01)], text="diaries"))
    law = cv.RingGeometric(made)
    found = epsilon_at(law, 0.5, POLICY)
    plain = cv.Release(law, cv.Budget(found.epsilon), key=KEY)
    chosen = cv.Release(law, cv.Budget(found.epsilon), key=KEY, risk=found)
    assert plain.digest == chosen.digest, "the text is the same, whoever chose epsilon"
    after = draft(chosen, CorpusIn([]))
    assert risk_of(after) == found
    assert [each[2:] for each in after["risk"]["recovered"]] == [["a reader", "letters"], ["a reader", "diaries"]]
    assert (found.sentence().count("reader with"), found.sentence()[-11:]) == (1, " of diaries")
    with refused("wrong-setting", "another epsilon"):
        cv.Release(law, cv.Budget(2.0), key=KEY, risk=found)
    other = cv.RingGeometric(with_table(bare, recovered(bare, POINTS[:2])))
    with refused("wrong-setting", "risk", "stop words"):
        cv.Release(other, cv.Budget(found.epsilon), key=KEY, risk=found)


@pytest.mark.parametrize(("risk", "epsilon"), [(0.3, 0.0241), (0.5, 0.1363), (0.7, 0.5946)])
def test_the_shipped_table_chooses_these_epsilons(risk: float, epsilon: float) -> None:
    release = cv.release(risk=risk, key=KEY)
    assert release.budget.epsilon == pytest.approx(epsilon, rel=1e-3)
    assert release.risk.recovered[0][2].startswith("SmolLM2-135M")


def test_a_command_prints_the_choice(bare: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the manifest has it; without a table, nothing is chosen."""
    monkeypatch.chdir(tmp_path)
    with_table(bare, recovered(bare)).save("space")
    bare.save("bare")
    Path("in.jsonl").write_text('{"text": "the doctor ran"}\n')
    call = ["privatize", "in.jsonl", "--mechanism", "ring-geometric", "--risk", "0.4", "--test-key"]
    said = succeeds(*call, "--space", "space", "--output", "out")
    assert "a reader with a reader recovers about 40.0%" in " ".join((said.out + said.err).split())
    assert json.loads(Path("out/manifest.json").read_text())["risk"]["risk"] == 0.4
    fails([*call, "--space", "bare", "--output", "other"], "wrong-setting", "evaluate risk")
