"""PUC against the rows of its paper that agree with its formula."""

from __future__ import annotations

import pytest

from corpusveil.evaluation.statistics.puc import puc
from tests.calls import refused

PAPER = [
    ("SynTF 50", 77.30, 72.58, (32.1, 5.1, 70.5, 62.9, 70.5), (82.22, 70.54, 58.86)),
    ("CMP 50", 77.30, 52.10, (0.0, 97.5, 98.2, 33.5, 46.8), (69.67, 71.94, 74.21)),
    ("Gumbel 50", 77.30, 78.08, (23.6, 13.7, 76.6, 64.0, 53.1), (89.64, 78.26, 66.89)),
    ("TEM 50", 77.30, 52.38, (0.0, 99.9, 98.2, 35.5, 2.6), (72.37, 76.98, 81.59)),
    ("Vickrey 300", 84.53, 53.66, (0.0, 99.5, 98.2, 34.3, 48.3), (66.80, 70.11, 73.43)),
    ("Gumbel 300", 84.53, 81.24, (27.7, 13.6, 70.9, 67.5, 25.0), (87.05, 77.98, 68.92)),
]


class TestPuc:
    @pytest.mark.parametrize(("name", "baseline", "accuracy", "scores", "printed"), PAPER)
    def test_rows_of_the_paper(
        self, name: str, baseline: float, accuracy: float, scores: tuple[float, ...], printed: tuple[float, ...]
    ) -> None:
        n_w, s_w, pp, cs, low = scores
        for alpha, value in zip((0.75, 0.5, 0.25), printed, strict=True):
            assert f"{puc(accuracy, baseline, n_w, s_w, pp, cs, low, alpha):.2f}" == f"{value:.2f}", name

    def test_numbers_out_of_range_are_named(self) -> None:
        given = [70.0, 80.0, 10.0, 50.0, 90.0, 40.0, 30.0, 0.5]
        for place, value, named in ((1, 0, "baseline"), (2, -1, "n_w"), (5, float("nan"), "cs"), (7, 1.5, "alpha")):
            with refused("wrong-value", named):
                puc(*given[:place], value, *given[place + 1 :])  # type: ignore[call-arg]
