"""A space is frozen, saved once, loaded as it was or not at all, and shared between processes."""

from __future__ import annotations

import pickle
import shutil
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpusveil.errors import AddressError, ArtifactError, ChangedError, MissingError
from corpusveil.spaces import Space, load_space
from corpusveil.spaces import space as space_module
from corpusveil.spaces.build import build_space
from corpusveil.spaces.list_orders import greedy_orders
from corpusveil.spaces.vectors import Vectors, median_distance
from tests.calls import refused

SIZE = 60


def embedding(seed: int = 0, words: list[str] | None = None, source: str = "toy.txt") -> Vectors:
    words = [f"w{i}" for i in range(SIZE)] if words is None else words
    matrix = np.random.default_rng(seed).normal(size=(len(words), 6)).astype(np.float32) + 3
    return Vectors(words, matrix, source)


@pytest.fixture
def space() -> Space:
    return build_space(embedding(), lists=2, counts=np.arange(SIZE))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPUSVEIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(space_module.SAVED, "opened", {})


def check_same(one: Space, other: Space) -> None:
    assert one == other
    assert one.digest == other.digest
    assert list(one.vocabulary.words) == list(other.vocabulary.words)
    np.testing.assert_array_equal(one.vectors, other.vectors)
    np.testing.assert_array_equal(one.lists, other.lists)
    np.testing.assert_array_equal(one.counts, other.counts)


def test_the_digest_is_of_the_content_alone(space: Space) -> None:
    """The same from another file, another for every part that is changed, and fixed for all time."""
    vectors, counts = embedding(source="elsewhere.txt"), np.arange(SIZE)
    assert build_space(vectors, lists=2, counts=counts).digest == space.digest
    nudged = embedding().vectors.copy()
    nudged[3, 2] = np.nextafter(nudged[3, 2], np.float32(9))
    renamed = [*vectors.words[:-1], "other"]
    others = [
        build_space(vectors, lists=2, counts=counts + 1),
        build_space(vectors, lists=2),
        build_space(vectors, lists=1, counts=counts),
        build_space(Vectors(vectors.words, nudged), lists=2, counts=counts),
        build_space(Vectors(renamed, vectors.vectors), lists=2, counts=counts),
    ]
    assert len({space.digest, *(other.digest for other in others)}) == 6
    fixed = Vectors(["a", "b", "c"], np.array([[0], [5], [2]], np.float32))
    assert build_space(fixed).digest == "7b54e4295a22ff27b24d49378173635b7b217f399477b9fc95872fa3acd0dbcd"


def test_words_that_flow_together_have_other_digests() -> None:
    """The words "ab", "c" and the words "a", "bc" are the same bytes."""
    matrix = np.eye(2, dtype=np.float32)
    one, other = (build_space(Vectors(words, matrix), lists=0) for words in (["ab", "c"], ["a", "bc"]))
    assert one.digest != other.digest


@pytest.mark.parametrize(("where", "lists"), [("local", 3), ("remote", 0)])
def test_a_saved_space_is_loaded_as_it_was(tmp_path: Path, where: str, lists: int) -> None:
    url = str(tmp_path / "s") if where == "local" else f"memory://{uuid.uuid4().hex}/deep/s"
    built = build_space(embedding(), lists=lists)
    saved = built.save(url)
    loaded = load_space(url)
    check_same(built, loaded)
    assert loaded.info == built.info
    assert loaded.url == saved.url == url
    assert built.url is None
    assert isinstance(loaded.vectors, np.memmap)


def test_a_space_without_words_keeps_the_others_with_their_vectors_counts_and_order(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(40)]
    space = build_space(embedding(1, words, "a.txt"), lists=2, counts=np.arange(40))
    kept = load_space(str(space.without(["W7", "w30", "nowhere"]).save(tmp_path / "s").url))
    assert list(kept.vocabulary.words) == [word for word in words if word not in ("w7", "w30")]
    for word in kept.vocabulary.words:
        np.testing.assert_array_equal(kept.vectors[kept.id(word)], space.vectors[space.id(word)])
        assert kept.counts is not None
        assert kept.counts[kept.id(word)] == int(word[1:])
    with refused("unsuitable-data", "two words"):
        space.without(words[1:])
    with refused("wrong-setting", "list of words"):
        space.without("w7")
    for shorter, longer in zip(kept.lists, space.lists, strict=True):
        assert list(map(kept.word, shorter)) == [space.word(i) for i in longer if space.word(i) not in ("w7", "w30")]


def test_a_saved_space_is_never_overwritten(tmp_path: Path, space: Space) -> None:
    """A release that names it keeps its space."""
    url = str(tmp_path / "s")
    space.save(url)
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in Path(url).iterdir()}
    assert space.save(url) == space
    with pytest.raises(AddressError):
        build_space(embedding(1)).save(url)
    assert before == {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in Path(url).iterdir()}


def test_what_a_crash_left_is_no_space_and_is_replaced(tmp_path: Path, space: Space) -> None:
    url = str(tmp_path / "s")
    space.save(url)
    (tmp_path / "s" / "_artifact.json").unlink()
    (tmp_path / "s" / "vectors.npy").write_bytes(b"half")
    with pytest.raises(MissingError):
        load_space(url)
    space.save(url)
    check_same(space, load_space(url))


def _repeat_one(path: Path) -> None:
    lists = np.load(path)
    lists[0, 0] = lists[0, 1]
    np.save(path, lists)


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("vectors.npy", lambda path: np.save(path, np.load(path).astype(np.float64))),
        ("lists.npy", _repeat_one),
        ("lists.npy", lambda path: np.save(path, np.load(path)[:1])),
        ("_artifact.json", lambda path: path.write_text(path.read_text().replace('"digest": "', '"digest": "../'))),
    ],
)
def test_damage_is_noticed_and_the_folder_named(tmp_path: Path, space: Space, name: str, harm: object) -> None:
    """Of parts that can be read; parts that are missing, cut or changed are among the hostile calls."""
    space.save(str(tmp_path / "s"))
    harm(tmp_path / "s" / name)  # type: ignore[operator]
    with pytest.raises(ArtifactError) as error:
        load_space(str(tmp_path / "s"))
    assert f"{tmp_path}/s: this space is damaged" in str(error.value)
    assert name != "_artifact.json" or "has no digest" in str(error.value), "which names the folder of a copy"


def test_a_saved_space_is_pickled_as_its_address_and_opened_once(tmp_path: Path, space: Space) -> None:
    saved = space.save(str(tmp_path / "s"))
    data = pickle.dumps(saved)
    assert len(data) < 500
    one, other = pickle.loads(data), pickle.loads(data)
    assert one is other
    check_same(one, space)
    assert isinstance(one.vectors, np.memmap)


def test_a_worker_refuses_a_space_that_was_exchanged(tmp_path: Path, space: Space) -> None:
    saved = space.save(str(tmp_path / "s"))
    data = pickle.dumps(saved)
    shutil.rmtree(tmp_path / "s")
    build_space(embedding(1)).save(str(tmp_path / "s"))
    with pytest.raises(ChangedError):
        pickle.loads(data)


def test_several_embeddings_make_lists_over_their_common_words() -> None:
    """Every list holds the same words, else the mixture of lists has no guarantee (mechanisms.md §4)."""
    first = embedding(1, [f"w{i}" for i in range(40)], "a.txt")
    second = embedding(2, [f"w{i}" for i in range(59, 9, -1)], "b.txt")
    counts = np.arange(40)
    space = build_space([first, second], lists=2, counts=counts)
    assert list(space.vocabulary.words) == [f"w{i}" for i in range(10, 40)]
    np.testing.assert_array_equal(space.vectors, first.vectors[10:])
    np.testing.assert_array_equal(space.counts, counts[10:])
    assert len(set(space.lists[:2, 0].tolist())) == 2
    assert [made["start"] for made in space.info["made"]["lists"]] == [space.word(i) for i in space.lists[:, 0]]
    of_second = second.vectors[::-1][:30]
    for row, vectors in zip(space.lists, [first.vectors[10:]] * 2 + [of_second] * 2, strict=True):
        np.testing.assert_array_equal(row, greedy_orders(vectors, [int(row[0])])[0])
    assert [made["source"] for made in space.info["made"]["lists"]] == ["a.txt", "a.txt", "b.txt", "b.txt"]


def test_a_scale_is_the_median_distance_of_two_words_and_another_space() -> None:
    """Directions and lists stay; scaled again by the same number, nothing changes."""
    plain, scaled = (build_space(embedding(), scale=scale) for scale in (None, 4.85))
    assert median_distance(scaled.vectors) == pytest.approx(4.85, rel=1e-5)
    every = [np.linalg.norm(one - other) for one in plain.vectors for other in plain.vectors if one is not other]
    assert median_distance(plain.vectors) == pytest.approx(np.median([gap for gap in every if gap]), rel=0.03)
    ratio = scaled.vectors / plain.vectors
    assert float(np.ptp(ratio)) < 1e-5 * float(ratio.max())
    np.testing.assert_array_equal(plain.lists, scaled.lists)
    assert plain.digest != scaled.digest
    assert "scale" not in plain.info["made"]


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"balance": 1}, ("wrong-setting", "balance")),
        ({"balance": -1, "counts": np.arange(SIZE)}, ("wrong-setting", "balance")),
        ({"balance": 1, "counts": np.full(SIZE, 7)}, ("unsuitable-data", "the same public count")),
        ({"grammar": 1.0}, ("wrong-setting", "grammar 1 has no effect")),
        ({"scale": 0.0}, ("wrong-setting", "scale 0")),
        ({"scale": float("nan")}, ("wrong-setting", "scale nan")),
        ({"order": "alphabetical"}, ("wrong-setting", "'alphabetical'")),
        ({"counts": np.ones(3, np.int64)}, ("wrong-setting", "60")),
        ({"counts": -np.ones(SIZE, np.int64)}, ("wrong-setting", "negative")),
    ],
)
def test_arguments_out_of_range_are_named(arguments: dict[str, object], refusal: Any) -> None:
    """Nothing is built of them."""
    with refused(*refusal):
        build_space(embedding(), **arguments)  # type: ignore[arg-type]
