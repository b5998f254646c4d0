"""A report begins with texts side by side and has pictures at once; the release is marked on each of its charts."""

from __future__ import annotations

import json
from pathlib import Path

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


def section(page: str, title: str) -> str:
    return page.split(f"<h2>{title}")[1].split("<h2>", maxsplit=1)[0]


def test_texts_come_first_then_figures_then_what_is_guaranteed() -> None:
    page = page_of(UNCHANGED, GUESSED)
    places = [page.index(text) for text in ("Texts side by side", '<div class="tiles">', "What a reader can guess",
                                            "What is guaranteed", "All figures")]  # fmt: skip
    assert places == sorted(places)
    texts = section(page, "Texts side by side")
    assert texts.index("original") < texts.index("released") < texts.index("<details>") < texts.index("epsilon 9")


def test_dots_say_what_an_informed_reader_guesses_and_how_much_blind() -> None:
    told = section(page_of(GUESSED), "What a reader can guess")
    assert "guesses about 66.0% of known content words (6.0% without looking) one by one." in told
    assert [told.count(f'class="{kind}"') for kind in ("dark", "shown", "hidden")] == [6, 60, 34]


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
