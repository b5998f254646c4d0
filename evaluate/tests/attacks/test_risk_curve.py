"""Curves by epsilon: figures against brute force, and pages that hold them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from corpusveil.cli.main import run
from corpusveil.errors import DataError
from corpusveil.mechanisms import make
from corpusveil.mechanisms.risk import prior_of, word_risk
from corpusveil.spaces import Space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.transforms.release.risk import epsilon_for_risk
from corpusveil_evaluate.attacks.equal_risk import curve, point
from corpusveil_evaluate.line_charts import line_chart
from tests.contracts.mechanism import matrix
from tests.contracts.spaces import words_of
from tests.mechanisms.spaces import distances, normal

COUNTS = np.random.default_rng(3).integers(1, 500, 40)


@pytest.fixture(scope="module")
def space() -> Space:
    return build_space(Vectors(words_of(40), normal(40, 3), counts=COUNTS))


@pytest.mark.parametrize(("name", "epsilon"), [("santext", 0.3), ("ring-geometric", 3.0), ("custext", 3.0)])
def test_figures_are_those_of_brute_force(space: Space, name: str, epsilon: float) -> None:
    """Bayes reconstruction, retention by the prior: from the whole matrix, by plain loops over outputs."""
    mechanism = make(name, space)
    assert space.counts is not None
    prior = (space.counts + 0.5) / (space.counts + 0.5).sum()
    law = matrix(mechanism, epsilon)
    risk = sum(max(prior[w] * law[w, u] for w in range(40)) for u in range(40))
    found = point(mechanism, epsilon, prior_of(space))
    assert found.risk == pytest.approx(risk, rel=1e-12)
    assert found.retention == pytest.approx((prior * np.diag(law)).sum(), rel=1e-12)
    assert found.exact
    looked_at = np.random.default_rng(0).choice(40, 100, p=prior)
    assert found.distance == pytest.approx((law * distances(space)).sum(axis=1)[looked_at].mean(), rel=1e-6)
    assert found.distinct == pytest.approx((1 - (1 - law) ** 100).sum(axis=1)[looked_at].mean(), rel=1e-9)
    assert found.plain_ldp == mechanism.guarantee(epsilon).plain_ldp


def test_sampled_figures_agree_with_exact_ones() -> None:
    """``cmp`` on a line has an exact law; forced to be sampled it gives the same within its errors."""
    space = build_space(Vectors(words_of(30), 2 * normal(30, 1)), lists=0)
    from corpusveil_evaluate.attacks.equal_risk import _exact, _sampled

    mechanism, prior = make("cmp", space), prior_of(space)
    looked_at = np.random.default_rng(0).choice(prior.words, 100, p=prior.shares)
    exact, sampled = _exact(mechanism, 2.0, looked_at), _sampled(mechanism, 2.0, looked_at)
    assert sampled[0] == pytest.approx(exact[0], rel=0.05)
    assert sampled[1] == pytest.approx(exact[1], rel=0.05)
    control = _sampled(mechanism, 3.0, looked_at)
    assert control[1] != pytest.approx(exact[1], rel=0.05)
    (estimated,) = curve([make("cmp", build_space(Vectors(words_of(30), normal(30, 3)), lists=0))], [2.0])
    assert not estimated.exact
    assert 1 / 30 <= estimated.risk < 1  # type: ignore[operator]


def test_epsilons_that_a_mechanism_has_not_are_left_out() -> None:
    """truncated-gumbel begins at some epsilon; where none is left, its own sentence is said."""
    space = build_space(Vectors(words_of(12), normal(12, 3)), lists=0)
    mechanism = make("truncated-gumbel", space)
    assert [one.epsilon for one in curve([mechanism], [1.0, 200.0])] == [200.0]
    with pytest.raises(DataError):
        curve([mechanism], [1.0])


def test_charts_place_points_where_they_belong() -> None:
    """x by its logarithm, y by its share of the height; names are escaped."""
    svg = line_chart({"a<b": [(1.0, 0.0), (10.0, 0.5), (100.0, 1.0)]}, "x", "y", top=1.0)
    (drawn,) = re.findall(r'points="([^"]+)"', svg)
    assert drawn == "56.0,316.0 340.0,164.0 624.0,12.0"
    assert "a&lt;b" in svg
    assert "<a" not in svg


def test_the_curve_shows_the_risk_that_epsilon_is_chosen_by(
    space: Space, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same figure by the same function; values of the grid are marked, and the one that a risk chooses is there."""
    mechanism = make("ring-geometric", space)
    chosen = epsilon_for_risk(mechanism, 0.4)
    found = curve([mechanism], [0.3, 1.0], risks=[0.4])
    assert {one.epsilon: (one.on_grid, one.chosen_for) for one in found} == {
        0.3: (False, None), 1.0: (True, None), chosen.epsilon: (True, 0.4)
    }  # fmt: skip
    assert all(one.risk == word_risk(mechanism, one.epsilon).share for one in found)
    (marked,) = [one for one in found if one.chosen_for]
    assert (marked.content_risk, marked.risk) == pytest.approx((chosen.measured, chosen.beside), abs=1e-9)
    space.save(str(tmp_path / "space"))
    command = ["audit", "--space", str(tmp_path / "space"), "--mechanism", "ring-geometric", "--risk", "0.4"]
    assert run([*command, "--curve", "--epsilon", "0.3", "--mechanism", "cmp", "--output", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "at equal risk" in out
    told = json.loads((tmp_path / "out/curve.json").read_text())
    assert {one["mechanism"] for one in told["points"]} == {"ring-geometric", "cmp"}
    assert re.search(rf"ring-geometric +{chosen.epsilon:.4g}\* +0.4 ", out)
    assert re.search(r"ring-geometric +0.3  ", out)
    assert f'>{chosen.epsilon:.4g}*</td><td class="n">0.4<' in (tmp_path / "out/curve.html").read_text()
    for wrong in (["--epsilon", "1"], ["--curve", "--inputs", "10"]):
        assert run([*command, *wrong]) == 2
        assert "[conflicting-settings]" in capsys.readouterr().err


def test_a_mechanism_says_what_it_does_in_a_space(
    space: Space, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``mechanisms NAME --space``: a line for each epsilon, the guarantee, the claim and whether it is true."""
    space.save(str(tmp_path / "space"))
    command = ["mechanisms", "custext", "--space", str(tmp_path / "space"), "--parameter", "K=5"]
    assert run([*command, "--epsilon", "1", "--epsilon", "5"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^5 +0\.\d{4} +\d+\.\d +\d", out, re.MULTILINE)
    assert "in this space (40 words)" in out
    assert run(["mechanisms", "--space", str(tmp_path / "space")]) == 2
    assert run(["mechanisms", "santext", "--epsilon", "1"]) == 2
