"""The two pages about a release say what the manifest and the totals say, quote nothing, and load nothing.

Their pictures are the mechanism's own law, of a public sentence: no key and no corpus changes them.
"""

from __future__ import annotations

import html
import json
import re
import stat
from pathlib import Path

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.jobs.local import Local
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.rows import Columns
from corpusveil.transforms.release.corpus import privatize_corpus
from corpusveil.transforms.release.illustration import (
    LIKELY,
    SENTENCES,
    Illustration,
    illustrate,
)
from corpusveil.transforms.release.pages import render_public
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
    budget = cv.Budget(8.0, "document")
    release = cv.Release(cv.mechanism("ring-geometric", space), budget, cv.TextPolicy(), key=cv.Key(TEST_KEY))
    source, columns = [str(folder / f"in-{SECRET}")], Columns(keep=("<script>x",))
    privatize_corpus(release, source, str(folder / "out"), Local(), columns=columns)
    return folder


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
        assert public["spends"]["name"] in text
        assert all(shard["sha256"] in text for shard in public["shards"])
        assert "3 documents" in text
        assert "<script>x , outside every guarantee" in text
        capped = read(
            render_public({**public, "cap": {"units": ["customer", "content"], "nats": 100.0, "over": "refuse"}})
        )
        assert "no value of customer in this release has spent more than 100 nats of plain LDP" in capped
        assert "no text in this release has spent more than 100 nats" in capped

    def test_is_of_the_manifest_and_the_space_alone(self, ground: Path) -> None:
        """Whoever has the manifest and the space can make the page: nothing of the input is in it."""
        page = (ground / "out.report.html").read_text()
        mechanism = cv.mechanism("ring-geometric", cv.load_space(str(ground / "space")))
        picture = illustrate(mechanism, cv.Budget(8.0, "document"), cv.TextPolicy())
        assert page == render_public(manifest(ground / "out"), picture)
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


def test_the_private_page_has_the_totals(ground: Path) -> None:
    """Shares, unchanged words, copies left out, times; of mode 0600, marked, quoting no text and no path."""
    path = ground / "out.records/report.html"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = read(path.read_text())
    assert "DO NOT PUBLISH: counts computed from private text" in text
    assert "unknown words resample 3 33.3 %" in text
    assert "Share of tokens" in text
    assert re.search(r"Known words, which the mechanism replaced \d+ Of these, unchanged in the output \d+ \(", text)
    assert "Copies, and documents above a cap, left out 0" in text
    assert SECRET not in path.read_text()


KNOWN = ("on", "tuesday", "dr", "told", "that", "the", "river", "had", "risen", "cm", "near", "old", "bridge")


def space_of(words: tuple[str, ...], others: int = 40) -> Space:
    rng = np.random.default_rng(1)
    named = [*words, *WORDS[:others]]
    vectors = Vectors(named, rng.standard_normal((len(named), 8)).astype(np.float32))
    return cv.build_space(vectors, counts=rng.integers(1, 1000, len(named)))


@pytest.fixture(scope="module")
def space() -> Space:
    return space_of(KNOWN)


def picture(space: Space, name: str = "ring-geometric", epsilon: float = 1.0, **policy: str) -> Illustration:
    found = illustrate(cv.mechanism(name, space), cv.Budget(epsilon), cv.TextPolicy(**policy))  # type: ignore[arg-type]
    assert found is not None
    return found


def shares(found: Illustration, space: Space, epsilon: float, name: str) -> float:
    """Return how far the pictures are from the law of a mechanism at an epsilon."""
    mechanism, errors = cv.mechanism(name, space), []
    for chip in found.chips:
        if chip.stays is not None:
            law = mechanism.distribution(space.id(chip.text.lower()), epsilon)
            errors += [chip.stays - law[space.id(chip.text.lower())]]
            errors += [share - law[space.id(word)] for word, share in chip.likely]
            others = np.sort(np.delete(law, space.id(chip.text.lower())))[::-1][:LIKELY]
            errors += (others - np.array([share for _, share in chip.likely])).tolist()
    return float(np.abs(errors).max())


@pytest.mark.parametrize("name", ["ring-geometric", "santext"])
def test_chips_are_the_exact_law(space: Space, name: str) -> None:
    """What stays, and the likeliest others."""
    shown = picture(space, name, 2.0)
    assert shares(shown, space, 2.0, name) < 1e-6
    assert shares(shown, space, 1.0, name) > 1e-3, "no other epsilon's law"


def test_each_token_is_what_its_policy_makes_of_it(space: Space) -> None:
    kinds = {chip.text: chip.kind for chip in picture(space).chips}
    assert [kinds[text] for text in ("river", "Okonjo", "30", "anna@example.org", ".")] == [
        "replaced", "drawn", "drawn", "masked", "kept",
    ]  # fmt: skip
    other = picture(space, unknown_words="drop", numbers="mask", contacts="keep", stop_words="mask", punctuation="drop")
    told = {chip.text: (chip.kind, chip.mask) for chip in other.chips}
    assert told["Okonjo"] == ("dropped", "")
    assert told["30"] == ("masked", "[number]")
    assert told["the"] == ("masked", "[stop]")
    assert "Okonjo" not in other.result
    assert "anna@example.org" in other.result
    assert "[contact]" in picture(space).result


def test_spans_are_shown_as_they_are_treated_and_terms_are_not(space: Space, tmp_path: Path) -> None:
    """The page showed *Okonjo: random* where the release masked it; a file of terms is private."""
    (tmp_path / "terms").write_text("river\n")
    for treatment, kind, mask in (
        ("mask", "masked", "[name]"), ("resample", "drawn", ""),
    ):  # fmt: skip
        spans = cv.SpanPolicy(find=["names", str(tmp_path / "terms")], treat={"name": treatment, "ticket": "resample"})
        shown = illustrate(cv.RingGeometric(space), cv.Budget(2.0), cv.TextPolicy(), spans=spans)
        assert shown is not None
        chips = {chip.text: (chip.kind, chip.mask) for chip in shown.chips}
        assert chips["Okonjo"] == (kind, mask)
        assert chips["river"][0] == "replaced"


def test_what_takes_minutes_or_has_no_law_is_not_computed(space: Space) -> None:
    assert picture(space, "tight-exponential", 3.0).epsilon == 3.0
    for name, budget in (
        ("cmp", cv.Budget(1.5)),
        ("mahalanobis", cv.Budget(1.5)),
        ("tight-exponential", cv.Budget(300.0, "document")),
        ("truncated-gumbel", cv.Budget(0.01)),
    ):
        assert illustrate(cv.mechanism(name, space), budget, cv.TextPolicy()) is None, name


def test_the_sentence_is_in_the_language_of_the_space(tmp_path: Path) -> None:
    """In a space of no known language there is none."""
    for sentence in SENTENCES:
        words = re.findall(r"[^\W\d_]+", re.sub(r"\S+@\S+", "", sentence).lower())
        shown = picture(space_of(tuple(sorted({*words} - {"okonjo"}))))
        assert "".join(chip.text for chip in shown.chips) == sentence.replace(" ", "")
    plain = picture(make_space(tmp_path / "space"))
    assert (plain.chips, plain.result) == ((), "")


def test_a_page_shows_the_pictures_and_nothing_of_the_corpus(space: Space, tmp_path: Path) -> None:
    """No script and no address."""
    (tmp_path / "in.jsonl").write_text('{"text": "the old river zanzibarquux told 555123"}')
    mechanism = cv.mechanism("ring-geometric", space.save(str(tmp_path / "space")))
    release = cv.Release(mechanism, cv.Budget(1.0), key=cv.Key(TEST_KEY))
    privatize_corpus(release, [str(tmp_path / "in.jsonl")], str(tmp_path / "out"), Local())
    page = (tmp_path / "out.report.html").read_text()
    assert not re.search(r"(?:src|href)=|https?://|<script|@import|url\(|zanzibarquux|555123", page)


def test_the_private_page_counts_spans_and_says_where_names_may_have_been_missed(tmp_path: Path) -> None:
    texts = ["We saw Kwazulpo Brenk on +49 170 1234567 today.", "Das Brot war gestern leider nicht mehr ganz frisch."]
    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in texts))
    release = cv.release(epsilon=1.0, key=cv.Key.for_tests(), spans=["rules"])
    cv.privatize_corpus(tmp_path / "in.txt", tmp_path / "out", release)
    page = read((tmp_path / "out.records" / "report.html").read_text())
    assert "phone 1" in page
    assert "Kwazulpo 1" in page.partition("look like missed names")[2].partition("Unknown words")[0]
    assert "as in another language 1" in page
    assert "Kwazulpo" not in (tmp_path / "out.report.html").read_text()
