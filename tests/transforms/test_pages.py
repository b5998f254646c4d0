"""The two pages about a release say what the manifest and the totals say, quote nothing, and load nothing."""

from __future__ import annotations

import html
import json
import re
import stat
from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil.jobs.local import Local
from corpusveil.spaces import Space
from corpusveil.storage.rows import Columns
from corpusveil.transforms.release.corpus import privatize_corpus
from corpusveil.transforms.release.illustration import illustrate
from corpusveil.transforms.release.pages import render_public
from tests.calls import refused
from tests.engines.corpora import TEST_KEY, WORDS, make_space, manifest

SECRET = "zanzibarquux"


def read(page: str) -> str:
    """Return the text of a page, which loads nothing."""
    assert not re.search(r"<(script|img|link|iframe)|\b(src|href)=", page)
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", " ", page)))


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Release a corpus that names a secret in a text, a file, a column and a folder."""
    folder = tmp_path_factory.mktemp("pages")
    space = make_space(folder / "space")
    (folder / f"in-{SECRET}").mkdir()
    rows = [{"text": f"{WORDS[3]} {WORDS[5]} {SECRET}", "<script>x": k} for k in (1, 2, 3)]
    (folder / f"in-{SECRET}/{SECRET}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    release_it(folder, space)
    return folder


def release_it(folder: Path, space: Space) -> None:
    budget = cv.Budget(8.0, "document")
    release = cv.Release(cv.mechanism("ring-geometric", space), budget, cv.TextPolicy(), cv.Key(TEST_KEY))
    source, columns = [str(folder / f"in-{SECRET}")], Columns(keep=("<script>x",))
    privatize_corpus(release, source, str(folder / "out"), Local(), columns=columns)


class TestPublic:
    def test_says_what_the_manifest_says(self, ground: Path) -> None:
        """Every sentence of the guarantee, every condition, all that is in the clear, every digest."""
        public = manifest(ground / "out")
        text = read((ground / "out.report.html").read_text())
        guarantee = public["guarantee"]
        for line in (
            *public["guarantee_in_words"],
            *guarantee["assumptions"],
            *guarantee["disclosed"],
            guarantee["claim"],
        ):
            assert line in text
        for name in ("release", "key_fingerprint", "content_sha256", "corpusveil"):
            assert public[name] in text
        assert public["configuration"]["space"] in text
        assert public["spends"]["metric"] in text
        assert all(shard["sha256"] in text for shard in public["shards"])
        assert "3 documents" in text
        assert "<script>x , outside every guarantee" in text

    def test_is_of_the_manifest_and_the_space_alone(self, ground: Path) -> None:
        """Whoever has the manifest and the space can make the page: nothing of the input is in it."""
        page = (ground / "out.report.html").read_text()
        mechanism = cv.mechanism("ring-geometric", cv.load_space(str(ground / "space")))
        picture = illustrate(mechanism, cv.Budget(8.0, "document"), cv.TextPolicy())
        assert page == render_public(manifest(ground / "out"), picture)
        assert page != render_public(manifest(ground / "out"))
        assert SECRET not in page

    @pytest.mark.parametrize("per", ["token", "document"])
    def test_has_four_digits_of_an_epsilon_that_has_sixteen(self, ground: Path, tmp_path: Path, per: str) -> None:
        """Rounded up, so that "at most" stays true; so have the sentences, but not the manifest."""
        release = cv.Release(
            cv.mechanism("ring-geometric", cv.load_space(ground / "space")),
            cv.Budget(8 + 1 / 3, per),
            key=cv.Key(TEST_KEY),
        )
        privatize_corpus(release, [str(ground / f"in-{SECRET}")], str(tmp_path / "out"), Local())
        public = manifest(tmp_path / "out")
        said = read((tmp_path / "out.report.html").read_text()), str(release), str(release.guarantee())
        for text in (*said, *public["guarantee_in_words"]):
            figures = [figure for figure in re.findall(r"[\d.,]*\d", text) if "." in figure]
            assert max((len(figure.replace(".", "").lstrip("0")) for figure in figures), default=0) <= 4, figures
            assert not re.search(r"(at most|e\^\()[^.]*8\.333", text), "which is too small"
        assert "8.334" in said[0]
        assert public["configuration"]["budget"]["epsilon"] == 8 + 1 / 3


def test_a_foreign_file_in_the_place_of_the_page_stays(ground: Path, tmp_path: Path) -> None:
    """Nothing is written over, and nothing is begun."""
    (tmp_path / "out.report.html").write_text("mine")
    mechanism = cv.mechanism("ring-geometric", cv.load_space(str(ground / "space")))
    release = cv.Release(mechanism, cv.Budget(1.0), key=cv.Key(TEST_KEY))
    with refused("output-in-use"):
        privatize_corpus(release, [str(ground / f"in-{SECRET}")], str(tmp_path / "out"), Local())
    assert (tmp_path / "out.report.html").read_text() == "mine"
    assert [one.name for one in tmp_path.iterdir()] == ["out.report.html"]


class TestPrivate:
    def test_has_the_totals(self, ground: Path) -> None:
        """Shares, unchanged words, copies left out, times; of mode 0600, marked, quoting no text and no path."""
        path = ground / "out.records/report.html"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        text = read(path.read_text())
        assert "DO NOT PUBLISH: counts computed from private text" in text
        assert "unknown words resample 3 33.3 %" in text
        assert "Share of tokens" in text
        assert re.search(
            r"Known words, which the mechanism replaced \d+ Of these, unchanged in the output \d+ \(", text
        )
        assert "Copies that were left out 0" in text
        assert SECRET not in path.read_text()
