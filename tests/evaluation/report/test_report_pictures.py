"""A report begins with texts side by side and has pictures at once; the release is marked on each of its charts."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path

import pytest

from corpusveil.evaluation.line_charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH
from corpusveil.evaluation.report.findings import Findings
from corpusveil.evaluation.report.manifest_release import picture_of
from corpusveil.evaluation.report.question import Question
from corpusveil.evaluation.report.release_page import examples_of, render
from corpusveil.evaluation.statistics.statistic import Figure
from corpusveil.language.denoise import NO_FACTS
from corpusveil.spaces import Space
from tests.evaluation.releases import evaluate, manifest_of

UNCHANGED = Figure("privacy", "words unchanged", 0.42, of_input=True)
SIMILAR = Figure("utility", "similarity of meaning", 0.8)
GUESSED = Figure("attack", "content words guessed, Bayes-optimal", 0.66, floor=0.06)
RELEASE = {"mechanism": {"name": "ring-geometric"}, "budget": {"epsilon": 2.0, "per": "token"}}
EXAMPLES = examples_of(["the cat sat down"], {"released": ["a cat sat down"], "epsilon 9": ["the cat sat down"]})


def page_of(*measures: Figure) -> str:
    return render(Findings("t", 1, 1, ("One.", "Two."), ("length",), measures, EXAMPLES, configuration=RELEASE))


def swept(figure: Figure, *at: tuple[float, float]) -> list[Figure]:
    return [
        dataclasses.replace(figure, epsilon=epsilon, value=value, mechanism="ring-geometric", floor=None)
        for epsilon, value in at
    ]


def section(page: str, title: str) -> str:
    return page.split(f"<h2>{title}")[1].split("<h2>", maxsplit=1)[0]


def test_texts_come_first_then_figures_then_what_is_guaranteed() -> None:
    page = page_of(UNCHANGED, GUESSED)
    places = [page.index(text) for text in ("Texts side by side", '<div class="tiles">', "What a reader can guess",
                                            "What is guaranteed", "All figures")]  # fmt: skip
    assert places == sorted(places)
    texts = section(page, "Texts side by side")
    assert texts.index("original") < texts.index("released") < texts.index("<details>") < texts.index("epsilon 9")


def test_the_guarantee_is_one_line_and_what_is_in_the_clear_and_the_rest_is_folded() -> None:
    told = section(page_of(), "What is guaranteed")
    assert told.index("<p>One.</p>") < told.index("In the clear") < told.index("<summary>The whole guarantee")
    assert "<p>Two.</p>" not in told
    assert "<li>Two.</li>" in told


def test_dots_say_what_an_informed_reader_guesses_and_how_much_blind() -> None:
    told = section(page_of(GUESSED), "What a reader can guess")
    assert "guesses about 66.0% of known content words (6.0% without looking) one by one." in told
    assert [told.count(f'class="{kind}"') for kind in ("dark", "shown", "hidden")] == [6, 60, 34]


def test_the_release_is_marked_where_its_figures_say() -> None:
    """In the chart over epsilon at its own, at each of its figures; in the chart over what is guessed at its risk."""
    curve = dataclasses.replace(GUESSED, group="curve")
    page = page_of(
        UNCHANGED, SIMILAR, GUESSED, *swept(UNCHANGED, (1.0, 0.2), (8.0, 0.9)), *swept(SIMILAR, (1.0, 0.5), (8.0, 0.9)),
        *swept(curve, (1.0, 0.3), (8.0, 0.9)),
    )  # fmt: skip

    def places(title: str) -> list[tuple[float, ...]]:
        found = re.findall(r'<circle class="line own" cx="([\d.]+)" cy="([\d.]+)"', section(page, title))
        return [tuple(map(float, pair)) for pair in found]

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + x * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM)

    at = math.log(2) / math.log(8)
    expected = [pytest.approx(place(at, y), abs=0.06) for y in (0.42, 0.8)]
    assert places("Privacy and utility by epsilon") == expected
    assert places("Similarity of meaning, by what can be guessed") == [pytest.approx(place(0.66, 0.8), abs=0.06)]
    assert page.count(">this release</text>") == 2


def test_denoised_texts_stand_behind_the_release() -> None:
    texts = ["the cat sat down", "short", "another text of words"]
    (first, _) = examples_of(
        texts,
        {"released": [text.upper() for text in texts], "epsilon 3": texts},
        lambda some: [f"read {t}" for t in some],
    )
    assert first.versions == (
        ("released", "THE CAT SAT DOWN"), ("denoised", "read THE CAT SAT DOWN"), ("epsilon 3", "the cat sat down"),
    )  # fmt: skip
    plain = examples_of(texts, {"released": texts})
    pages = [render(Findings("", 3, 3, (), (), (), shown)) for shown in ((first,), plain)]
    assert [NO_FACTS in page for page in pages] == [True, False]


def test_a_report_without_further_epsilons_has_the_pictures_of_its_mechanism(
    source: Path, private: Path, space: Space, tmp_path: Path
) -> None:
    """Of a space of no language the dots; they are public, so the publishable report has them, and no other file."""
    for more in ((), ("--publishable",)):
        folder = tmp_path / f"r{len(more)}"
        assert evaluate(source, private, folder, "--space", str(space.url), *more) == 0
        page = (folder / "report.html").read_text()
        told = section(page, "What a reader can guess")
        assert told.count("<figure") == 3
        assert told.count("this release") == 1
        assert "picture" not in json.loads((folder / "report.json").read_text())
    picture = picture_of(manifest_of(private), Question.of(space=space))
    assert picture is not None
    assert picture.own.guess is not None
    assert f"guesses about {picture.own.guess.share:.1%} of known content words" in told


def test_the_documentation_shows_every_screenshot_and_each_is_small() -> None:
    """They are PNG files as wide as their names say, below 150 kB."""
    docs = Path(__file__).resolve().parents[3] / "docs"
    shown = re.findall(r"\(pages/([\w-]+\.png)\)", (docs / "pages.md").read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(path.name for path in (docs / "pages").iterdir())
    assert {name.split("-")[0] for name in shown} == {"public", "report"}
    for name in shown:
        data = (docs / "pages" / name).read_bytes()
        assert data.startswith(b"\x89PNG")
        assert int.from_bytes(data[16:20]) == int(re.findall(r"\d+", name)[0])
        assert len(data) < 150_000
