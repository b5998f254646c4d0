"""Documents at released lengths: what is stated is never exceeded, nothing else in a release shows the length."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from scipy import stats

import corpusveil as cv
from corpusveil.budget.length import geometric_weights
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.jobs.local import Local
from corpusveil.kernel.lengths import filler_weights
from corpusveil.sampling.weights import TOTAL
from corpusveil.storage.documents import Documents
from corpusveil.transforms.release.corpus import privatize_corpus
from corpusveil.transforms.release.pages import parts_of
from corpusveil.transforms.release.promises import ORDER
from corpusveil.transforms.release.statement import document_figure
from tests.calls import refused
from tests.contracts.spaces import ring_distances, small_space, words_of
from tests.engines.corpora import TEST_KEY, WORDS, make_space, write_shard

Floats = npt.NDArray[np.float64]
FILLED = cv.TextPolicy(punctuation="drop", contacts="drop")
GRID, NOISE = cv.LengthGrid(8), cv.LengthNoise(0.4)
TINY = small_space(3, counts=[6, 3, 1])
SMALL = small_space(words=words_of(30), counts=[3000 // (k + 1) for k in range(30)])
ADDED = 1e-5
"""Of integer weights: 2^-19 a token."""


def release(space: cv.Space = SMALL, length: Any = GRID, budget: Any = None, policy: Any = FILLED) -> cv.Release:
    mechanism = cv.mechanism("ring-geometric", space)
    return cv.Release(mechanism, budget or cv.Budget(1.0), policy, key=cv.Key(TEST_KEY), length=length)


def lengths(texts: list[str], one: cv.Release) -> list[int]:
    """Return how many words texts are released with."""
    return [len(text.split()) for text in cv.privatize(texts, one, ids=[f"d{n}" for n in range(len(texts))])]


class TestEnumerated:
    """Every output of documents of up to three words over three words, at their exact probabilities."""

    EPSILON = 0.8
    MECHANISM = cv.mechanism("ring-geometric", TINY)

    def laws(self) -> tuple[Floats, Floats]:
        """Return the laws of words, float64 [3, 3], and of a filler, float64 [3]."""
        words = self.MECHANISM.distributions(np.arange(3), self.EPSILON)
        return words, filler_weights(TINY, FILLED).astype(np.float64) / TOTAL @ words

    def content(self, document: tuple[int, ...], size: int) -> Floats:
        """Return the law of the first ``size`` released words; float64 [3 ** size]."""
        words, filler = self.laws()
        out = np.ones(1)
        for place in range(size):
            out = np.outer(out, words[document[place]] if place < len(document) else filler).ravel()
        return out

    def documents(self, most: int = 3) -> Iterator[tuple[int, ...]]:
        for size in range(most + 1):
            yield from itertools.product(range(3), repeat=size)

    def stated(self, first: tuple[int, ...], second: tuple[int, ...], of_length: float) -> float:
        """Return the bound of the log-ratio: distances of words that both have, and a bound for each further one."""
        apart = ring_distances(TINY)
        beyond = self.MECHANISM.guarantee(self.EPSILON).plain_ldp
        assert beyond is not None
        further = abs(len(first) - len(second))
        both = sum(apart[a, b] for a, b in zip(first, second, strict=False))
        return float(self.EPSILON * both + further * (beyond + of_length))

    def test_of_two_documents_in_a_cell_no_output_exceeds_the_bound(self) -> None:
        """Nor is the bound loose by more than ln(1 / share of the most frequent word) for each word it adds."""
        share = float(filler_weights(TINY, FILLED).max()) / TOTAL
        laws = {one: np.log(self.content(one, 3)) for one in self.documents()}
        for first, second in itertools.permutations(laws, 2):
            worst, stated = float((laws[first] - laws[second]).max()), self.stated(first, second, 0.0)
            assert worst <= stated + ADDED
            further = abs(len(first) - len(second))
            both = max(worst, float((laws[second] - laws[first]).max()))
            if further and len({*first, *second}) == 1:  # words at no distance: all that is stated is of fillers
                assert both >= stated - further * math.log(1 / share) - ADDED
        turned = float((laws[0, 1, 2] - laws[1, 2, 0]).max())
        assert turned == pytest.approx(self.stated((0, 1, 2), (1, 2, 0), 0.0), abs=1e-4), "it is attained"
        assert float(abs(laws[0, 0] - laws[(0,)]).max()) > 0.3, "one filler that is not counted would be seen"

    def test_with_noise_no_output_of_any_length_exceeds_the_bound(self) -> None:
        """Lengths of 1 to 40, at which all places hold fillers of both: there only the length tells."""
        law, sizes = two_sided_law(NOISE.epsilon, 60), range(1, 41)
        chances = {own: [math.log(released_chance(law, own, size)) for size in sizes] for own in range(3)}
        contents = {one: [np.log(self.content(one, known)) for known in range(3)] for one in self.documents(2)}
        for first, second in itertools.permutations(contents, 2):
            stated = self.stated(first, second, NOISE.epsilon)
            for size in sizes:
                of_length = chances[len(first)][size - 1] - chances[len(second)][size - 1]
                of_words = contents[first][min(size, 2)] - contents[second][min(size, 2)]
                assert of_length + float(of_words.max()) <= stated + ADDED
        told = chances[2][29] - chances[1][29]
        assert told == pytest.approx(NOISE.epsilon, rel=1e-5), "the length would be seen, were it not counted"

    @pytest.mark.parametrize(("length", "delta"), [(GRID, 0.1), (GRID, 1e-3), (NOISE, 0.1)])
    def test_no_pair_of_documents_exceeds_the_epsilon_at_delta(self, length: Any, delta: float) -> None:
        """Any two documents of a cell; with noise, of any words, and one word more or less."""
        most = 2 if length is NOISE else 3
        figure = document_figure(self.MECHANISM, cv.Budget(self.EPSILON), most, delta, math.inf, length)
        law, sizes = two_sided_law(NOISE.epsilon, 60), range(1, 41) if length is NOISE else [most]
        chances = {
            (own, size): released_chance(law, own, size) if length is NOISE else 1.0
            for own, size in itertools.product(range(most + 1), sizes)
        }
        contents = {one: [self.content(one, known) for known in range(most + 1)] for one in self.documents(most)}
        for first, second in itertools.permutations(contents, 2):
            if length is NOISE and abs(len(first) - len(second)) > 1:
                continue
            needed = 0.0
            for size in sizes:
                p, q = (chances[len(one), size] * contents[one][min(size, most)] for one in (first, second))
                needed += float(np.maximum(p - math.exp(figure.epsilon + ADDED) * q, 0).sum())
            assert needed <= delta


def two_sided_law(epsilon: float, most: int) -> dict[int, float]:
    """Return the probabilities of the noise from -most to most, of the integer weights that are sampled."""
    weights, again = geometric_weights(epsilon)
    one = [weights[k % len(weights)] / TOTAL * (again / TOTAL) ** (k // len(weights)) for k in range(8 * most)]
    scale = 1 - again / TOTAL
    return {
        k: sum(one[j] * one[j + abs(k)] for j in range(len(one) - abs(k))) * scale**2 for k in range(-most, most + 1)
    }


def released_chance(law: dict[int, float], own: int, size: int) -> float:
    """Return the probability that a document of ``own`` words is released with ``size``; those below 1 are 1."""
    at = size - own
    return law[at] if size > 1 else sum(chance for k, chance in law.items() if k <= at)


class TestTheKernel:
    def test_draws_what_was_enumerated(self) -> None:
        """Two released words of documents of one: 9 outputs. A filler that is not replaced would be noticed."""
        count = 20_000
        one = release(TINY, cv.LengthGrid(2), cv.Budget(0.8))
        made = cv.privatize([TINY.word(2)] * count, one, ids=list(range(count)))
        cells = [TINY.id(a) * 3 + TINY.id(b) for a, b in (text.split() for text in made)]
        observed = np.bincount(cells, minlength=9)
        words = one.mechanism.distributions(np.arange(3), 0.8)
        public = filler_weights(TINY, FILLED).astype(np.float64) / TOTAL
        for filler, holds in ((public @ words, True), (public, False)):
            law = np.outer(words[2], filler).ravel()
            assert (stats.chisquare(observed, law / law.sum() * count).pvalue > 1e-9) == holds

    def test_fills_up_for_every_kind_of_mechanism(self) -> None:
        for name in ("cmp", "santext", "diffractor-exponential"):
            filled = dataclasses.replace(release(), mechanism=cv.mechanism(name, SMALL))
            assert lengths([" ".join(words_of(n)) for n in (0, 1, 8, 9, 30)], filled) == [8, 8, 8, 16, 32], name

    @pytest.mark.parametrize("tokenizer", ["gst", "mst"])
    def test_counts_a_collocation_as_one_word(self, tokenizer: Any) -> None:
        """Units are filled up and replaced, and a collocation is written as its words."""
        table = Collocations.of(pa.table({"ngram": ["new york"], "n": [2], "score": [9.0]}))
        space = small_space(words=["bank", "loan", "new_york"], counts=[3, 2, 1])
        policy = dataclasses.replace(FILLED, tokenizer=tokenizer)
        mechanism, budget = cv.mechanism("ring-geometric", space), cv.Budget(240.0, "document")
        one = cv.Release(mechanism, budget, policy, key=cv.Key(TEST_KEY), collocations=table, length=cv.LengthGrid(4))
        texts = ["new york, bank", "bank", "new york bank new york loan loan"]
        made = cv.privatize(texts, one, ids=["a", "b", "c"])
        assert all(text.startswith(own.replace(",", "")) for text, own in zip(made, texts, strict=True))
        units = [text.replace("new york", "new_york").split() for text in made]
        assert [len(some) for some in units] == [4, 4, 8]
        assert "where collocations were" in one.guarantee().disclosed[1]

    def test_gives_an_empty_text_words_and_a_missing_one_none(self) -> None:
        texts = pa.array(["", None, "?!", "aaaa"], pa.large_string())
        made, counts = release().kernel().privatize(Documents(texts, list("abcd")))
        assert [None if text is None else len(text.split()) for text in made.to_pylist()] == [8, None, 8, 8]
        assert counts.tokens_written == 24
        assert counts.privatized == 1

    def test_leaves_the_first_words_of_a_text_that_is_cut(self) -> None:
        """At an epsilon that changes nothing: a prefix of the text, then fillers."""
        words = words_of(30)[:20]
        one = release(length=cv.LengthNoise(0.2), budget=cv.Budget(60.0))
        made = [text.split() for text in cv.privatize([" ".join(words)] * 200, one, ids=list(range(200)))]
        assert all(text[:20] == words[: len(text)] for text in made)
        assert len({len(text) for text in made}) > 10

    def test_fillers_are_no_stop_words_where_these_are_dropped(self) -> None:
        space = small_space(words=["the", "of", "river", "lake"], counts=[900, 90, 9, 9])
        weights = filler_weights(space, cv.TextPolicy(stop_words="drop"))
        assert (weights[:2] < TOTAL >> 40).all()
        assert (weights[2:] > TOTAL // 3).all()


class TestWhatElseWouldShowIt:
    @pytest.mark.parametrize(
        "policy",
        [{"punctuation": "keep"}, {"contacts": "mask"}, {"other": "keep"}, {"stop_words": "keep"}, {"numbers": "mask"},
         {"unknown_words": "mask"}, {"layout": "keep"}, {"case": "restore"}],
    )  # fmt: skip
    def test_is_refused(self, policy: Any) -> None:
        """What fillers are not: a mark, a mask, a blank line or a capital behind which no text follows."""
        with refused("conflicting-settings"):
            release(policy=dataclasses.replace(FILLED, **policy))
        with refused("conflicting-settings"):  # shares by the text's own words
            release(budget=cv.Budget(5.0, "document", "word-share"))
        assert release().guarantee().disclosed == (GRID.disclosed, ORDER)

    def test_is_in_no_file_of_a_release(self, tmp_path: Path) -> None:
        """Two corpora whose documents lie in the same cells: what is published differs in digests of words alone."""
        space = make_space(tmp_path / "space")
        one = release(cv.load_space(str(space)) if isinstance(space, str) else space, cv.LengthGrid(10))
        found = []
        for name, sizes in (("a", [1, 10, 11, 20, 35, 0]), ("b", [10, 3, 20, 14, 31, 9])):
            rows = [{"id": n, "text": " ".join(WORDS[(size + k) % 90] for k in range(size)) + " ... ( @y http://z.org"}
                    for n, size in enumerate(sizes)]  # fmt: skip
            write_shard(tmp_path / name / "0.jsonl", rows)
            privatize_corpus(one, [str(tmp_path / name)], str(tmp_path / f"{name}-out"), Local())
            manifest = json.loads((tmp_path / f"{name}-out/manifest.json").read_text())
            texts = [json.loads(line)["text"] for line in next((tmp_path / f"{name}-out/data").iterdir()).open()]
            del manifest["shards"][0]["file_sha256"]
            digests = [manifest.pop("content_sha256"), manifest["shards"][0].pop("sha256")]
            manifest["shards"][0]["sha256"] = manifest["content_sha256"] = ""
            found.append((manifest, str([*parts_of(manifest)]), [len(text.split()) for text in texts]))
            assert len(set(digests)) == 2
        assert found[0] == found[1]
        assert "a multiple of 10" in found[0][1]
