"""The pictures of a release are its mechanism's own law, of a public sentence: no key and no corpus changes them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.jobs.local import Local
from corpusveil.mechanisms.risk import word_risk
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from corpusveil.transforms.release.corpus import privatize_corpus
from corpusveil.transforms.release.illustration import (
    LIKELY,
    SENTENCES,
    Illustration,
    illustrate,
)
from tests.engines.corpora import TEST_KEY, WORDS, make_space

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


def test_dots_are_the_risk_of_public_text(space: Space) -> None:
    risk, guess = word_risk(cv.mechanism("ring-geometric", space), 1.0), picture(space).guess
    assert guess is not None
    assert (guess.share, guess.blind) == pytest.approx((risk.content.share, risk.content.blind), abs=1e-6)
    assert f"{risk.share:.0%} of all words" in guess.sentence()
    assert picture(space, "santext").guess is None  # it would take all pairs of words
    chosen = cv.epsilon_for_risk(cv.mechanism("santext", space), 0.5, of="content")
    own = illustrate(cv.mechanism("santext", space), cv.Budget(chosen.epsilon), cv.TextPolicy(), None, chosen)
    assert own is not None
    assert own.guess is not None  # it was computed to choose epsilon
    assert own.guess.share == chosen.measured


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
        ("mask", "masked", "[name]"), ("pseudonym", "masked", "NAME_…"), ("resample", "drawn", ""),
    ):  # fmt: skip
        spans = cv.SpanPolicy(find=["names", str(tmp_path / "terms")], treat={"name": treatment, "ticket": "resample"})
        shown = illustrate(cv.RingGeometric(space), cv.Budget(2.0), cv.TextPolicy(), spans=spans)
        assert shown is not None
        chips = {chip.text: (chip.kind, chip.mask) for chip in shown.chips}
        assert chips["Okonjo"] == (kind, mask)
        assert chips["river"][0] == "replaced"
    assert "NAME_" not in shown.result


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
    """In a space of no known language there are dots alone."""
    for sentence in SENTENCES:
        words = re.findall(r"[^\W\d_]+", re.sub(r"\S+@\S+", "", sentence).lower())
        shown = picture(space_of(tuple(sorted({*words} - {"okonjo"}))))
        assert "".join(chip.text for chip in shown.chips) == sentence.replace(" ", "")
    plain = picture(make_space(tmp_path / "space"))
    assert (plain.chips, plain.result) == ((), "")
    assert plain.guess is not None


def test_a_page_shows_the_pictures_and_nothing_of_the_corpus(space: Space, tmp_path: Path) -> None:
    """No script and no address."""
    (tmp_path / "in.jsonl").write_text('{"text": "the old river zanzibarquux told 555123"}')
    mechanism = cv.mechanism("ring-geometric", space.save(str(tmp_path / "space")))
    release = cv.Release(mechanism, cv.Budget(1.0), key=cv.Key(TEST_KEY))
    privatize_corpus(release, [str(tmp_path / "in.jsonl")], str(tmp_path / "out"), Local())
    page = (tmp_path / "out.report.html").read_text()
    assert not re.search(r"(?:src|href)=|https?://|<script|@import|url\(|zanzibarquux|555123", page)
    (own,) = re.findall(
        r"<figure.*?</figure>", page[page.index("What a reader can guess") :].split("<h2>")[0], re.DOTALL
    )
    guess = picture(space).guess
    assert guess is not None
    assert f"guesses about {guess.share:.0%} of the content words ({guess.blind:.1%} by chance), and " in page
    assert own.count('class="dark"') == round(100 * guess.blind)
    assert own.count('class="shown"') == round(100 * guess.share) - round(100 * guess.blind)
