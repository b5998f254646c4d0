"""Figures of a store, and the store that ships: what may be said of a piece, and that it tells of nobody."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.passages.build import PublicPieces
from corpusveil.passages.encoder import LENGTH
from corpusveil.passages.figures import CHOICES, NEAR_TWIN, RANKS, choices
from corpusveil.passages.law import Exchange
from corpusveil.passages.store import Store, load_store
from corpusveil.recognizers import registry
from corpusveil.search.inner_products import ProductSearch
from corpusveil.storage.artifacts import ARTIFACT
from tests.calls import refused
from tests.passages.stores import small_store

pytestmark = pytest.mark.xdist_group("spark")


class TestFigures:
    def test_are_those_of_left_out_pieces(self, space: cv.Space, reference: Path) -> None:
        """By definition, of the pieces that the store would have had next."""
        store = load_store(reference)
        like = store.info["figures"]["like"]
        assert like["pieces"] + like["near_duplicates"] >= 1200
        assert np.all(np.diff(store.similarity) <= 0)
        assert store.similarity.size == RANKS
        assert store.similarity[-1] > store.overall
        assert [neighbors for neighbors, *_ in choices(store, 10.0)] == [*CHOICES]
        for neighbors, near, picked, _ in choices(store, 10.0):
            assert near == Exchange.at(10.0, 500, neighbors).near
            assert 0 < picked <= near + 0.001


class TestTheStoreThatShips:
    def test_has_no_name_number_or_contact_and_says_nothing_twice(self) -> None:
        store = load_store("en")
        assert len(store) > 6000
        assert store.info["licence"].startswith("CC0")
        texts = store.texts.to_pylist()
        assert not [text for text in texts if any(map(str.isdigit, text))]
        tokens = store.tokenizer.tokenize(store.texts)
        for name in ("rules", "names"):
            assert not len(registry.named(name).make(store.space)(tokens)), name
        sums = store.encoder.encode(store.texts)
        _, products = ProductSearch(sums).several(sums, 2)
        assert (products[:, 1] * 100 <= NEAR_TWIN * LENGTH**2).all()
        assert store.info["figures"]["like"]["pieces"] > 500

    def test_is_of_the_texts_in_the_repository(self) -> None:
        lines = {
            " ".join(line.split())
            for path in (Path(__file__).parents[2] / "spaces/en/store").glob("*.txt")
            for line in path.read_text("utf-8").splitlines()
        }
        assert lines.issuperset(load_store("en").texts.to_pylist())


def test_a_store_tells_of_nobody() -> None:
    """Single family names, given names, small letters, other scripts, look-alikes: refused on suspicion."""
    en, spared = cv.load_space("en"), ("We met in May and went home.", "On Monday the river was cold.")
    pieces = PublicPieces(en, (4, 40), ("turnip",))
    for text in (
        "Everybody in the village knows that Thistlewood beats his wife at night.",
        "I saw Sarah crying behind the old church.",
        "sarah owes money to half of the people in our street.",
        "We think \u5f20\u4f1f is sick, but nobody says it.",
        "We think \u0418\u0432\u0430\u043d is sick, but nobody says it.",
        "The old turnip'll be eaten by a goat.",
        "The old t\u00farnip was eaten by a goat.",
        "The old stupidturnip was eaten by a goat.",
    ):
        assert pieces.fit_pieces(pa.array([text], pa.large_string()), Counter()) == [], text
    for text in spared:
        assert pieces.fit_pieces(pa.array([text], pa.large_string()), Counter()) == [text], text


def test_a_store_is_saved_once_and_never_over_another(tmp_path: Path) -> None:
    store = small_store()
    saved = store.save(tmp_path / "store")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*")}
    assert store.save(tmp_path / "store") == saved
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*")} == before
    with refused("unusable-address", tmp_path / "store", "another artifact"):
        Store.from_texts(store.texts[:39], store.space).save(tmp_path / "store")
    described = tmp_path / "store" / ARTIFACT
    fields = json.loads(described.read_text())
    del fields["digest"]
    described.write_text(json.dumps(fields))
    with refused("damaged-artifact", tmp_path / "store", "has no digest"):
        store.save(tmp_path / "store")
