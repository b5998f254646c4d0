"""Lists over different words: total maps keep the promise, choosing among the lists that hold a word breaks it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

import corpusveil as cv
from corpusveil.errors import ArtefactError, DataError, MismatchError
from corpusveil.mechanisms import Mechanism, make
from corpusveil.mechanisms.on_lists import OnLists
from corpusveil.spaces import Space
from corpusveil.spaces import space as spaces
from corpusveil.spaces.vectors import Vectors
from tests.calls import refused
from tests.contracts.mechanism import Case, MechanismContract, matrix, worst_excess
from tests.contracts.spaces import words_of

WORDS = words_of(40)


def embedding(words: Sequence[str], seed: int) -> Vectors:
    vectors = np.random.default_rng(seed).standard_normal((len(words), 4)).astype(np.float32)
    return Vectors(list(words), vectors, f"E{seed}")


def united(*parts: slice, lists: int = 1) -> Space:
    """Return a space of embeddings that have different parts of the words."""
    return cv.build_space([embedding(WORDS[part], n) for n, part in enumerate(parts)], lists=lists, union=True)


SPACES = {
    "overlapping": united(slice(0, 25), slice(12, 40)),
    "one within the other": united(slice(0, 40), slice(5, 14), lists=2),
    "three, two of one length": united(slice(0, 20), slice(10, 30), slice(5, 40)),
}


def steps(space: Space, *, ring: bool) -> list[npt.NDArray[np.int64]]:
    """Return the steps between the places of any two words, list by list. Plain, from the arrays that are saved."""
    assert space.places is not None
    found = []
    for place, order in zip(space.places.astype(np.int64), space.lists, strict=True):
        n = int((order >= 0).sum())
        apart = np.abs(place[:, None] - place[None, :])
        found.append(np.minimum(apart, n - apart) if ring else apart)
    return found


class Mapped(MechanismContract):
    """The contract on spaces whose lists are over different words."""

    ring: ClassVar[bool]
    truncated: ClassVar[bool]

    @classmethod
    def cases(cls) -> list[Case]:
        return [cls.case(name) for name in SPACES]

    @classmethod
    def case(cls, name: str) -> Case:
        mechanism: Any = make(cls.name, SPACES[name])
        apart, lengths = steps(SPACES[name], ring=cls.ring), SPACES[name].lengths.tolist()

        def distances(epsilon: float) -> npt.NDArray[np.float64]:
            gammas = [mechanism.table(epsilon, n).gamma if cls.truncated else n for n in lengths]
            return np.max([np.minimum(one, gamma) for one, gamma in zip(apart, gammas, strict=True)], axis=0).astype(
                float
            )

        return Case(name, mechanism, distances)

    @classmethod
    def integers(cls, mechanism: Mechanism, word: int, epsilon: float) -> list[int]:
        """Return the weights of every list, each of which totals 2^64."""
        assert isinstance(mechanism, OnLists)
        found = []
        for place, n in zip(mechanism.space.positions[:, word], mechanism.space.lengths, strict=True):
            law = [int(weight) for weight in mechanism.position_weights(int(place), epsilon, int(n))]
            assert sum(law) == 1 << 64
            found += law
        return found


class TestRing(Mapped):
    name = "ring-geometric"
    ring = truncated = True


class TestGeometric(Mapped):
    name = "diffractor-geometric"
    ring = truncated = False


class TestExponential(Mapped):
    name = "diffractor-exponential"
    ring = False
    truncated = True


@pytest.mark.parametrize("name", ["ring-geometric", "diffractor-geometric", "diffractor-exponential"])
def test_choosing_among_the_lists_that_hold_a_word_breaks_the_promise(name: str) -> None:
    """With lists of all words and of some of them, the published choice realizes many times epsilon; ours does not."""
    space = SPACES["one within the other"]
    mechanism: Any = make(name, space)
    ring = name == "ring-geometric"
    apart = np.max(steps(space, ring=ring), axis=0).astype(float)
    ours, _ = worst_excess(matrix(mechanism, 1.0), apart, 1.0)
    assert ours <= 1e-6
    published = np.zeros((len(space), len(space)))
    holds = np.array([np.isin(np.arange(len(space)), order) for order in space.lists])
    for order, places, n, there in zip(space.lists, space.positions, space.lengths.tolist(), holds, strict=True):
        for word in np.flatnonzero(there):
            law = mechanism.position_weights(int(places[word]), 1.0, n).astype(float) / 2.0**64
            published[word, order[:n]] += law / holds[:, word].sum()
    assert published.sum(axis=1) == pytest.approx(1)
    realised = np.abs(np.log(published[:, None, :] / published[None, :, :])).max(axis=2) / np.maximum(apart, 1)
    assert realised[apart > 0].max() > 1.5


def test_the_mean_of_distances_is_no_metric_for_it() -> None:
    """Epsilon times the *mean* of the lists' distances is exceeded; only the largest holds."""
    space = SPACES["three, two of one length"]
    mechanism = make("ring-geometric", space)
    apart = np.mean(steps(space, ring=True), axis=0)
    excess, _ = worst_excess(matrix(mechanism, 1.0), apart, 1.0)
    assert excess > 0.5


class TestTheMaps:
    def test_a_word_stands_with_its_nearest_shared_word(self) -> None:
        """Plainly: in the first other embedding that has the word, among the words that both have."""
        space = SPACES["overlapping"]
        assert space.places is not None
        first, second = embedding(WORDS[:25], 0), embedding(WORDS[12:], 1)
        assert list(space.vocabulary.words) == WORDS
        for word in WORDS[25:]:  # not in the first
            at = second.vectors[second.words.index(word)]
            near = min(WORDS[12:25], key=lambda one: float(((second.vectors[second.words.index(one)] - at) ** 2).sum()))
            assert space.places[0, space.id(word)] == space.places[0, space.id(near)]
        for word in WORDS[:12]:
            at = first.vectors[first.words.index(word)]
            near = min(WORDS[12:25], key=lambda one: float(((first.vectors[first.words.index(one)] - at) ** 2).sum()))
            assert space.places[1, space.id(word)] == space.places[1, space.id(near)]

    def test_saved_and_opened(self, tmp_path: Path) -> None:
        """The format survives saving, has its own version, and damage is noticed."""
        space = SPACES["overlapping"].save(str(tmp_path / "space"))
        opened = cv.load_space(str(tmp_path / "space"))
        assert opened == space
        assert opened.places is not None
        assert (opened.places == space.places).all()
        assert opened.info["version"] == spaces.PARTIAL_VERSION != spaces.VERSION
        broken = np.load(tmp_path / "space" / "places.npy").copy()
        broken[0, 30] = (broken[0, 30] + 1) % 25
        np.save(tmp_path / "space" / "places.npy", broken)
        with refused("damaged-artefact", "damaged"):
            cv.load_space(str(tmp_path / "space"))

    @pytest.mark.parametrize(("at", "value"), [((0, 0), 24), ((0, 3), 25), ((1, 2), -1)])
    def test_wrong_places_are_refused(self, at: tuple[int, int], value: int) -> None:
        good = SPACES["overlapping"]
        assert good.places is not None
        places = good.places.copy()
        places[at] = value
        with pytest.raises(ArtefactError):
            Space(good.vocabulary, good.vectors, good.lists, good.digest, None, good.info, places)

    def test_the_same_words_need_no_maps(self) -> None:
        """Where all embeddings have the same words the space is the ordinary one, to the digest."""
        both = [embedding(WORDS, 0), embedding(WORDS, 1)]
        assert cv.build_space(both, union=True).digest == cv.build_space(both).digest

    def test_embeddings_without_a_shared_word_are_refused(self) -> None:
        with pytest.raises(MismatchError):
            united(slice(0, 10), slice(10, 20))

    def test_mechanisms_on_vectors_refuse_it(self) -> None:
        """Words without a vector are no input for a mechanism that measures on vectors."""
        with pytest.raises(DataError):
            make("cmp", SPACES["overlapping"])
