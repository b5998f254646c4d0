"""The command of the studies; tests/golden has the cells of a small grid."""

from __future__ import annotations

import pytest

from corpusveil.cli.main import run
from corpusveil_evaluate.studies.study import STUDIES


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evaluate", "study"], "The study is missing"),
        (["evaluate", "study", "diffractor"], "diffractor: there is no such study"),
        (["evaluate", "study", "1-diffractor"], "--output is missing"),
        (
            ["evaluate", "study", "1-diffractor", "--config", "/nowhere.toml", "--output", "x"],
            "/nowhere.toml: this file",
        ),
    ],
)
def test_a_wrong_call_is_one_sentence_and_status_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert said in capsys.readouterr().err


def test_studies_are_listed_with_their_papers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "study", "--list"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said] == list(STUDIES)
