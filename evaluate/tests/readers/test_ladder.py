"""The ladder of readers: its figures are those of enumeration, and no reader of the model's text is above its top."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import corpusveil as cv
from corpusveil.mechanisms import Mechanism
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from corpusveil_evaluate.readers.ladder import BY_MODEL, OF_FORM, PLACES, ROWS, STEPS, Ladder, reader_ladder
from corpusveil_evaluate.readers.model_text import WORDS, ids_in, model_text
from corpusveil_evaluate.readers.ngrams.fixed import ONE
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from corpusveil_evaluate.statistics.perplexity import KneserNey
from evaluate.tests.readers.random_texts import WORDS as SAID
from evaluate.tests.readers.random_texts import corpus, log_probabilities, zipf
from tests.calls import fails, refused, succeeds
from tests.contracts.spaces import small_space

KEPT = cv.TextPolicy(stop_words="keep")


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    """Return a model of 40 words, of which the two most frequent are stop words."""
    return KneserNey.of_texts([text.replace("aa", "the").replace("ab", "of") for text in corpus(800, 1, 40)]).model


@pytest.fixture(scope="module")
def space() -> Space:
    """Return a space that lacks some words of the model."""
    words = ["the", "of", *SAID[2:30]]
    return small_space(words=words, counts=zipf(len(words)))


def posteriors(mechanism: Mechanism, model: LanguageModel, count: int) -> npt.NDArray[np.float64]:
    """Return what a reader of all other words expects at places of the model's text, [count, V]: whole runs, scored.

    By the probability of the run with each word in the place, and nothing that the ladder computes.
    """
    text, ids = model_text(mechanism.space, model), ids_in(mechanism.space, model)
    known = np.flatnonzero(text.truth >= 0)
    out = np.zeros((count, len(mechanism.space)))
    for row, place in enumerate(known[np.arange(count) * known.size // count]):
        begin = place // WORDS * WORDS
        run = np.repeat(text.said[None, begin : begin + WORDS], len(model), axis=0)
        run[:, place - begin] = np.arange(len(model))
        logs = np.zeros(len(model))
        for t in range(WORDS):
            last = run[:, t - 1] if t >= 1 else np.full(len(model), model.unknown)
            before = run[:, t - 2] if t >= 2 else np.full(len(model), model.unknown)
            before = np.where(last == model.unknown, model.unknown, before)
            at_start = last == model.unknown
            padded = [np.where(some == model.unknown, -1, some).astype(np.int32) for some in (before, last)]
            said = model.score(*padded, run[:, t])  # type: ignore[call-arg]
            logs += np.where(at_start, model.arrays.start[run[:, t]], said) / ONE
        shares = np.exp(logs - logs.max()) * (ids[:-1] >= 0)
        out[row, ids[:-1][ids[:-1] >= 0]] = shares[ids[:-1] >= 0] / shares.sum()
    return out


def guessed(m: Any, law: Any, weights: Any, kept: Any) -> float:
    """Return the share that a reader guesses who expects m, float64 [N, V]; ``kept`` words are seen."""
    replaced = (m * weights * ~kept)[:, :, None] * law
    return float((replaced.max(axis=1).sum() + (m * weights * kept).sum()) / (m * weights).sum())


def rung(ladder: Ladder, begins: str) -> Any:
    return next(each for each in ladder.rungs if each.reader.startswith(begins))


def sharpened(m: npt.NDArray[np.float64], bits: float | None) -> npt.NDArray[np.float64]:
    """Return m^beta / Z at the beta where this many bits of entropy remain."""
    low, high = 1.0, 1.0 if bits is None else 50.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if bits is not None and entropy(power(m, middle)) > bits else (low, middle)
    return power(m, low)


def power(m: npt.NDArray[np.float64], beta: float) -> npt.NDArray[np.float64]:
    return np.asarray(m**beta / (m**beta).sum(axis=1, keepdims=True))


def entropy(m: npt.NDArray[np.float64]) -> float:
    return float(-(m * np.log2(np.maximum(m, 1e-300))).sum(axis=1).mean())


@pytest.mark.parametrize(
    ("name", "epsilon", "policy"), [("ring-geometric", 0.7, KEPT), ("santext", 5.0, cv.TextPolicy())]
)
def test_informed_readers_are_those_of_enumeration(
    space: Space, model: LanguageModel, name: str, epsilon: float, policy: cv.TextPolicy
) -> None:
    """Whole runs are scored with every word in the place; then every output is weighed, and the dial solved anew."""
    mechanism = cv.mechanism(name, space)
    ladder = reader_ladder(mechanism, epsilon, model, policy=policy)
    m = posteriors(mechanism, model, PLACES if name == "ring-geometric" else PLACES // 2)
    law, weights = mechanism.distributions(np.arange(len(space)), epsilon), cv.content_weights(space)
    kept = np.isin(space.vocabulary.words, ["the", "of"]) & (policy.stop_words == "keep")
    assert f"({entropy(m):.1f} bits of doubt)" in ladder.rungs[3].reader
    (top,) = (each for each in ladder.rungs if each.bound)
    assert top == ladder.rungs[3]
    ends = [
        f"at most {100 * (share + 2 * error):.1f} %"
        for share, error in zip((top.every, top.content), top.errors, strict=True)
    ]
    assert list(top.cells[1:3]) == ends, "a mean is not called a bound"
    for reader, left in (
        ("knows all other original words", None),
        ("knows all other words, and text so well that 2 bits", 2.0),
    ):
        figures = rung(ladder, reader)
        of = (figures.every, figures.content), figures.errors, (np.ones(len(space)), weights)
        for share, error, weight in zip(*of, strict=True):
            assert 0 < error < 0.02
            assert share == pytest.approx(guessed(sharpened(m, left), law, weight, kept), abs=4 * error)
            for wrong in (
                np.full_like(law, 1 / len(space)),
                mechanism.distributions(np.arange(len(space)), 2 * epsilon),
            ):
                assert abs(share - guessed(sharpened(m, left), wrong, weight, kept)) > 4 * error, "it would be noticed"


class TestTwoWords:
    def test_on_a_ring_they_are_told_apart_as_computed_by_hand(self) -> None:
        """The untruncated geometric, k steps apart: figures of mechanisms.md, and (1 + tanh(1/2)) / 2 for one step."""
        words = [f"w{number}" for number in range(400)]
        space = cv.build_space(Vectors(words, np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)))
        for epsilon, expected in ((1.0, (0.73, 0.82, 0.93, 0.99)), (0.25, (0.56, 0.61, 0.70, 0.82))):
            rungs = reader_ladder(cv.RingGeometric(space), epsilon).rungs[4 : 4 + len(STEPS)]
            assert [each.figure for each in rungs] == ["exact"] * 4
            for each, figure in zip(rungs, expected, strict=True):
                assert each.every == each.content == pytest.approx(figure, abs=0.006)
            assert rungs[0].every == pytest.approx((1 + np.tanh(epsilon / 2)) / 2, abs=0.003)

    def test_what_has_no_law_or_no_distance_says_so(self, space: Space, model: LanguageModel) -> None:
        sampled = reader_ladder(cv.mechanism("cmp", space), 5.0, model)
        assert {each.figure for each in sampled.rungs[3:-1]} == {"no exact law"}
        assert sampled.rungs[0].figure == "estimated"
        assert "no distance" in reader_ladder(cv.mechanism("vickrey-cmp-excluding", space), 5.0).rungs[4].figure


class TestItSays:
    def test_which_rungs_need_a_model(self, space: Space) -> None:
        ladder = reader_ladder(cv.RingGeometric(space), 1.0)
        unknown = [False, False, True, True, *[False] * 4, *[True] * 4, False]
        assert [each.every is None for each in ladder.rungs] == unknown
        assert ladder.rungs[2].reader == BY_MODEL
        assert "needs a public language model" in str(ladder)
        assert "e^(1 d)" in str(ladder)

    def test_what_cannot_be_computed(self, space: Space) -> None:
        with refused("wrong-setting", "cv.mechanism"):
            reader_ladder(space, 1.0)  # type: ignore[arg-type]
        with refused("wrong-setting", "epsilon"):
            reader_ladder(cv.RingGeometric(space), -1.0)


def test_what_many_rows_share_is_read_as_often_as_by_enumeration(space: Space) -> None:
    """The posterior of twenty draws, of the laws alone, by other draws; and never less than of one row."""
    for mechanism, epsilon in ((cv.RingGeometric(space), 0.3), (cv.mechanism("santext", space), 1.5)):
        ladder = reader_ladder(mechanism, epsilon)
        reads, alone = rung(ladder, OF_FORM), rung(ladder, "guesses word by word")
        law = mechanism.distributions(np.arange(len(space)), epsilon)
        shares, rng, right = np.asarray(space.counts) / np.sum(space.counts), np.random.default_rng(0), 0
        for word in (words := rng.choice(len(space), 1500, p=shares)):
            seen = rng.choice(len(space), ROWS, p=law[word] / law[word].sum())
            right += int((np.log(law[:, seen]).sum(axis=1) + np.log(shares)).argmax() == word)
        assert reads.every == pytest.approx(right / words.size, abs=4 * (reads.errors[0] + 0.013))
        assert reads.every > alone.every + 4 * reads.errors[0]


def test_no_reader_of_the_release_beats_the_upper_side(space: Space, model: LanguageModel) -> None:
    """Not even the one who sums over all originals of all released words of a run, where the search sums few.

    A bound that forgets the context, put in the place of the upper side, is caught as too low.
    """
    mechanism, epsilon = cv.RingGeometric(space), 0.7
    text, ids = model_text(mechanism.space, model), ids_in(space, model)
    runs = text.truth.reshape(-1, WORDS)
    runs, said = runs[(runs >= 0).all(axis=1)], text.said.reshape(-1, WORDS)[(runs >= 0).all(axis=1)]
    assert len(runs) > 300
    words = np.flatnonzero(ids[:-1] >= 0).astype(np.int32)
    law = mechanism.distributions(ids[words], epsilon)[:, ids[words]]
    rng = np.random.default_rng(0)
    at = np.searchsorted(words, said)
    released = np.array([[rng.choice(words.size, p=law[w] / law[w].sum()) for w in run] for run in at])
    size = words.size
    u, v = (
        words[axis.ravel()].astype(np.int32) for axis in np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    )
    third = np.exp(log_probabilities(model, np.stack([u, v], axis=1), words)).reshape(size, size, size)
    second = np.exp(log_probabilities(model, np.stack([np.full(size, -1), words], axis=1), words))
    first = np.exp(model.arrays.start[words] / ONE)
    right = 0
    for run, out in zip(at, released, strict=True):  # forward and backward over states of two words
        forward = [first[:, None] * law[:, out[0], None] * second * law[:, out[1]]]
        for t in range(2, WORDS):
            forward.append(np.einsum("uv,uvw->vw", forward[-1], third) * law[:, out[t]])
            forward[-1] /= forward[-1].sum()
        after = np.ones((size, size))
        for t in range(WORDS - 1, 0, -1):
            states = forward[t - 1] * after
            right += int(states.sum(axis=0).argmax() == run[t]) + (
                int(states.sum(axis=1).argmax() == run[0]) if t == 1 else 0
            )
            after = np.einsum("uvw,w,vw->uv", third, law[:, out[t]], after)
            after /= after.max()
    share, error = right / at.size, 0.5 / at.size**0.5
    ladder = reader_ladder(mechanism, epsilon, model, dial=False)
    others = rung(ladder, "knows all other")
    assert share > rung(ladder, "guesses word by word").every + 4 * error
    assert share <= others.every + 3 * (error + others.errors[0])


def test_the_command_prints_the_table_and_the_audit_does_not(space: Space, tmp_path: Path) -> None:
    """And writes it; what it cannot use is named."""
    space.save(str(tmp_path / "space"))
    words = ["--space", tmp_path / "space", "--epsilon", "1"]
    table = str(reader_ladder(cv.RingGeometric(space, gamma=4), 1.0))
    assert (
        table in succeeds("evaluate", "readers", *words, "--parameter", "gamma=4", "--output", tmp_path / "found").out
    )
    assert len(json.loads((tmp_path / "found").read_text())["rungs"]) == 13
    assert "the reader" not in succeeds("evaluate", "audit", *words, "--mechanism", "ring-geometric").out
    for code, named, more in (
        ("wrong-setting", "gama", ["--parameter", "gama=4"]),
        ("wrong-setting", "stop_words", ["--stop-words", "hide"]),
        ("missing-file", "none", ["--model", tmp_path / "none"]),
    ):
        fails(["evaluate", "readers", *words, *more], code, named)


@pytest.mark.slow
def test_the_figures_of_the_page_are_those_of_its_command() -> None:
    """Those of ``en`` that cost seconds: without a model, at the epsilons that docs/guarantees.md names."""
    page = " ".join(Path("docs/guarantees.md").read_text(encoding="utf-8").split())
    first, chosen = (reader_ladder(cv.RingGeometric(cv.load_space("en")), epsilon) for epsilon in (1.0, 0.1363))
    for name, of in (("takes the released word", first), ("guesses word by word", first)):
        assert " | ".join(rung(of, name).cells[1:3]) in page, name
    two = [100 * rung(first, f"is left with two words, {steps} apart").every for steps in (1, 2, 4, 8)]
    assert f"{', '.join(f'{share:.0f}' for share in two)} %" in page
    rows = rung(chosen, "sees a word drawn in 20 rows")
    assert f"{rows.every:.2f} ± {rows.errors[0]:.2f} from 20".replace("0.", ".") in page
