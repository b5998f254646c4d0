"""Epsilon by risk: a reader of context is no weaker than simpler ones, and a release says what chose its epsilon.

Content risk is that of brute force; whose words count is public; kept stop words are known to every reader.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.jobs.local import Local
from corpusveil.language.context_risk import GRID, MOST_ERROR, context_risk, hits_of, measured, share_of
from corpusveil.language.context_risk import WORDS as MOST
from corpusveil.language.model import LanguageModel
from corpusveil.language.modelling import build_model
from corpusveil.language.sample import Figures, Stronger
from corpusveil.mechanisms.content import FREQUENT, content_weights, stop_words_of
from corpusveil.mechanisms.risk import SLACK, prior_of, word_risk
from corpusveil.sampling.grid import round_down
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.rows import Columns
from corpusveil.text.languages import STOP_WORDS
from corpusveil.transforms.release.manifest import draft
from corpusveil.transforms.release.risk import epsilon_for_risk, risk_of
from corpusveil_evaluate.statistics.perplexity import KneserNey
from tests.calls import refused
from tests.language.random_texts import WORDS as SAID
from tests.language.random_texts import corpus, sample_file

KEY = cv.Key(bytes(range(32)))
TEXTS = corpus(4000, 2, 40)
"""What no count has read, of the kind that was counted."""


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return KneserNey.of_texts(corpus(800, 1, 40)).model


def space_of(words: list[str], language: str | None = None, **more: Any) -> Space:
    rng = np.random.default_rng(0)
    counts = {"counts": (1000 / np.arange(1, len(words) + 1)).astype(int)} if more.pop("counted", True) else {}
    vectors = Vectors(words, rng.normal(size=(len(words), 4)).astype(np.float32), language=language)
    return cv.build_space(vectors, **counts, **more)


@pytest.fixture(scope="module")
def space() -> Space:
    return space_of(SAID[:40])


def following(epsilon: float) -> float:
    """Return the next value of the grid."""
    return float(round_down(np.array([epsilon * 2 ** (1.5 / 8)]))[0])


class TestOneByOne:
    @pytest.mark.nightly
    def test_the_chosen_epsilon_meets_the_risk_and_a_larger_one_does_not(
        self, space: Space, model: LanguageModel
    ) -> None:
        """On lists the next of the grid; other mechanisms skip shares there, and come as near as finer steps do."""
        for name, risk in (("ring-geometric", 0.6), ("santext", 0.7)):
            mechanism = cv.mechanism(name, space)
            found = epsilon_for_risk(mechanism, risk, model=model, texts=TEXTS)
            read = context_risk(mechanism, found.epsilon, model, texts=TEXTS)
            assert found.epsilon == float(round_down(np.array([found.epsilon]))[0]) or name != "ring-geometric"
            assert (found.measured, found.beside) == (round(read.content.share, 9), round(read.share, 9))
            over = context_risk(mechanism, following(found.epsilon), model, texts=TEXTS).content.share
            assert found.measured <= risk < over
            assert name == "ring-geometric" or found.measured > risk - 2 * SLACK
            assert found.plain_ldp == mechanism.guarantee(found.epsilon).plain_ldp

    def test_what_can_not_be_chosen_is_refused(self, space: Space) -> None:
        ring = cv.RingGeometric(space)
        for risk in (0, 1, -0.1, float("nan"), True, "half", None):
            with refused("wrong-value", "risk"):
                epsilon_for_risk(ring, risk)  # type: ignore[arg-type]
        with refused("wrong-type", "Space"):
            epsilon_for_risk(space, 0.5)  # type: ignore[arg-type]
        with refused("missing-setting", "cv.load_model"):
            epsilon_for_risk(ring, 0.5)

    def test_less_than_the_most_frequent_word_is_refused_with_the_floor(
        self, space: Space, model: LanguageModel
    ) -> None:
        """By one sentence, at once: nothing can be below what is right without looking."""
        blind = word_risk(cv.RingGeometric(space), 1.0).content.blind
        with refused("unsuitable-data", "risk = 0.01", f"{100 * blind:.1f}"):
            epsilon_for_risk(cv.RingGeometric(space), 0.01, model=model, texts=TEXTS)


class TestFromContext:
    def test_context_tells_more_than_words_do(self, space: Space, model: LanguageModel) -> None:
        """In text of some order; and the figure is that of the texts."""
        mechanism = cv.RingGeometric(space)
        read = epsilon_for_risk(mechanism, 0.6, model=model, texts=TEXTS)
        assert (read.model, read.own_text) == (model.digest, True)
        assert read.measured > word_risk(mechanism, read.epsilon).content.share
        found = context_risk(mechanism, read.epsilon, model, texts=TEXTS)
        assert (read.measured, read.error) == (round(found.content.share, 9), round(found.content.error, 9))
        assert read.beside == round(found.share, 9)
        assert 0 < found.error < found.content.error < 0.01
        assert read.measured <= 0.6
        assert context_risk(mechanism, following(read.epsilon), model, texts=TEXTS).content.share > 0.6
        assert found.unlike is None
        assert "60.0% or less" in read.sentence()
        assert "of the public text that was given" in read.sentence()
        assert found.content.words < found.words <= MOST + 20

    @pytest.mark.parametrize(("name", "epsilon"), [("ring-geometric", 0.5), ("ring-geometric", 3.0), ("cmp", 3.0)])
    def test_no_simpler_reader_recovers_more(
        self, space: Space, model: LanguageModel, name: str, epsilon: float
    ) -> None:
        """Neither who knows the law and the frequencies of words, nor who takes words for what they are."""
        mechanism = cv.mechanism(name, space)
        found, alone = context_risk(mechanism, epsilon, model, texts=TEXTS), word_risk(mechanism, epsilon)
        for read, simple in ((found, alone), (found.content, alone.content)):
            assert read.share > max(simple.share, simple.unchanged) - 4 * read.error

    def test_the_reader_is_not_chosen_by_the_figure(self) -> None:
        """Of two readers who are right by chance, one time in two, the better one is not said to be better."""
        rng, part = np.random.default_rng(0), np.arange(300) // 3
        right = rng.random((2000, 2, 300)) < 0.5
        shares = [share_of(hits_of(each, np.ones(300), part), np.ones(300), part).share for each in right]
        assert np.mean(shares) == pytest.approx(0.5, abs=0.003)
        assert right.mean(axis=2).max(axis=1).mean() > 0.51, "the better of two figures of one text would be noticed"

    @pytest.mark.nightly
    def test_of_text_unlike_the_models_less_is_recovered(
        self, space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By the same reader: of a register that was not counted, where words follow each other in another order."""
        monkeypatch.chdir(tmp_path)
        Path("a.txt").write_text("\n".join(text.replace("\n", " ") for text in corpus(800, 1, 40)))
        count_corpus(["a.txt"], "counts", Local(), CountOptions(3, 1))
        mixed = [" ".join(np.random.default_rng(0).permutation(text.split())) for text in TEXTS[:1200]]
        rows = [{"text": text, "register": ("one", "two")[at % 2]} for at, text in enumerate(TEXTS[:1200])]
        rows += [{"text": text, "register": "mixed", "counted": False} for text in mixed]
        build_model("counts", "model", Local(), sample=sample_file(tmp_path / "s.jsonl.zst", rows))
        mechanism, saved = cv.RingGeometric(space), cv.load_model("model")
        found = epsilon_for_risk(mechanism, 0.6, model=saved)
        assert found.unlike is not None
        assert found.unlike < found.measured - 2 * found.error
        assert "of those of text unlike it" in found.sentence()
        assert found.highest is not None
        register, share, error = found.highest
        assert register in ("one", "two"), "the register of which most is recovered is named"
        assert found.measured < share < found.measured + 4 * error, "both have texts of one kind"
        assert f", of {register}, where it recovers most, about {100 * share:.1f}" in found.sentence()
        assert found.own_text is None
        apart = [row | {"register": f"{at}"} for at, row in enumerate(rows) if row["register"] != "mixed"]
        build_model("counts", "apart", Local(), sample=sample_file(tmp_path / "apart.jsonl.zst", apart))
        read = context_risk(mechanism, found.epsilon, cv.load_model("apart"))
        assert read.highest is None, "of a few words, some share is large by chance"
        both = context_risk(mechanism, found.epsilon, saved)
        assert both.unlike is not None
        assert round(both.unlike.content.share, 9) == found.unlike
        ladder = cv.reader_ladder(mechanism, found.epsilon, saved, dial=False)
        assert [each.content for each in ladder.rungs[2:4]] == [both.content.share, both.unlike.content.share]
        Path("model/figures.json").write_bytes(measured(mechanism, saved, epsilons=GRID[7 * 8 : 9 * 8 + 1]).data())
        Path("model/_artifact.json").write_text(Path("model/_artifact.json").read_text().replace('"sample"', '"other"'))
        past = cv.load_model("model")  # whose texts may not be passed on
        assert epsilon_for_risk(mechanism, 0.6, model=past).as_dict() == found.as_dict()
        known = context_risk(mechanism, 0.8, past)
        assert known.content.share == pytest.approx(context_risk(mechanism, 0.8, saved).content.share, abs=0.02)
        with refused("missing-setting", "sample"):
            context_risk(cv.SanText(space), 0.8, past)

    def test_epsilon_follows_the_strongest_reader_that_the_figures_have(
        self, space: Space, model: LanguageModel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Who gains more than the trigrams decides, and is named; whose gain is below 0 reads as these do."""
        epsilons = [2.0**exponent for exponent in range(-8, 7)]
        points = [[at / 14, at / 14, 0.01] for at in range(15)]
        unlike = [[0.9 * share, 0.9 * share, 0.01] for share, *_ in points]
        chosen = {}
        for gain in (None, 0.1, -0.1):
            rows = [[gain, gain, 0.01]] * 2
            stronger = () if gain is None else (
                Stronger(reader="two models", model="0" * 64, words=[[9, 9]] * 2, epsilons=[0.25, 1.0], like=rows,
                         unlike=rows, highest=((0.2, 0.01),) * 2),
            )  # fmt: skip
            figures = Figures(
                text="0" * 64, epsilons=epsilons, like=points, unlike=unlike,
                highest=((0.7, 0.01),) * 15, registers=("fiction",) * 15, stronger=stronger,
            )  # fmt: skip
            monkeypatch.setattr(f"{context_risk.__module__}.figures_of", lambda *_, figures=figures: figures)
            chosen[gain] = epsilon_for_risk(cv.RingGeometric(space), 0.6, model=model)
        alone, more, less = chosen.values()
        assert more.epsilon < alone.epsilon == less.epsilon
        assert 0.55 < more.measured <= 0.6
        assert more.unlike == pytest.approx(0.9 * (more.measured - 0.1) + 0.1)
        assert more.highest == ("fiction", pytest.approx(0.9), pytest.approx(0.01 * 2**0.5, abs=1e-6))
        assert more.error == pytest.approx(0.01 * 2**0.5, abs=1e-6)
        assert "a reader with the public trigrams recovers about" in alone.sentence()
        assert more.as_dict()["reader"] == "two models"
        assert "a reader with two models recovers about" in more.sentence()

    def test_texts_that_are_too_few_are_refused(self, space: Space, model: LanguageModel) -> None:
        """Whoever asks for a share learns how many more are needed; and a model without a sample says what to do."""
        ring = cv.RingGeometric(space)
        with refused("unsuitable-data", f"{100 * MOST_ERROR:g}", "times as much"):
            context_risk(ring, 0.7, model, texts=TEXTS[:150])
        with refused("unsuitable-data", "times as much"):
            epsilon_for_risk(ring, 0.6, model=model, texts=TEXTS[:150])
        for texts, code in ((TEXTS[:5], "unsuitable-data"), ([], "unsuitable-data"), (None, "missing-setting")):
            with refused(code):
                context_risk(ring, 0.7, model, texts=texts)

    def test_a_model_of_other_words_is_refused(self, model: LanguageModel) -> None:
        with refused("unsuitable-data"):
            context_risk(cv.RingGeometric(space_of([f"other{i}" for i in "abcdef"])), 1.0, model, texts=TEXTS)


class TestTheRelease:
    @pytest.fixture(scope="class")
    def found(self, space: Space, model: LanguageModel) -> cv.EpsilonAtRisk:
        return epsilon_for_risk(cv.RingGeometric(space), 0.6, model=model, texts=TEXTS)

    def test_says_what_chose_its_epsilon(self, space: Space, found: cv.EpsilonAtRisk) -> None:
        mechanism = cv.RingGeometric(space)
        plain = cv.Release(mechanism, cv.Budget(found.epsilon), key=KEY)
        chosen = cv.Release(mechanism, cv.Budget(found.epsilon), key=KEY, risk=found)
        assert plain.digest == chosen.digest, "the text is the same, whoever chose epsilon"
        before, after = draft(plain, Columns()), draft(chosen, Columns())
        assert "risk" not in before
        read = risk_of(after)
        assert read is not None
        assert read.sentence() == found.sentence(), "a manifest says what the command said, nats included"
        assert after.pop("risk") == {
            "risk": 0.6, "measured": found.measured, "error": found.error, "model": found.model,
            "beside": found.beside, "blind": found.blind, "text": found.text, "own_text": True, "reader": found.reader,
        }  # fmt: skip
        assert before == after
        assert f"recovers about {found.measured:.1%}" in " ".join(str(chosen).split())

    def test_has_the_epsilon_that_was_chosen(self, space: Space, found: cv.EpsilonAtRisk) -> None:
        mechanism = cv.RingGeometric(space)
        for budget in (cv.Budget(1.5), cv.Budget(found.epsilon, "document")):
            with refused("mismatch", "cv.Budget", "risk.epsilon"):
                cv.Release(mechanism, budget, key=KEY, risk=found)
        with refused("wrong-type", "epsilon_for_risk"):
            cv.Release(mechanism, cv.Budget(1.5), key=KEY, risk=0.5)  # type: ignore[arg-type]

    def test_is_of_its_mechanism_space_and_stop_words(self, space: Space, found: cv.EpsilonAtRisk) -> None:
        """A choice for text whose stop words are drawn would print too small a risk where they are kept."""
        kept = cv.TextPolicy(stop_words="keep")
        budget = cv.Budget(found.epsilon)
        for mechanism, policy in (
            (cv.RingGeometric(space), kept),
            (cv.DiffractorGeometric(space), cv.TextPolicy()),
            (cv.RingGeometric(space_of(SAID[:10])), cv.TextPolicy()),
        ):
            with refused("mismatch", "risk", "stop words"):
                cv.Release(mechanism, budget, policy, key=KEY, risk=found)
        cv.Release(cv.RingGeometric(space), budget, cv.TextPolicy(markup="strip"), key=KEY, risk=found)

    @pytest.mark.nightly
    def test_is_read_in_the_language_of_its_space(self, model: LanguageModel) -> None:
        """Whether the language is named or not."""
        mechanism = cv.RingGeometric(space_of(SAID[:40], "de"))
        found, *others = (
            epsilon_for_risk(mechanism, 0.6, model=model, texts=TEXTS, policy=cv.TextPolicy(language=language))
            for language in (None, "German", "detect")
        )
        assert others == [found, found]
        for language in (None, "de"):
            policy = cv.TextPolicy(language=language)
            release = cv.Release(mechanism, cv.Budget(found.epsilon), policy, key=KEY, risk=found)
            assert release.policy.language == "de"


SIZE = 5
KEPT = cv.TextPolicy(stop_words="keep")
WEIGHTS = np.array([0.0, 2.5, 0.0, 1.0, 0.25])
EXACT = ("ring-geometric", "diffractor-geometric", "diffractor-exponential", "tight-exponential", "santext", "tem",
         "custext", "syntf")  # fmt: skip


def counted(words: list[str], counts: Any = None, **more: Any) -> Space:
    vectors = np.random.default_rng(2).normal(size=(len(words), 3)).astype(np.float32)
    counts = np.random.default_rng(3).integers(1, 100, len(words)) if counts is None else counts
    return cv.build_space(Vectors(words, vectors), counts=counts, **more)


@pytest.fixture(scope="module")
def five() -> Space:
    """Return two stop words and three other words."""
    return counted(["the", "river", "of", "doctor", "ran"], lists=2)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("policy", [cv.TextPolicy(), KEPT], ids=["privatized", "kept"])
def test_both_shares_are_those_of_the_best_of_all_guessing_rules(five: Space, name: str, policy: cv.TextPolicy) -> None:
    """All 5^5 rules, enumerated; a kept word is itself with certainty, and a replacement may look like one."""
    mechanism, shares, epsilon = cv.mechanism(name, five), prior_of(five).shares, 3.0 if name == "santext" else 0.7
    law = mechanism.distributions(np.arange(SIZE), epsilon)
    if policy is KEPT:
        stops = stop_words_of(five)
        law[stops] = np.eye(SIZE)[stops]
    found = word_risk(mechanism, epsilon, policy=policy, content=WEIGHTS)
    for shown, weights in ((found, np.ones(SIZE)), (found.content, WEIGHTS)):
        counted = shares * weights
        joint = counted[:, None] * law
        rules = itertools.product(range(SIZE), repeat=SIZE)
        best = max(sum(joint[guess, u] for u, guess in enumerate(rule)) for rule in rules)
        assert shown.share == pytest.approx(best / counted.sum(), rel=1e-12)
        assert shown.unchanged == pytest.approx(np.trace(joint) / counted.sum(), rel=1e-12)
        assert shown.blind == pytest.approx(counted.max() / counted.sum(), rel=1e-12)
    assert found.exact


def test_masked_stop_words_are_guessed_alike_and_dropped_ones_not(five: Space) -> None:
    mechanism, shares, stops = cv.RingGeometric(five), prior_of(five).shares, stop_words_of(five)
    joint = (shares * ~stops)[:, None] * mechanism.distributions(np.arange(SIZE), 1.0)
    for policy, more in (("drop", 0.0), ("mask", (shares * stops).max())):
        found = word_risk(mechanism, 1.0, policy=cv.TextPolicy(stop_words=policy))  # type: ignore[arg-type]
        assert found.share == pytest.approx(max(joint.max(axis=0).sum() + more, shares.max()), rel=1e-12)


class TestWhoseWordsCount:
    def test_by_default_those_that_are_no_english_function_words(self) -> None:
        """Of the demo: nor collocations of these alone."""
        space = counted([*sorted(STOP_WORDS), "river", "of_the", "of_rivers"], lists=0)
        content = {word for word, weight in zip(space.vocabulary.words, content_weights(space), strict=True) if weight}
        assert content == {"river", "of_rivers"}

    @pytest.mark.parametrize(("size", "functions"), [(400, FREQUENT), (100, 50)])
    def test_in_another_language_those_that_are_not_most_frequent(self, size: int, functions: int) -> None:
        """At most half of all words are function words."""
        space = counted([f"w{i}" for i in range(size)], np.random.default_rng(0).permutation(size), lists=0)
        weights = content_weights(space)
        assert (weights == 0).sum() == functions
        assert space.counts is not None
        assert space.counts[weights == 0].min() > space.counts[weights == 1].max()


def test_kept_stop_words_are_known_and_tell_about_the_others() -> None:
    counted_texts, texts = (
        [text.replace("aa", "the").replace("ab", "of") for text in corpus(documents, seed, 40)]
        for documents, seed in ((800, 1), (3000, 2))
    )
    model = KneserNey.of_texts(counted_texts).model
    mechanism = cv.RingGeometric(counted(list(model.vocabulary.words), model.vocabulary.counts, lists=1))
    others = 1.0 - stop_words_of(mechanism.space)
    plain, kept, *hidden = (
        context_risk(mechanism, 0.5, model, texts=texts, content=others, policy=cv.TextPolicy(stop_words=policy))  # type: ignore[arg-type]
        for policy in ("privatize", "keep", "mask", "drop")
    )
    assert kept.content.share > plain.content.share + 2 * plain.content.error
    assert kept.share > plain.share + 0.1
    for read in hidden:
        assert read.share < plain.share
        assert read.words == plain.words
