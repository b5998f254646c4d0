"""The context attacker: what denoise gives back, against single words, with a model that knows, and without a law."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import corpusveil as cv
from corpusveil.errors import DataError, SettingError
from corpusveil.mechanisms import make_mechanism
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil_evaluate.attacks import word_attacks
from corpusveil_evaluate.attacks.word_attacks import ContextAttacker, likelier, released_words
from corpusveil_evaluate.readers.ngrams.denoise import Denoiser, Search
from corpusveil_evaluate.readers.ngrams.lattice_room import LONGEST
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from corpusveil_evaluate.statistics.perplexity import KneserNey
from evaluate.tests.readers.random_texts import WORDS, corpus
from tests.mechanisms.spaces import normal

SIZE = 12


@pytest.fixture(scope="module")
def space() -> Space:
    return build_space(Vectors(WORDS[:SIZE], normal(SIZE, 3)))


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    """A model of text in which the next word is often the next of the list."""
    return KneserNey.of_texts(corpus(2000, 1, SIZE)).model


def sentences(count: int, length: int, seed: int = 5) -> list[npt.NDArray[np.int32]]:
    """Draw sentences of such text."""
    rng = np.random.default_rng(seed)
    law = 1 / np.arange(1, SIZE + 1)
    out = []
    for _ in range(count):
        words = [0]
        for _ in range(length):
            follows = rng.random() < 0.7
            words.append((words[-1] + 1) % SIZE if follows else int(rng.choice(SIZE, p=law / law.sum())))
        out.append(np.array(words[1:], np.int32))
    return out


@pytest.mark.parametrize("name", ["ring-geometric", "cmp"])
def test_the_attacker_reads_what_denoise_writes(space: Space, model: LanguageModel, name: str) -> None:
    """Same law, model and search: word by word the text of the denoised release, also without an exact law."""
    mechanism, search = make_mechanism(name, space), Search()
    originals = sentences(40, 9)
    seen = released_words(mechanism, 1.0, originals, Key.for_tests())
    texts = [" ".join(space.word(int(word)) for word in one) for one in seen]
    policy = cv.TextPolicy(numbers="keep", unknown_words="mask")
    written = Denoiser(mechanism, cv.Budget(1.0), policy, model, search).readable(texts)
    guesses = ContextAttacker(mechanism, 1.0, model, search).guesses(seen)
    assert [" ".join(space.word(int(word)) for word in one) for one in guesses] == written != texts


def test_an_informative_model_gives_words_back(space: Space, model: LanguageModel) -> None:
    """Shares by hand, and a gain far beyond its error."""
    mechanism = make_mechanism("santext", space)
    originals = sentences(150, 8)
    seen = released_words(mechanism, 2.0, originals, Key.for_tests())
    attacker = ContextAttacker(mechanism, 2.0, model)
    told = attacker.attack(originals, seen)
    truth, out = np.concatenate(originals), np.concatenate(seen)
    assert told.unchanged == pytest.approx(np.mean(truth == out))
    assert told.by_frequency == pytest.approx(np.mean(truth == attacker._reader.shares.argmax()))
    assert told.by_search == pytest.approx(np.mean(np.concatenate(attacker.guesses(seen)) == truth))
    assert told.words == 1200
    assert told.given_back > 0.1
    assert told.given_back > 5 * told.error


def test_an_attacker_with_some_originals_knows_how_frequent_words_are_there(space: Space, model: LanguageModel) -> None:
    """Of text whose words are frequent elsewhere than in public text; without originals, or of any kind, no less."""
    mechanism, swapped = (
        make_mechanism("ring-geometric", space),
        [(one + SIZE // 2) % SIZE for one in sentences(150, 8)],
    )
    seen = released_words(mechanism, 0.2, swapped, Key.for_tests())
    found = [
        ContextAttacker(mechanism, 0.2, model, known=known).attack(swapped[75:], seen[75:])
        for known in (None, [], swapped[:75])
    ]
    assert found[0].by_search == found[1].by_search < found[2].by_search - 3 * found[2].share_error
    shares, rng = np.array([0.5, 0.3, 0.2]), np.random.default_rng(0)
    for there in (np.array([0.3, 0.5, 0.2]), shares):
        documents = [np.append(rng.choice(3, 50, p=there), -1) for _ in range(40)]
        np.testing.assert_allclose(likelier(shares, documents) * shares, there, atol=0.03)
    repeated = [np.full(50, rng.choice(3, p=shares)) for _ in range(8)]  # each says one word alone: nothing of others
    assert np.abs(np.log(likelier(shares, repeated))).max() < 0.5


def test_words_that_nothing_is_known_about_cut_the_context(
    space: Space, model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An id of -1 stays; what stands on its two sides is no context of each other. A long run is cut."""
    monkeypatch.setattr(word_attacks, "MEMORY", 0.0)
    mechanism = make_mechanism("ring-geometric", space)
    attacker = ContextAttacker(mechanism, 0.5, model)
    one, two, three = sentences(3, 6)
    (joined, first, second) = attacker.guesses([np.concatenate([one, [-1], two]), one, two])
    assert joined.tolist() == [*first.tolist(), -1, *second.tolist()]
    long = np.concatenate(sentences(1, LONGEST)), three
    whole, beginning, rest = attacker.guesses([np.concatenate(long), *long])
    assert whole.tolist() == [*beginning.tolist(), *rest.tolist()]
    assert attacker.guesses([]) == []
    assert attacker.attack([np.array([0, -1, 3])], [np.array([-1, 4, 3])]).words == 1


def test_what_can_not_be_attacked_is_said(space: Space, model: LanguageModel) -> None:
    attacker = ContextAttacker(make_mechanism("santext", space), 1.0, model)
    with pytest.raises(SettingError):
        attacker.attack([np.array([1])], [np.array([1, 2])])
    with pytest.raises(DataError):
        attacker.attack([np.array([-1])], [np.array([-1])])
    with pytest.raises(SettingError):
        attacker.guesses([np.array([99])])
    with pytest.raises(SettingError):
        ContextAttacker(make_mechanism("santext", space), -1.0, model)
