"""A reader of the whole text reads a release and public data alone, and what no mechanism wrote stays."""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.jobs.local import Local
from corpusveil.kernel.kernel import NO_TAGS
from corpusveil.kernel.prepared import prepare
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.documents import Documents
from corpusveil.text.markup import Texts
from corpusveil.text.policy import PRIVATIZE, RESAMPLE
from corpusveil.text.tokens import Tokenizer, string_buffers
from corpusveil_evaluate.readers.ngrams import denoise as denoise_module
from corpusveil_evaluate.readers.ngrams.denoise import _WRITTEN_FOR_SPANS, Denoiser, Search, _within, reader_of
from corpusveil_evaluate.readers.ngrams.denoised_texts import denoise, denoise_release
from corpusveil_evaluate.readers.ngrams.lattice_room import DOCUMENT
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from corpusveil_evaluate.statistics.changed_words import changed_share
from corpusveil_evaluate.statistics.perplexity import KneserNey
from evaluate.tests.readers.random_texts import WORDS, corpus
from tests.calls import privatize_corpus, refused
from tests.engines.corpora import data_files, read_shard, write_shard

VOCABULARY = WORDS[:40]
KEY = cv.Key(bytes(range(32)))


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return KneserNey.of_texts(corpus(500, 1, 40)).model


def space_of(words: list[str], seed: int = 0) -> Space:
    rng = np.random.default_rng(seed)
    vectors = Vectors(words, rng.normal(size=(len(words), 4)).astype(np.float32))
    return cv.build_space(vectors, counts=rng.integers(1, 1000, len(words)))


@pytest.fixture(scope="module")
def space() -> Space:
    return space_of(VOCABULARY)


def release_of(space: Space, folder: Path, texts: list[str], *, epsilon: float = 1.0, **more: Any) -> str:
    """Privatize texts into ``folder/release``; return it."""
    write_shard(folder / "in" / "a.jsonl", [{"text": text} for text in texts])
    budget = more.pop("budget", cv.Budget(epsilon))
    joined = more.pop("collocations", None)
    mechanism = more.pop("mechanism", None) or cv.mechanism("ring-geometric", space)
    made = cv.Release(mechanism, budget, cv.TextPolicy(**more), key=KEY, collocations=joined)
    privatize_corpus(made, [str(folder / "in")], str(folder / "release"), Local())
    return str(folder / "release")


def texts_of(folder: str) -> list[str]:
    return [row["text"] for path in data_files(Path(folder)) for row in read_shard(path)]


def denoiser(space: Space, model: LanguageModel, budget: cv.Budget | None = None, **options: Any) -> Denoiser:
    policy = options.pop("policy", cv.TextPolicy())
    mechanism = options.pop("mechanism", None) or cv.mechanism("ring-geometric", space)
    joined = options.pop("collocations", None)
    return Denoiser(mechanism, budget or cv.Budget(1.0), policy, model, Search(**options), joined)


def test_a_release_is_read_from_its_folder_and_from_its_texts(
    space: Space, model: LanguageModel, tmp_path: Path
) -> None:
    """The command and the function give the same texts; a missing text stays missing; passages are refused."""
    texts = [*corpus(20, 5, 40), "aa 12 a@b.example"]  # a mask is one token
    release = release_of(space, tmp_path, texts)
    assert denoise_release(release, str(tmp_path / "out.jsonl"), space=space, model=model) == len(texts)
    read = [json.loads(line)["text"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    drawn = texts_of(release)
    made = cv.Release(cv.mechanism("ring-geometric", space), cv.Budget(1.0), cv.TextPolicy(), key=KEY)
    assert read == denoise(drawn, made, model) != drawn
    assert denoise([None, *drawn], made, model) == [None, *read]
    with refused("wrong-setting", "passage"):
        denoise(drawn, cv.release(store="en", epsilon=10.0, key=KEY), model)
    with refused("wrong-setting", "model"):
        denoise(drawn, made)


def test_a_document_is_denoised_alone_however_it_comes(space: Space, model: LanguageModel) -> None:
    """Nulls, empty documents, one of a single word many times, and one beyond the buffers; batched, and one by one."""
    made = denoiser(space, model, cv.Budget(0.3))
    rng = np.random.default_rng(3)
    some = [" ".join(rng.choice(VOCABULARY, size)) + end for size, end in ((1, ""), (40, "."), (300, " 7"), (9, "!"))]
    long = ". ".join(" ".join(rng.choice(VOCABULARY, 7)) for _ in range(DOCUMENT // 7 + 50))
    texts = [some[0], None, "", "aa " * 200, *some, long, some[2], "zzz 7"]
    together = made.readable(texts)
    assert together == [None if text is None else made.readable([text])[0] for text in texts]
    assert together[1] is None
    assert together[6] != some[2]
    assert len(together[8].split()) == len(long.split())


# The margin


EACH_ALONE = "82a3890cd92fabb258916f4ed91cce6e"
"""Digest of the texts where the places of a document do not support each other."""
SUPPORTED = "c768e0298555d883f846d309b05eab35"
"""The same where they do."""


def test_without_a_margin_the_likeliest_word_is_written_and_with_an_endless_one_the_word_as_drawn(
    model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two, fewer words change the larger it is; without one, and where the places of a document do not
    support each other, the bytes stay."""
    small, budget = space_of(VOCABULARY), cv.Budget(0.5)
    release = cv.Release(cv.mechanism("ring-geometric", small), budget, cv.TextPolicy(), key=KEY)
    drawn = cv.privatize(corpus(150, 6, 40), release, cv.RowNumbers("golden"))
    now = "\n".join(denoiser(small, model, budget).readable(drawn))
    assert hashlib.sha256(now.encode()).hexdigest()[:32] == SUPPORTED
    monkeypatch.setattr(denoise_module, "MEMORY", 0.0)
    found = [
        denoiser(small, model, budget, margin=margin).readable(drawn) for margin in (0.0, 300.0, 1000.0, 3000.0, 1e9)
    ]
    assert hashlib.sha256("\n".join(found[0]).encode()).hexdigest()[:32] == EACH_ALONE
    assert found[-1] == drawn
    stay = [1 - changed_share(drawn, texts).share for texts in found]
    assert stay == sorted(stay)
    assert stay[0] < stay[2] - 0.05 < stay[-1]


# What stays as it is


def test_what_no_mechanism_wrote_stays_as_it_is(space: Space, model: LanguageModel) -> None:
    policy = cv.TextPolicy(unknown_words="mask", numbers="keep", stop_words="keep", layout="keep", case="restore")
    made = denoiser(space, model, policy=policy)
    text = "[unknown] 12,5  AB ac\n Ad (ae) zzz! [contact] the AF.\t\N{PILE OF POO}"
    found = made.readable([text, "", " \n"])
    assert found[1:] == ["", " \n"]
    words = [word for word in text.replace("(", " ").replace(")", " ").split() if word.lower().strip(".") in VOCABULARY]
    rest, told = text, found[0]
    for word in (word.strip(".") for word in words):
        before, _, rest = rest.partition(word)
        assert told.startswith(before)
        replaced = told[len(before) : len(before) + 2]
        assert replaced.lower() in VOCABULARY
        assert (replaced.isupper(), replaced.istitle()) == (word.isupper(), word.istitle())
        told = told[len(before) + 2 :]
    assert told == rest


# Budgets of documents


@pytest.mark.parametrize(
    ("budget", "policy"),
    [
        (cv.Budget(2.0), {}),
        (cv.Budget(20.0, "document", "word-share"), {"numbers": "keep", "unknown_words": "mask"}),
    ],
)
def test_the_epsilon_of_a_word_is_what_a_reader_computes(
    space: Space, model: LanguageModel, budget: cv.Budget, policy: dict[str, Any]
) -> None:
    """The kernel's own epsilons, from the private text, are those computed from what it wrote."""
    texts = [f"{text} 7 zzz the" for text in corpus(40, 8, 40)]
    text_policy = cv.TextPolicy(**policy)
    kernel = cv.Release(cv.mechanism("ring-geometric", space), budget, text_policy, key=KEY).kernel()
    prepared = prepare(space, text_policy, None)
    data, documents = string_buffers(pa.array(texts, pa.large_string()))
    chunk = kernel._parsed(prepared, Texts(data, documents), NO_TAGS, None)
    known, drawn = chunk.picked(PRIVATIZE), chunk.picked(RESAMPLE)
    spent = kernel._shares(chunk, known, drawn)
    order = np.argsort(np.concatenate([known.index, drawn.index]), kind="stable")
    of_known = (order < known.index.size).nonzero()[0]
    made = denoiser(space, model, budget, policy=text_policy)
    written = kernel.apply(Documents(pa.array(texts, pa.large_string()), list(range(len(texts)))))[0]
    found, replaced, _ = made.read(reader_of(made), *string_buffers(written))
    computed = made.epsilons(found, replaced)
    assert replaced.sum() == order.size
    np.testing.assert_array_equal(computed[of_known], spent)


# Several lists, other mechanisms, collocations


@pytest.mark.parametrize("tokenizer", ["gst", "mst"])
def test_units_of_collocations_are_found_again(model: LanguageModel, tmp_path: Path, tokenizer: Any) -> None:
    """By the public table, in the release's own text: nothing else has to be carried."""
    ngrams = ["aa ab", "ac ad", "ae af ag"]
    table = Collocations.from_table(
        pa.table({"ngram": ngrams, "n": pa.array([2, 2, 3], pa.int8()), "score": [5.0, 4.0, 3.0]})
    )
    space = space_of([*VOCABULARY[:15], "aa_ab", "ac_ad", "ae_af_ag"])
    policy = {"tokenizer": tokenizer, "numbers": "keep"}
    release = release_of(space, tmp_path, corpus(100, 6, 15), collocations=table, **policy)
    made = denoiser(space, model, policy=cv.TextPolicy(**policy), collocations=table)
    tokens, replaced, _ = made.read(reader_of(made), *string_buffers(pa.array(texts_of(release), pa.large_string())))
    assert (tokens.ids[replaced] >= 15).sum() > 20
    denoise_release(release, str(tmp_path / "out.jsonl"), space=space, model=model, collocations=table)
    assert "_" not in (tmp_path / "out.jsonl").read_text()
    with refused("wrong-setting", "collocations"):
        denoise_release(release, str(tmp_path / "other"), space=space, model=model)


def test_words_that_the_tokenizer_splits_are_read_in_parts(model: LanguageModel) -> None:
    """*ab-ac* comes out as a replacement, and is read as two words and a mark: both are guessed, the mark stays."""
    made = denoiser(space_of([*VOCABULARY[:10], "ab-ac", "x.y", "3d"]), model, policy=cv.TextPolicy(numbers="keep"))
    text = "aa ab-ac ad 3d x.y"
    tokens, replaced, _ = made.read(reader_of(made), *string_buffers(pa.array([text], pa.large_string())))
    assert [tokens.text(token) for token in np.flatnonzero(replaced)] == ["aa", "ab", "ac", "ad"]
    assert re.fullmatch(r"\S+ \w+-\w+ \S+ 3d x\.y", made.readable([text])[0])


# Wrong calls


def test_another_release_or_space_is_refused(space: Space, model: LanguageModel, tmp_path: Path) -> None:
    """Before a text is written; and a shard that was changed, before its texts."""
    release, out = release_of(space, tmp_path, corpus(20, 5, 40)), str(tmp_path / "out.jsonl")
    with refused("wrong-setting", "space"):
        denoise_release(release, out, space=space_of(VOCABULARY, 9), model=model)
    with refused("missing-file"):
        denoise_release(str(tmp_path / "in"), out, space=space, model=model)
    assert not Path(out).exists()
    shard = next(Path(release, "data").iterdir())
    shard.write_text(shard.read_text().replace("aa", "ab"))
    with refused("input-changed", shard.name):
        denoise_release(release, out, space=space, model=model)


def test_wrong_settings_are_refused(space: Space, model: LanguageModel) -> None:
    """And budgets whose share of a word a reader cannot compute."""
    for name, value in (
        ("breadth", 0), ("width", 1000), ("unknown_share", 1.0), ("margin", -1.0), ("margin", math.nan)
    ):  # fmt: skip
        with refused("wrong-setting", name):
            Search(**{name: value})
    budgets: list[tuple[Any, dict[str, Any]]] = [
        ("word-share", {}),
        ("word-share", {"numbers": "keep", "unknown_words": "drop"}),
        ("word-share", {"tokenizer": "gst"}),
        ("word-share", {"tokenizer": "mst"}),
    ]
    for allocation, policy in budgets:
        with refused("wrong-setting"):
            denoiser(space, model, cv.Budget(5.0, "document", allocation), policy=cv.TextPolicy(**policy))


def test_masks_of_spans_stay() -> None:
    tokens = Tokenizer.of_words(["wa", "wb"]).tokenize(["[name] wa name wb name_x"])
    marked = "".join(tokens.text(t) for t in np.flatnonzero(_within(_WRITTEN_FOR_SPANS, tokens)).tolist())
    assert marked == "[name]"
