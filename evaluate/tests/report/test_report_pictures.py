"""A report begins with texts side by side, and its dots say what a reader guesses."""

from __future__ import annotations

from corpusveil.language.denoise import NO_FACTS
from corpusveil_evaluate.report.findings import Findings
from corpusveil_evaluate.report.release_page import examples_of, render
from corpusveil_evaluate.statistics.statistic import Figure

UNCHANGED = Figure("privacy", "words unchanged", 0.42, of_input=True)
GUESSED = Figure("attack", "content words guessed, Bayes-optimal", 0.66, floor=0.06)
RELEASE = {"mechanism": {"name": "ring-geometric"}, "budget": {"epsilon": 2.0, "per": "token"}}
EXAMPLES = examples_of(["the cat sat down"], ["a cat sat down"])


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
    assert texts.index("original") < texts.index("released")


def test_dots_say_what_an_informed_reader_guesses_and_how_much_blind() -> None:
    told = section(page_of(GUESSED), "What a reader can guess")
    assert "guesses about 66.0% of known content words (6.0% without looking) one by one." in told
    assert [told.count(f'class="{kind}"') for kind in ("dark", "shown", "hidden")] == [6, 60, 34]


def test_denoised_texts_stand_behind_the_release() -> None:
    texts = ["the cat sat down", "short", "another text of words"]
    (first, _) = examples_of(texts, [text.upper() for text in texts], lambda some: [f"read {t}" for t in some])
    assert first.versions == (("released", "THE CAT SAT DOWN"), ("denoised", "read THE CAT SAT DOWN"))
    plain = examples_of(texts, texts)
    pages = [render(Findings("", 3, 3, (), (), (), shown)) for shown in ((first,), plain)]
    assert [NO_FACTS in page for page in pages] == [True, False]
