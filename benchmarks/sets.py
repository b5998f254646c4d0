"""Texts with labels, and figures of their private versions, whatever was replaced: words or passages."""

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq

import corpusveil as cv
from benchmarks import inputs
from corpusveil.mechanisms import Mechanism
from corpusveil.spaces import Space
from corpusveil.storage import formats
from corpusveil.storage.rows import Columns
from corpusveil_evaluate.readers.content_words import content_weights
from corpusveil_evaluate.readers.ngrams.denoise import Denoiser, Search
from corpusveil_evaluate.readers.ngrams.modelling import load_model
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts
from corpusveil_evaluate.utility.text_classifiers import WORD_PATTERN, Predictor, Remembered
from corpusveil_evaluate.utility.training_modes import MODES

TASKS = {
    "sst2": ("SST-2", ("label",)),
    "ag_news": ("AG News", ("label",)),
    "blog_authors": ("blogs", ("author", "gender")),
    "imdb": ("film reviews", ()),
    "rte": ("RTE", ()),
    "film": ("200 sentences of gensim's package", ("label",)),
}
"""Titles and labels. RTE has pairs, and no label that a classifier of words can learn."""
SIZES = {"sst2": (2000, 872), "ag_news": (700, 700), "blog_authors": (1000, 450), "rte": (0, 277), "imdb": (0, 300)}
"""Rows to train on and to test on."""
BEGINNING = 60
"""The most words of a text; blogs are long."""


@dataclass(frozen=True, slots=True)
class Linear:
    """TF-IDF of words and a linear support vector machine: as good as logistic regression, and fast for 50 authors."""

    name: str = "tfidf, linear svm"
    seeded: bool = False

    def fit(self, train: LabelledTexts, seed: int) -> Predictor:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline
        from sklearn.svm import LinearSVC

        fitted = make_pipeline(
            TfidfVectorizer(sublinear_tf=True, token_pattern=WORD_PATTERN), LinearSVC(random_state=seed)
        ).fit(train.texts, train.labels)
        return lambda task: [str(label) for label in fitted.predict(task.texts)]


@dataclass(frozen=True, slots=True)
class Sample:
    """Texts, and for each label the task to learn it."""

    texts: list[str]
    labels: dict[str, LabelledTexts]


@functools.cache
def sampled(name: str) -> Sample:
    """Return some rows to train on and to test on, drawn by a fixed seed."""
    if name == "film":
        return films()
    shared, (train, test) = inputs.data(), SIZES[name]
    assert shared is not None
    rng = np.random.default_rng(0)

    def begun(texts: Sequence[str]) -> list[str]:
        return [" ".join(text.split()[:BEGINNING]) for text in texts]

    if name == "imdb":
        texts = held_out("imdb")
        return Sample(begun([texts[at] for at in np.sort(rng.permutation(len(texts))[:test])]), {})
    rows = pq.read_table(shared / "tasks" / f"{name}.parquet")
    parts = np.array(rows["split"].to_pylist())
    last = "test" if "test" in parts else "dev"
    some = [np.sort(rng.permutation(np.flatnonzero(parts == part))[:most]) for part, most in
            (("train", train), (last, test))]  # fmt: skip
    rows, split = rows.take(np.concatenate(some)), ["train"] * some[0].size + ["test"] * some[1].size
    texts, pairs = begun(rows["text"].to_pylist()), begun(rows["text2"].to_pylist()) if name == "rte" else []
    labels = {
        label: LabelledTexts(texts, [str(value) for value in rows[label].to_pylist()], None, name, split)
        for label in TASKS[name][1]
    }
    return Sample([*texts, *pairs], labels)


def films() -> Sample:
    """Return the labeled sentences that gensim's package ships, every second to train on."""
    from gensim.test.utils import datapath

    with open(datapath("pang_lee_polarity.cor"), encoding="utf-8", errors="replace") as file:
        labels, texts = zip(*(line.split(maxsplit=1) for line in file), strict=True)
    split = ["train", "test"] * (len(texts) // 2)
    return Sample(list(texts), {"label": LabelledTexts(list(texts), list(labels), None, "film", split)})


@functools.cache
def held_out(source: str) -> list[str]:
    """Return the texts of the last shard, which no model has read, whose address names a source."""
    url = inputs.shards()[-1]
    batches = formats.form_of(url).batches
    texts: list[str] = []
    with open(url, "rb") as file:
        for batch in batches(file, url, Columns("text", None, ("url",))):
            addresses = batch.kept[0].to_pylist()
            texts += [text for text, at in zip(batch.texts.to_pylist(), addresses, strict=True) if source in at]
    return texts


def readable(law: Mechanism, epsilon: float, policy: cv.TextPolicy, margin: float, drawn: list[str]) -> list[str]:
    denoiser = Denoiser(law, cv.Budget(epsilon), policy, load_model("en"), Search(margin=margin))
    return denoiser.readable(drawn)


def learned(sample: Sample, texts: list[str], originals: dict[str, Remembered]) -> dict[str, float]:
    """Return of each label and mode the share of the test texts that a classifier labels right."""
    out = {}
    for label, task in sample.labels.items():
        train, test = task.train_and_test(0)
        private, fitted = task.with_texts(texts), Remembered(Linear(), most=1)
        versions = {"original": (task, originals[label]), "private": (private, fitted)}
        for mode in MODES:
            (source, model), (target, _) = (versions[name] for name in mode.split("-"))
            asked = target.take(test)
            guesses = model.fit(source.take(train), 0)(asked)
            out[f"{label}, {mode}"] = float(np.mean([a == b for a, b in zip(guesses, asked.labels, strict=True)]))
    return out


@functools.lru_cache(maxsize=2)
def content_words(space: Space) -> frozenset[str]:
    return frozenset(itertools.compress(space.vocabulary.words, content_weights(space)))
