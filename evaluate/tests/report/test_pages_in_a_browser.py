"""All pages in a real browser: nothing is fetched, nothing overflows or overlaps, light, dark and printed, no leak."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from corpusveil.budget import Budget
from corpusveil.mechanisms import make
from corpusveil.spaces import Space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.release.illustration import SENTENCES, illustrate
from corpusveil.transforms.release.pages import render_public
from evaluate.tests.releases import evaluate, manifest_of
from evaluate.tests.report.browser import COLORS, CONTRAST, WIDEST, Browser, browser, find_browser
from tests.engines.corpora import WORDS

pytestmark = pytest.mark.browser

WIDTHS = (390, 1280)
NAMES = ("public", "drawn", "records", "private", "publishable")
OPENED = "document.querySelectorAll('details').forEach(one => one.open = true)"


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
    """Every page of the room: with all that the private one can show, and the publishable one."""
    folder = tmp_path_factory.mktemp("pages")
    options = ("--space", str(space.url), "--label", "topic", "--attribute", "trait", "--seeds", "2")
    assert evaluate(source, private, folder / "private", *options) == 0
    assert evaluate(source, private, folder / "publishable", *options, "--publishable") == 0
    manifest = manifest_of(private)
    for name in ("ring-geometric", "cmp"):
        picture = illustrate(make(name, english()), Budget(2.0), TextPolicy())
        (folder / f"public-{name}.html").write_text(render_public(manifest, picture))
    return {
        "public": folder / "public-ring-geometric.html",
        "drawn": folder / "public-cmp.html",
        "records": private.with_name(f"{private.name}.records") / "report.html",
        "private": folder / "private" / "report.html",
        "publishable": folder / "publishable" / "report.html",
    }


def english() -> Space:
    """Return a space that knows the words of a bundled sentence, some of them long."""
    words = [*re.findall("[a-z]+", SENTENCES[0][0].lower().replace("okonjo", "")), "incomprehensibilities", *WORDS[:40]]
    vectors = Vectors(
        list(dict.fromkeys(words)), np.random.default_rng(0).standard_normal((len(set(words)), 8)).astype(np.float32)
    )
    return build_space(vectors, counts=np.arange(1, len(set(words)) + 1))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
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
        contrast, text = tab.value(CONTRAST)
        assert contrast >= 4.5, text
        tab.value(OPENED)
        assert tab.value(WIDEST) == [0, 0]
        assert tab.value(CONTRAST)[0] >= 4.5
    light, dark = grounds
    assert light > 600
    assert dark < 150


def test_the_publishable_page_shows_no_original_text(tab: Browser, pages: dict[str, Path]) -> None:
    """As read in the browser, and in its source; the private page, for control, does."""
    for name, shown in (("private", True), ("publishable", False)):
        tab.open(pages[name], 1280)
        text = tab.value("document.body.innerText") + tab.value("document.documentElement.outerHTML")
        assert bool(set(re.findall(r"\w+", text)) & set(WORDS)) is shown
        assert ("Private:" in text) is shown
