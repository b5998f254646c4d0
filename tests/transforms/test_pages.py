"""The page about a release says what its manifest says, quotes nothing, and loads nothing."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil.jobs.local import Local
from corpusveil.storage.rows import Columns
from corpusveil.transforms.release.pages import parts_of, write_page
from tests.calls import privatize_corpus
from tests.engines.corpora import TEST_KEY, WORDS, make_space, manifest, write_shard

SECRET = "zanzibarquux"


def read(page: str) -> str:
    """Return the text of a page, which loads nothing."""
    assert not re.search(r"<(script|img|link|iframe)|(?:src|href)=|https?://|@import|url\(", page)
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", " ", page)))


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Release a corpus that names a secret in a text, a file, a column and a folder."""
    folder = tmp_path_factory.mktemp("pages")
    space = make_space(folder / "space")
    rows = [{"text": f"{WORDS[3]} {WORDS[5]} {SECRET}", "<script>x": k} for k in (1, 2, 3)]
    write_shard(folder / f"in-{SECRET}/{SECRET}.jsonl", rows)
    budget = cv.Budget(8.0, "document")
    release = cv.Release(cv.mechanism("ring-geometric", space), budget, cv.TextPolicy(), key=cv.Key(TEST_KEY))
    source, columns = [str(folder / f"in-{SECRET}")], Columns(keep=("<script>x",))
    privatize_corpus(release, source, str(folder / "out"), Local(), columns=columns)
    return folder


def test_says_what_the_manifest_says(ground: Path) -> None:
    """Every sentence of the guarantee, every condition, all that is in the clear, every digest."""
    public = manifest(ground / "out")
    text = read((ground / "out.report.html").read_text())
    guarantee = public["guarantee"]
    for line in (*public["guarantee_in_words"], *guarantee["assumptions"], *guarantee["disclosed"], guarantee["claim"]):
        assert line in text
    for name in ("release", "key_fingerprint", "content_sha256", "corpusveil"):
        assert public[name] in text
    assert public["configuration"]["space"] in text
    assert public["spends"]["name"] in text
    assert all(shard["sha256"] in text for shard in public["shards"])
    assert "3 documents" in text
    assert "<script>x, outside every guarantee" in text
    cap = {"units": ["customer", "content"], "nats": 100.0, "over": "refuse"}
    capped = str([*parts_of({**public, "cap": cap})])
    assert "no value of customer in this release has spent more than 100 nats of plain LDP" in capped
    assert "no text in this release has spent more than 100 nats" in capped


def test_is_of_the_manifest_alone(ground: Path, tmp_path: Path) -> None:
    """Whoever has the manifest can make the page: nothing of the input is in it."""
    page = (ground / "out.report.html").read_text()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_bytes((ground / "out" / "manifest.json").read_bytes())
    write_page(str(tmp_path / "out"))
    assert page == (tmp_path / "out.report.html").read_text()
    assert SECRET not in page


@pytest.mark.parametrize("per", ["token", "document"])
def test_has_four_digits_of_an_epsilon_that_has_sixteen(ground: Path, tmp_path: Path, per: str) -> None:
    """Rounded up, so that "at most" stays true; so have the sentences, but not the manifest."""
    mechanism = cv.mechanism("ring-geometric", cv.load_space(ground / "space"))
    release = cv.Release(mechanism, cv.Budget(8 + 1 / 3, per), key=cv.Key(TEST_KEY))
    privatize_corpus(release, [str(ground / f"in-{SECRET}")], str(tmp_path / "out"), Local())
    public = manifest(tmp_path / "out")
    said = read((tmp_path / "out.report.html").read_text()), str(release), str(release.guarantee())
    for text in (*said, *public["guarantee_in_words"]):
        figures = [figure for figure in re.findall(r"[\d.,]*\d", text) if "." in figure]
        assert max((len(figure.replace(".", "").lstrip("0")) for figure in figures), default=0) <= 4, figures
        assert not re.search(r"(at most|e\^\()[^.]*8\.333", text), "which is too small"
    assert "8.334" in said[0]
    assert public["configuration"]["budget"]["epsilon"] == 8 + 1 / 3
