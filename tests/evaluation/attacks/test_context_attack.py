"""The context attacker: against exhaustive search, against the single-word attacker, and with a model that knows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.errors import BadValueError, DataError, NoClosedForm, ShapeError, UnknownError
from corpusveil.evaluation.attacks.context_attack import Aim, ContextAttacker, InSpace, released_words, sentence_ids
from corpusveil.evaluation.attacks.reconstruction import bayes_token
from corpusveil.mechanisms import make
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space, build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.spaces.word_prior import Prior, prior_of
from tests.contracts.mechanism import matrix
from tests.contracts.spaces import words_of
from tests.mechanisms.spaces import normal

SIZE = 12


@dataclass(frozen=True)
class Unigrams:
    """The prior as a language model."""

    prior: Prior

    def log_probabilities(self, contexts: npt.NDArray[np.int64], candidates: npt.NDArray[np.int64]) -> np.ndarray:
        shares = self.prior.shares[np.searchsorted(self.prior.words, candidates)]
        return np.tile(np.log(shares), (len(contexts), 1))


@dataclass(frozen=True)
class Trigrams:
    """Any p(c | a, b); a row of its own where there is no word before."""

    table: np.ndarray

    def log_probabilities(self, contexts: npt.NDArray[np.int64], candidates: npt.NDArray[np.int64]) -> np.ndarray:
        return np.log(self.table[contexts[:, 0], contexts[:, 1]][:, candidates])


@pytest.fixture(scope="module")
def space() -> Space:
    counts = np.random.default_rng(3).integers(1, 300, SIZE)
    return build_space(Vectors(words_of(SIZE), normal(SIZE, 3), counts=counts))


@pytest.fixture(scope="module")
def trigrams() -> Trigrams:
    table = np.random.default_rng(9).gamma(0.15, size=(SIZE + 1, SIZE + 1, SIZE)) + 1e-6
    return Trigrams(table / table.sum(axis=2, keepdims=True))


def sentences(trigrams: Trigrams, count: int, length: int, seed: int = 0) -> list[npt.NDArray[np.int64]]:
    """Draw sentences from the model."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        words = [-1, -1]
        for _ in range(length):
            words.append(int(rng.choice(SIZE, p=trigrams.table[words[-2], words[-1]])))
        out.append(np.array(words[2:]))
    return out


def every_sentence(trigrams: Trigrams, law: np.ndarray, seen: npt.NDArray[np.int64]) -> np.ndarray:
    """Return the log-probability of every sentence of four words; float64 [V, V, V, V]."""
    told, start = np.log(trigrams.table), SIZE
    first, second = told[start, start], told[start, :SIZE]
    inner = told[:SIZE, :SIZE]
    spoken = first[:, None, None, None] + second[:, :, None, None] + inner[:, :, :, None] + inner[None]
    a, b, c, d = (law[:, one] for one in seen)
    return spoken + a[:, None, None, None] + b[:, None, None] + c[:, None] + d


@pytest.mark.parametrize("name", ["santext", "ring-geometric", "custext"])
def test_a_wide_beam_finds_what_exhaustive_search_finds(space: Space, trigrams: Trigrams, name: str) -> None:
    """The likeliest sentence, and at each place the likeliest word; a beam of one history (greedy) does not."""
    mechanism, prior = make(name, space), prior_of(space)
    sentence, words, greedy = (
        ContextAttacker(mechanism, 1.0, prior, trigrams, candidates=SIZE, width=width, aim=aim)  # type: ignore[arg-type]
        for width, aim in ((SIZE**2, "sentence"), (SIZE**2, "words"), (1, "sentence"))
    )
    with np.errstate(divide="ignore"):
        law = np.log(matrix(mechanism, 1.0))
    differs = {"greedy": False, "aim": False}
    for number, original in enumerate(sentences(trigrams, 40, 4)):
        (seen,) = released_words(mechanism, 1.0, [original], Key(hashlib.sha256(bytes([number])).digest()))
        total = every_sentence(trigrams, law, seen)
        best = [int(one) for one in np.unravel_index(total.argmax(), total.shape)]
        shares = np.exp(total - total.max())
        marginal = [int(shares.sum(axis=tuple({0, 1, 2, 3} - {place})).argmax()) for place in range(4)]
        assert sentence.guesses([seen])[0].tolist() == best
        assert words.guesses([seen])[0].tolist() == marginal
        differs["greedy"] |= greedy.guesses([seen])[0].tolist() != best
        differs["aim"] |= best != marginal
    assert all(differs.values())


@pytest.mark.parametrize("aim", ["words", "sentence"])
@pytest.mark.parametrize("width", [1, 5, 200])
def test_with_the_prior_for_a_language_model_context_adds_nothing(space: Space, width: int, aim: Aim) -> None:
    """Place by place the guess of Bayes for a single word, whatever the width."""
    mechanism, prior = make("santext", space), prior_of(space)
    originals = [np.random.default_rng(1).integers(0, SIZE, 9) for _ in range(20)]
    seen = released_words(mechanism, 1.0, originals, Key.for_tests())
    attacker = ContextAttacker(mechanism, 1.0, prior, Unigrams(prior), candidates=8, width=width, aim=aim)
    best = bayes_token(mechanism, 1.0, prior).guesses[:, 0]
    for found, sentence in zip(attacker.guesses(seen), seen, strict=True):
        assert found.tolist() == best[sentence].tolist()
    told = attacker.attack(originals, seen)
    assert told.by_search == told.by_law
    assert told.words == 180


def test_an_informative_model_gives_words_back(space: Space, trigrams: Trigrams) -> None:
    """Shares by hand, and a gain far beyond its error; single words of the same text as a model give none."""
    mechanism = make("santext", space)
    seen_before = np.bincount(np.concatenate(sentences(trigrams, 1000, 8, seed=1)), minlength=SIZE)
    prior = Prior(np.arange(SIZE), (seen_before + 1) / (seen_before + 1).sum(), 1.0)
    originals = sentences(trigrams, 150, 8)
    seen = released_words(mechanism, 2.0, originals, Key.for_tests())
    attacker = ContextAttacker(mechanism, 2.0, prior, trigrams, candidates=SIZE, width=100)
    told = attacker.attack(originals, seen)
    truth, out = np.concatenate(originals), np.concatenate(seen)
    alone = bayes_token(mechanism, 2.0, prior).guesses[out, 0]
    assert told.unchanged == pytest.approx(np.mean(truth == out))
    assert told.without_context == pytest.approx(np.mean(truth == alone))
    assert told.with_context == pytest.approx(np.mean(np.concatenate(attacker.guesses(seen)) == truth))
    assert told.given_back > 0.1
    assert told.given_back > 5 * told.error
    assert told.covered == 1
    same = Trigrams(np.broadcast_to(prior.shares, (SIZE + 1, SIZE + 1, SIZE)))
    assert ContextAttacker(mechanism, 2.0, prior, same, candidates=SIZE).attack(originals, seen).given_back == 0
    whole = ContextAttacker(mechanism, 2.0, prior, trigrams, candidates=SIZE, aim="sentence").attack(originals, seen)
    assert told.without_context < whole.with_context < told.with_context
    shuffled = Trigrams(np.roll(trigrams.table, 5, axis=1))
    assert ContextAttacker(mechanism, 2.0, prior, shuffled, candidates=SIZE).attack(originals, seen).given_back < 0


@dataclass(frozen=True)
class Own:
    """A model that numbers words backwards, and knows all but three of them."""

    words: list[str]
    table: np.ndarray

    def ids(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        known = self.words[3:][::-1]
        return np.array([known.index(word) if word in known else len(known) for word in words])

    def log_probabilities(self, contexts: npt.NDArray[np.int64], candidates: npt.NDArray[np.int64]) -> np.ndarray:
        return np.log(self.table[contexts[:, 0], contexts[:, 1]][:, candidates])


def test_a_model_of_its_own_ids_is_matched_by_words(space: Space) -> None:
    """Probabilities of the space's words are the model's, unknown words share theirs and have the prior's; sum 1."""
    size = SIZE - 3 + 1
    table = np.random.default_rng(2).dirichlet(np.ones(size), (size + 1, size + 1))
    words = [space.word(n) for n in range(SIZE)]
    prior = Prior(np.arange(SIZE), np.full(SIZE, 1 / SIZE), 1.0)
    language = InSpace.of(Own(words, table), space, prior)
    contexts = np.array([[-1, -1], [-1, 5], [4, 11], [0, 2]])
    found = np.exp(language.log_probabilities(contexts, np.arange(SIZE)))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert found[2, 11] == pytest.approx(0.75 * table[11 - 4, 0, 0])
    assert found[1, 5] == pytest.approx(0.75 * table[-1, 11 - 5, 11 - 5])
    assert found[3, 1] == pytest.approx(0.75 * table[9, 9, 9] / 3 + 1 / SIZE)


def test_the_error_is_that_of_sentences(space: Space, trigrams: Trigrams) -> None:
    """Over fresh batches the gain varies as the error says."""
    mechanism, prior = make("santext", space), prior_of(space)
    attacker = ContextAttacker(mechanism, 1.0, prior, trigrams, candidates=SIZE)
    told = []
    for batch in range(30):
        originals = sentences(trigrams, 40, 5, seed=batch)
        key = Key(hashlib.sha256(bytes([batch])).digest())
        told.append(attacker.attack(originals, released_words(mechanism, 1.0, originals, key)))
    spread = np.std([one.given_back for one in told], ddof=1)
    assert np.mean([one.error for one in told]) == pytest.approx(spread, rel=0.45)


def test_words_that_nothing_is_known_about_are_left_out(space: Space, trigrams: Trigrams) -> None:
    """An id of -1 stays and cuts the context; a word outside the prior is never recovered, and counted."""
    mechanism, prior = make("custext", space), prior_of(space, 4)
    attacker = ContextAttacker(mechanism, 5.0, prior, trigrams)
    originals = [np.array([0, -1, 3]), np.arange(SIZE)]
    seen = released_words(mechanism, 5.0, originals, Key.for_tests())
    assert seen[0][1] == -1
    assert [one.size for one in attacker.guesses(seen)] == [3, SIZE]
    assert attacker.guesses(seen)[0][1] == -1
    told = attacker.attack(originals, seen)
    assert told.words == SIZE + 2
    assert told.by_law <= told.covered < 1


def test_sentences_become_ids(space: Space) -> None:
    words = [space.word(n) for n in range(3)]
    text = f"{words[0].title()} {words[1]}, 7 unknownword {words[2]}. {words[2].title()}!"
    assert [one.tolist() for one in sentence_ids(space, [text, "", words[0]])] == [[0, 1, -1, 2], [2], [0]]
    assert sentence_ids(space, ["", "7"]) == []


def test_what_can_not_be_attacked_is_said(space: Space, trigrams: Trigrams) -> None:
    prior = prior_of(space)
    with pytest.raises(NoClosedForm, match="cmp: what explains a released word needs the exact law"):
        ContextAttacker(make("cmp", space), 1.0, prior, trigrams).guesses([np.array([1])])
    attacker = ContextAttacker(make("santext", space), 1.0, prior, trigrams)
    with pytest.raises(ShapeError):
        attacker.attack([np.array([1])], [np.array([1, 2])])
    with pytest.raises(DataError):
        attacker.attack([np.array([-1])], [np.array([-1])])
    with pytest.raises(UnknownError, match="id 99"):
        attacker.guesses([np.array([99])])
    with pytest.raises(BadValueError, match="width = 0"):
        ContextAttacker(make("santext", space), 1.0, prior, trigrams, width=0)
    with pytest.raises(BadValueError, match="aim = 'all'"):
        ContextAttacker(make("santext", space), 1.0, prior, trigrams, aim="all")  # type: ignore[arg-type]
    wrong = Trigrams(np.full((SIZE + 1, SIZE + 1, SIZE), np.nan))
    with pytest.raises(ShapeError):
        ContextAttacker(make("santext", space), 1.0, prior, wrong).guesses([np.array([1])])
