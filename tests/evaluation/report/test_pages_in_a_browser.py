"""The pages of evaluations in a real browser: nothing is fetched, nothing overflows, light and dark, nothing leaks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpusveil.evaluation.attacks.risk_curve import at_equal_risk, curve
from corpusveil.evaluation.report.curve_page import render_curve
from corpusveil.mechanisms import make
from corpusveil.spaces import Space
from tests.engines.corpora import WORDS
from tests.evaluation.releases import evaluate
from tests.evaluation.report.browser import COLORS, WIDEST, Browser, browser, find_browser

pytestmark = pytest.mark.browser

WIDTHS = (390, 1280)


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    executable = find_browser()
    if executable is None and os.environ.get("CORPUSVEIL_NEED_BROWSER"):
        pytest.fail("no browser is on the path; name one with CORPUSVEIL_BROWSER")
    if executable is None:
        pytest.skip("no browser is on the path, and CORPUSVEIL_BROWSER names none")
    with browser(executable, tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.fixture(scope="module")
def pages(source: Path, private: Path, space: Space, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every page of the room: with all that the private one can show, the publishable one, and that of a curve."""
    folder = tmp_path_factory.mktemp("pages")
    options = ("--space", str(space.url), "--label", "topic", "--attribute", "trait", "--seeds", "2")
    options += ("--epsilon", "0.3", "--epsilon", "6", "--mechanism", "santext")
    assert evaluate(source, private, folder / "private", *options) == 0
    assert evaluate(source, private, folder / "publishable", *options, "--publishable") == 0
    points = curve([make(name, space) for name in ("ring-geometric", "santext")])
    (folder / "curve.html").write_text(render_curve(points, at_equal_risk(points), "A note."))
    return {
        "private": folder / "private" / "report.html",
        "publishable": folder / "publishable" / "report.html",
        "curve": folder / "curve.html",
    }


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["private", "publishable", "curve"])
def test_a_page_asks_for_nothing_complains_of_nothing_and_fits(
    tab: Browser, pages: dict[str, Path], name: str, width: int
) -> None:
    grounds = []
    for dark in (False, True):
        tab.open(pages[name], width, dark=dark)
        assert tab.value(WIDEST) == [0, 0]
        assert tab.value("document.querySelector('h1').innerText.length > 5")
        ground, text = (sum(map(int, re.findall(r"\d+", color)[:3])) for color in tab.value(COLORS))
        assert abs(ground - text) > 400  # of 765: it can be read
        grounds.append(ground)
        assert tab.requests == [pages[name].as_uri()]
        assert tab.complaints == []
    light, dark = grounds
    assert light > 600
    assert dark < 150


def test_what_is_drawn_is_in_the_pages_colors_and_has_a_size(tab: Browser, pages: dict[str, Path]) -> None:
    """Lines, marks and bars are there for who looks, in both schemes."""
    strokes = []
    for dark in (False, True):
        tab.open(pages["private"], 1280, dark=dark)
        assert tab.value("document.querySelectorAll('.chart svg').length") == 5
        assert tab.value("Math.min(...[...document.querySelectorAll('.chart svg')].map(s => s.clientHeight))") > 200
        strokes.append(tab.value("getComputedStyle(document.querySelector('polyline')).stroke"))
        assert tab.value("document.querySelectorAll('mark').length") > 5
    assert strokes[0] != strokes[1]
    assert "none" not in strokes


def test_the_publishable_page_shows_no_original_text(tab: Browser, pages: dict[str, Path]) -> None:
    """As read in the browser, and in its source; the private page, for control, does."""
    for name, shown in (("private", True), ("publishable", False)):
        tab.open(pages[name], 1280)
        text = tab.value("document.body.innerText") + tab.value("document.documentElement.outerHTML")
        assert bool(set(re.findall(r"\w+", text)) & set(WORDS)) is shown
        assert ("Private:" in text) is shown


BROKEN = {
    "overlong": ('<p style="white-space: nowrap">' + "overlong " * 100 + "</p>", ["overflows"]),
    "image": ('<img src="http://127.0.0.1:9/x.png" alt="">', ["asks", "complains"]),
    "style": ('<link rel="stylesheet" href="http://127.0.0.1:9/x.css">', ["asks", "complains"]),
    "script": ("<script>document.title = 'x'; console.error('no')</script>", ["complains"]),
}


@pytest.mark.parametrize("name", list(BROKEN))
@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_that_is_broken_is_caught(
    tab: Browser, pages: dict[str, Path], tmp_path: Path, name: str, width: int
) -> None:
    """The same page with one fault: each check finds its own. The page's policy refuses what is asked for."""
    added, expected = BROKEN[name]
    page = tmp_path / f"{name}.html"
    page.write_text(pages["publishable"].read_text().replace("</h1>", f"</h1>{added}", 1))
    tab.open(page, width)
    found = {
        "overflows": tab.value(WIDEST) != [0, 0],
        "asks": tab.requests != [page.as_uri()],
        "complains": bool(tab.complaints),
    }
    assert [one for one, there in found.items() if there] == expected
