"""Epsilon by risk: a reader of context is no weaker than simpler ones, and a release says what chose its epsilon."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.language.context_risk import RUNS, WORDS, context_risk, public_text
from corpusveil.language.model import LanguageModel
from corpusveil.mechanisms.risk import word_risk
from corpusveil.sampling.grid import is_on_grid, round_down
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.rows import Columns
from corpusveil.transforms.release.manifest import draft
from corpusveil.transforms.release.risk import epsilon_for_risk, risk_of
from corpusveil_evaluate.statistics.perplexity import KneserNey
from tests.calls import refused
from tests.language.random_texts import WORDS as SAID
from tests.language.random_texts import corpus

KEY = cv.Key(bytes(range(32)))


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return KneserNey.of_texts(corpus(800, 1, 40)).model


def space_of(words: list[str], **more: Any) -> Space:
    rng = np.random.default_rng(0)
    counts = {"counts": (1000 / np.arange(1, len(words) + 1)).astype(int)} if more.pop("counted", True) else {}
    return cv.build_space(Vectors(words, rng.normal(size=(len(words), 4)).astype(np.float32)), **counts, **more)


@pytest.fixture(scope="module")
def space() -> Space:
    return space_of(SAID[:40])


def following(epsilon: float) -> float:
    """Return the next value of the grid."""
    return float(round_down(np.array([epsilon * 2 ** (1.5 / 8)]))[0])


class TestOneByOne:
    @pytest.mark.parametrize(
        ("name", "of", "risk"),
        [("ring-geometric", "word", 0.4), ("santext", "content", 0.4), ("tem", None, 0.8), ("cmp", "word", 0.8)],
    )
    def test_the_chosen_epsilon_meets_the_risk_and_the_next_one_does_not(
        self, space: Space, name: str, of: Any, risk: float
    ) -> None:
        mechanism = cv.mechanism(name, space)
        found = epsilon_for_risk(mechanism, risk, of=of)
        assert is_on_grid(found.epsilon)
        assert found.risk_of == of or (of, found.risk_of) == (None, "content")

        def both(epsilon: float) -> tuple[float, float]:
            risk = word_risk(mechanism, epsilon)
            return (risk.share, risk.content.share) if of == "word" else (risk.content.share, risk.share)

        assert (found.measured, found.beside) == tuple(round(share, 9) for share in both(found.epsilon))
        assert found.measured <= risk < both(following(found.epsilon))[0]
        assert found.plain_ldp == mechanism.guarantee(found.epsilon).plain_ldp
        assert found.exact == (name != "cmp")

    def test_what_can_not_be_chosen_is_refused(self, space: Space) -> None:
        """Without counts every word would count alike, and the risk be told far too small."""
        ring = cv.RingGeometric(space)
        for risk in (0, 1, -0.1, float("nan"), True, "half", None):
            with refused("wrong-value", "risk"):
                epsilon_for_risk(ring, risk)  # type: ignore[arg-type]
        with refused("missing-setting"):
            epsilon_for_risk(cv.RingGeometric(space_of(SAID[:10], counted=False)), 0.5)
        with refused("wrong-type", "Space"):
            epsilon_for_risk(space, 0.5)  # type: ignore[arg-type]
        with refused("wrong-value", "risk_of = 'sentence'"):
            epsilon_for_risk(ring, 0.5, of="sentence")  # type: ignore[arg-type]
        with refused("missing-setting"):
            epsilon_for_risk(ring, 0.5, of="context")

    def test_less_than_the_most_frequent_word_is_refused_with_the_floor(self, space: Space) -> None:
        """By one sentence, at once: nothing can be below what is right without looking."""
        risk = word_risk(cv.RingGeometric(space), 1.0)
        assert risk.blind > 2 * risk.content.blind
        for of, blind in (("word", risk.blind), ("content", risk.content.blind)):
            with refused("unsuitable-data", "risk = 0.01", f"{100 * blind:.1f}"):
                epsilon_for_risk(cv.RingGeometric(space), 0.01, of=of)  # type: ignore[arg-type]
            with refused("unsuitable-data", "0.0039"):
                epsilon_for_risk(cv.CusText(space), blind + 1e-4, of=of)  # type: ignore[arg-type]


class TestFromContext:
    @pytest.mark.parametrize(
        ("name", "epsilons"),
        [("ring-geometric", (0.5, 3.0)), ("cmp", (3.0,)),
         pytest.param("santext", (0.02, 0.5, 3.0, 50.0), marks=pytest.mark.nightly)],
    )  # fmt: skip
    def test_it_is_no_less_than_any_simpler_reader_guesses(
        self, space: Space, model: LanguageModel, name: str, epsilons: tuple[float, ...]
    ) -> None:
        mechanism = cv.mechanism(name, space)
        for epsilon in epsilons:
            whole, alone = context_risk(mechanism, epsilon, model), word_risk(mechanism, epsilon)
            for found, simple in ((whole, alone), (whole.content, alone.content)):
                assert found.share >= simple.share == found.alone
                assert found.share >= max(found.by_law, found.unchanged, found.by_search)
            assert whole.content.words < whole.words <= RUNS * WORDS
            assert whole.content.error > whole.error or whole.by_search == 1

    def test_context_tells_more_than_words_do(self, space: Space, model: LanguageModel) -> None:
        """In text of some order; so the same risk is a smaller epsilon."""
        mechanism = cv.RingGeometric(space)
        found = context_risk(mechanism, 0.7, model)
        assert found.by_search > found.by_law + 10 * found.error
        alone, read = (epsilon_for_risk(mechanism, 0.6, of=of, model=model) for of in ("word", "context"))
        assert epsilon_for_risk(mechanism, 0.6, model=model).risk_of == "content-context"
        assert read.epsilon < alone.epsilon
        assert (alone.model, read.model) == (None, model.digest)
        assert (alone.exact, read.exact) == (True, False)
        assert read.measured <= 0.6 < context_risk(mechanism, following(read.epsilon), model).share

    def test_the_shares_are_those_of_the_words_that_were_said(self, space: Space, model: LanguageModel) -> None:
        """By law and unchanged: what the whole text gives is what the exact law says of it, within its error."""
        mechanism = cv.RingGeometric(space)
        law = mechanism.distributions(np.arange(len(space)), 0.7)
        said = public_text(mechanism, model)
        truth = said.truth[said.truth >= 0]
        shares = np.bincount(truth, minlength=len(space)) / truth.size
        guess = (said.prior.shares[:, None] * law).argmax(axis=0)
        found = context_risk(mechanism, 0.7, model)
        assert found.words == truth.size
        assert found.unchanged == pytest.approx(shares @ np.diag(law), abs=0.01)
        right = sum(shares[guess[u]] * law[guess[u], u] for u in range(len(space)))
        assert found.by_law == pytest.approx(right, abs=0.02)

    def test_a_model_of_other_words_is_refused(self, model: LanguageModel) -> None:
        with refused("unsuitable-data"):
            context_risk(cv.RingGeometric(space_of([f"other{i}" for i in "abcdef"])), 1.0, model)


class TestTheRelease:
    def test_says_what_chose_its_epsilon(self, space: Space) -> None:
        mechanism = cv.RingGeometric(space)
        found = epsilon_for_risk(mechanism, 0.5)
        plain = cv.Release(mechanism, cv.Budget(found.epsilon), key=KEY)
        chosen = cv.Release(mechanism, cv.Budget(found.epsilon), key=KEY, risk=found)
        assert plain.digest == chosen.digest, "the text is the same, whoever chose epsilon"
        before, after = draft(plain, Columns()), draft(chosen, Columns())
        assert "risk" not in before
        read = risk_of(after)
        assert read is not None
        assert read.sentence() == found.sentence(), "a manifest says what the command said, nats included"
        assert after.pop("risk") == {
            "risk": 0.5, "risk_of": "content", "measured": found.measured, "exact": True, "beside": found.beside,
            "blind": found.blind,
        }  # fmt: skip
        old = after | {"risk": {"risk": 0.5, "risk_of": "word", "measured": 0.4, "exact": True}}
        assert "about 40.0% of known words one by one" in str(risk_of(old)), "a manifest of 0.2"
        assert before == after
        assert f"guesses about {found.measured:.1%}" in " ".join(str(chosen).split())

    def test_has_the_epsilon_that_was_chosen(self, space: Space) -> None:
        mechanism = cv.RingGeometric(space)
        found = epsilon_for_risk(mechanism, 0.5)
        for budget in (cv.Budget(1.5), cv.Budget(found.epsilon, "document")):
            with refused("mismatch", "cv.Budget", "risk.epsilon"):
                cv.Release(mechanism, budget, key=KEY, risk=found)
        with refused("wrong-type", "epsilon_for_risk"):
            cv.Release(mechanism, cv.Budget(1.5), key=KEY, risk=0.5)  # type: ignore[arg-type]

    def test_is_of_its_mechanism_space_and_stop_words(self, space: Space) -> None:
        """A choice for text whose stop words are drawn would print too small a risk where they are kept."""
        found, kept = epsilon_for_risk(cv.RingGeometric(space), 0.5), cv.TextPolicy(stop_words="keep")
        budget = cv.Budget(found.epsilon)
        for mechanism, policy in (
            (cv.RingGeometric(space), kept),
            (cv.DiffractorGeometric(space), cv.TextPolicy()),
            (cv.RingGeometric(space_of(SAID[:10])), cv.TextPolicy()),
        ):
            with refused("mismatch", "risk", "stop words"):
                cv.Release(mechanism, budget, policy, KEY, risk=found)
        cv.Release(cv.RingGeometric(space), budget, cv.TextPolicy(markup="strip"), KEY, risk=found)
