"""The pictures of a release are its mechanism's own law, of a public sentence: no key and no corpus changes them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.jobs.local import Local
from corpusveil.mechanisms.risk import word_risk
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from corpusveil.transforms.release import illustration
from corpusveil.transforms.release.corpus import privatize_corpus
from corpusveil.transforms.release.illustration import (
    BARS,
    LIKELY,
    SAMPLES,
    SENTENCES,
    Illustration,
    illustrate,
    word_epsilon,
)
from corpusveil.transforms.release.pages import percent, render_public
from tests.engines.corpora import TEST_KEY, WORDS, make_space

KNOWN = ("on", "tuesday", "dr", "told", "that", "the", "river", "had", "risen", "cm", "near", "old", "bridge")
CANARY = "zanzibarquux"


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


@pytest.mark.parametrize("name", ["ring-geometric", "diffractor-exponential", "santext", "tem"])
def test_chips_are_the_exact_law(space: Space, name: str) -> None:
    """What stays, and the likeliest others; and no other epsilon's law."""
    found = picture(space, name, 2.0)
    assert found.exact
    assert shares(found, space, 2.0, name) < 1e-6
    assert shares(found, space, 1.0, name) > 1e-3


@pytest.mark.parametrize("name", ["ring-geometric", "santext"])
def test_bars_are_the_exact_law_at_half_the_epsilon_at_it_and_at_double(space: Space, name: str) -> None:
    mechanism, found = cv.mechanism(name, space), picture(space, name, 2.0)
    assert [(panel.epsilon, panel.is_release) for panel in found.panels] == [(1.0, False), (2.0, True), (4.0, False)]
    for panel in found.panels:
        law = mechanism.distribution(space.id("river"), panel.epsilon)
        assert next(word for word, _ in panel.bars) == found.word == "river"
        assert len(panel.bars) == BARS
        assert [share for _, share in panel.bars] == pytest.approx([law[space.id(w)] for w, _ in panel.bars], abs=1e-6)
        assert panel.rest == pytest.approx(1 - sum(share for _, share in panel.bars), abs=1e-6)


def test_dots_are_the_risk_of_public_text(space: Space) -> None:
    mechanism, found = cv.mechanism("ring-geometric", space), picture(space)
    for panel in found.panels:
        risk = word_risk(mechanism, panel.epsilon)
        assert panel.guess is not None
        assert (panel.guess.share, panel.guess.blind, panel.guess.beside) == pytest.approx(
            (risk.content.share, risk.content.blind, risk.share), abs=1e-6
        )
    assert picture(space, "santext").own.guess is None  # it would take all pairs of words
    chosen = cv.epsilon_for_risk(cv.mechanism("santext", space), 0.5)
    own = illustrate(cv.mechanism("santext", space), cv.Budget(chosen.epsilon), cv.TextPolicy(), None, chosen)
    assert own is not None
    assert own.own.guess is not None  # it was computed to choose epsilon
    assert own.own.guess.share == chosen.measured


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


def test_words_share_a_documents_budget(space: Space) -> None:
    budget = cv.Budget(100.0, "document")
    found = illustrate(cv.mechanism("ring-geometric", space), budget, cv.TextPolicy())
    assert found is not None
    assert found.document_words == 100
    assert found.own.epsilon == word_epsilon(budget) <= 1.0
    assert shares(found, space, found.own.epsilon, "ring-geometric") < 1e-6


def drawn_unchanged(space: Space, words: list[str], epsilon: float) -> float:
    """Return how many of 1,000 draws of each word by ``cmp`` are the word."""
    ids = np.repeat(np.array([space.id(word) for word in words], dtype=np.int32), 1000)
    draws = Draws.of_tokens(DrawKey.derive(cv.Key(TEST_KEY), "11" * 32), ids.size)
    return float((cv.mechanism("cmp", space).privatize(ids, epsilon, draws) == ids).mean())


def test_a_mechanism_without_a_law_is_drawn_and_the_page_says_so(space: Space, tmp_path: Path) -> None:
    """Shares of few public draws lie within five standard errors of those of many; of another epsilon's they do not."""
    found = picture(space, "cmp", 3.0)
    assert not found.exact
    words = [chip.text.lower() for chip in found.chips if chip.stays is not None]
    stays = np.mean([chip.stays for chip in found.chips if chip.stays is not None])
    error = 5 * 0.5 / np.sqrt(SAMPLES * len(set(words)))
    assert abs(stays - drawn_unchanged(space, words, 3.0)) < error
    assert abs(stays - drawn_unchanged(space, words, 2.0)) > error
    assert f"{SAMPLES} public draws" in page_of(space, tmp_path, "cmp", 3.0)


@pytest.mark.parametrize("at", range(len(SENTENCES)))
def test_the_sentence_is_in_the_language_of_the_space(at: int) -> None:
    sentence, word = SENTENCES[at]
    words = re.findall(r"[^\W\d_]+", re.sub(r"\S+@\S+", "", sentence).lower())
    found = picture(space_of(tuple(sorted({*words} - {"okonjo"}))))
    assert re.findall(r"[\w@.]+", sentence)[0] == found.chips[0].text
    assert "".join(chip.text for chip in found.chips) == sentence.replace(" ", "")
    assert found.word == word


def test_a_space_of_no_known_language_has_dots_alone(tmp_path: Path) -> None:
    found = picture(make_space(tmp_path / "space"))
    assert (found.chips, found.result, found.word) == ((), "", "")
    assert found.own.guess is not None


def test_what_takes_minutes_is_not_computed(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a large space: guesses at other epsilons, and draws where there is no law. Nor laws that are solved for."""
    monkeypatch.setattr(illustration, "MANY_WORDS", len(space))
    guesses = [panel.guess for panel in picture(space, "diffractor-geometric", 1.5).panels]
    assert [guess is not None for guess in guesses] == [False, True, False]
    assert illustrate(cv.mechanism("mahalanobis", space), cv.Budget(1.5), cv.TextPolicy()) is None
    tight = cv.mechanism("tight-exponential", space)
    own = illustrate(tight, cv.Budget(3.0), cv.TextPolicy())
    assert own is not None
    assert [panel.epsilon for panel in own.panels] == [3.0]
    assert illustrate(tight, cv.Budget(300.0, "document"), cv.TextPolicy()) is None
    assert illustrate(cv.mechanism("truncated-gumbel", space), cv.Budget(0.01), cv.TextPolicy()) is None


def page_of(space: Space, folder: Path, name: str = "ring-geometric", epsilon: float = 1.0) -> str:
    """Release a corpus with a canary; return its public page."""
    (folder / "in.jsonl").write_text(json.dumps({"text": f"the old river {CANARY} told 555123"}) + "\n")
    mechanism = cv.mechanism(name, space.save(str(folder / "space")))
    release = cv.Release(mechanism, cv.Budget(epsilon), key=cv.Key(TEST_KEY))
    privatize_corpus(release, [str(folder / "in.jsonl")], str(folder / "out"), Local())
    return (folder / "out.report.html").read_text()


def test_a_page_begins_with_pictures_and_marks_the_release_on_each(space: Space, tmp_path: Path) -> None:
    """No script, no address, nothing of the corpus; the release is one panel of three, and the one of its epsilon."""
    page = page_of(space, tmp_path)
    assert not re.search(r"(?:src|href)=|https?://|<script|@import|url\(", page)
    assert CANARY not in page
    assert "555123" not in page
    assert (
        page.index("What happens to a sentence")
        < page.index("Possible replacements of the word")
        < page.index("can guess")
    )
    assert page.index("can guess") < page.index("What is guaranteed")
    for title in ("Possible replacements of the word", "What a reader can guess"):
        figures = re.findall(r"<figure.*?</figure>", page[page.index(title) :].split("<h2>")[0], re.DOTALL)
        assert len(figures) == 3
        (own,) = [figure for figure in figures if "this release" in figure]
        assert "<b>epsilon 1</b>" in own
        assert 'class="panel' in own
        assert " own" in own.split(">")[0]
    guess = picture(space).own.guess
    assert guess is not None
    guessed = round(100 * guess.share)
    assert f"guesses about {guess.share:.1%} of known content words ({guess.blind:.1%} without looking), and " in page
    own = re.findall(r'<figure class="panel counted own">.*?</figure>', page, re.DOTALL)[0]
    assert own.count('class="dark"') == round(100 * guess.blind)
    assert own.count('class="shown"') == guessed - round(100 * guess.blind)
    assert len(re.findall(r"<rect", own)) == 100


def test_a_page_says_the_guarantee_in_brief_and_folds_all_of_it(space: Space, tmp_path: Path) -> None:
    page = page_of(space, tmp_path)
    brief = page.index("Without the key, a reader can distinguish")
    assert brief < page.index("<summary>The whole guarantee") < page.index("Each replaced word:")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert "What happens to a sentence" not in render_public(manifest)  # of a manifest alone


@pytest.mark.parametrize(
    ("share", "written"),
    [(0.0, "0 %"), (0.0002, "<0.1 %"), (0.0634, "6.3 %"), (0.46, "46 %"), (0.9996, ">99.9 %"), (1.0, "100 %")],
)
def test_a_probability_that_is_not_quite_0_or_1_does_not_look_like_it(share: float, written: str) -> None:
    assert percent(share) == written
