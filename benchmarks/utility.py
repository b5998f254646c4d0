"""Every mechanism at equal content risk: as published, ours in presets, denoised; utility, and what attackers learn.

    python -m benchmarks utility [--quick | --full] [--risk .5 ...] [--task sst2 ...] [--mechanism cmp ...] [--kept]

Epsilon is what ``--risk-of content-context`` chooses, for all mechanisms alike; then the texts are released under
several keys, denoised, and measured. Epsilons and cells are kept in the work folder, so that a run resumes where the
last one stopped. ``--quick``, the default: the 12,000 most frequent words and some rows of each set; ``--full``: all
words and more rows.
"""

import argparse
import functools
import hashlib
import itertools
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import stats

import corpusveil as cv
from benchmarks import contextual, inputs
from benchmarks.report import Skipped, Table
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.errors import UserError
from corpusveil.jobs.local import Local
from corpusveil.language.denoise import MARGIN, Denoiser, Search
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.content import content_weights
from corpusveil.spaces import Space, Vocabulary
from corpusveil.spaces.public_counts import read_counts
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage import formats
from corpusveil.storage.artifacts import is_artifact
from corpusveil.storage.rows import Columns
from corpusveil_evaluate.statistics.encoders import AveragedVectors
from corpusveil_evaluate.statistics.perplexity import KneserNey
from corpusveil_evaluate.statistics.similarity import cosine
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts
from corpusveil_evaluate.utility.text_classifiers import WORD_PATTERN, Predictor, Remembered
from corpusveil_evaluate.utility.training_modes import MODES, baselines, train_and_test

KEYS = 5
RISKS = (0.5, 0.3, 0.7)


@dataclass(frozen=True, slots=True)
class Way:
    """How a space is made, and how stop words are treated."""

    balance: float = contextual.BALANCE
    order: str = "improved"
    stop_words: Any = "privatize"

    def space(self, words: int) -> Space:
        return contextual.space(self.balance, self.order, words)

    @property
    def policy(self) -> cv.TextPolicy:
        return cv.TextPolicy(stop_words=self.stop_words)


WAYS = {
    "plain": Way(0.0, "greedy"),
    "balanced": Way(),
    "kept": Way(stop_words="keep"),
}
"""Published mechanisms are measured on the plain space, ours on all others."""
OURS = "ring-geometric"
PUBLISHED = (
    "santext",
    "vickrey-cmp",
    "cmp",
    "diffractor-geometric",
    "custext",
    "custext-per-word",
    "tem",
    "syntf",
    "mahalanobis",
    "vickrey-mahalanobis",
    "diffractor-exponential",
    "truncated-gumbel",
)
TASKS = {
    "sst2": ("SST-2", ("label",)),
    "ag_news": ("AG News", ("label",)),
    "blog_authors": ("blogs", ("author", "gender")),
    "blog_gender": ("other authors' blogs", ("label",)),
    "rte": ("RTE", ()),
    "imdb": ("film reviews", ()),
    "film": ("200 sentences of gensim's package", ("label",)),
}
"""Titles and labels. RTE has pairs, and no label that a classifier of words can learn; the film reviews are those of
the shard that no model has read."""
SIZES = {
    "quick": {
        "sst2": (2000, 872),
        "ag_news": (700, 700),
        "blog_authors": (1000, 450),
        "blog_gender": (1500, 852),
        "rte": (0, 277),
        "imdb": (0, 300),
    },
    "smallest": {"film": (0, 200)},
    "full": {
        "sst2": (6000, 872),
        "ag_news": (4000, 2000),
        "blog_authors": (2100, 450),
        "blog_gender": (4105, 852),
        "rte": (2490, 277),
        "imdb": (0, 1500),
    },
}
"""Rows to train on and to test on."""
BEGINNING = {"quick": 60, "full": 0, "smallest": 60}
"""The most words of a text, 0 for all; blogs are long."""
WORDS = {"quick": 12_000, "full": 0, "smallest": 0}
"""The most frequent words, which are the space; 0: all."""
WEIGHT = 1e-3
"""Of a word of public share p in *weighted* similarity: ``WEIGHT / (WEIGHT + p)`` (Arora, Liang, Ma 2017)."""
SIMILAR_BY = "GloVe vectors, 25 dimensions"
ERRORS = 2.0
Values = dict[str, list[float]]


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
    """Texts, and for each label the task to learn it; the last ``pairs`` texts are the second of pairs."""

    texts: list[str]
    labels: dict[str, LabelledTexts]
    pairs: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """A mechanism in a way at a risk, on a task: figures by key, of texts as drawn and denoised."""

    task: str
    mechanism: str
    way: str
    risk: float
    epsilon: float
    nats: float | None
    measured: float
    drawn: Values
    denoised: Values


def run(arguments: Sequence[str] = ()) -> list[Table]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks utility")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true")
    sizes.add_argument("--full", action="store_true")
    parser.add_argument("--risk", type=float, nargs="+", default=RISKS)
    parser.add_argument("--task", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--mechanism", nargs="+", choices=(OURS, *PUBLISHED), default=(OURS, *PUBLISHED))
    parser.add_argument("--way", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--kept", action="store_true", help="show what was measured before, and measure nothing")
    asked = parser.parse_args(list(arguments))
    size = "smallest" if inputs.SMALLEST else "full" if asked.full else "quick"
    if size == "smallest":
        asked.task, asked.mechanism, asked.way, asked.risk, asked.keys = ["film"], [OURS], ["balanced"], [0.7], 2
    elif (shared := inputs.data()) is None or not (shared / "tasks").is_dir():
        raise Skipped("the shared data and its task sets are not on this machine.")
    began, cells = time.perf_counter(), []
    for risk, name, way in itertools.product(asked.risk, asked.mechanism, asked.way):
        if (way == "plain") == (name != OURS):
            cells += [cell for task in asked.task if (cell := measured(size, task, name, way, risk, asked))]
    tables = [table(size, task, risk, cells) for risk in asked.risk for task in asked.task]
    tables[-1].notes.append(f"This run took {(time.perf_counter() - began) / 60:.0f} minutes, without what was kept.")
    return tables


@functools.lru_cache(maxsize=2)
def mechanism(name: str, way: str, size: str) -> Mechanism:
    return cv.mechanism(name, WAYS[way].space(WORDS[size]))


def epsilon_of(size: str, name: str, way: str, risk: float) -> dict[str, Any]:
    """Return what ``--risk`` chooses, or why it chooses nothing."""
    path = inputs.work() / "utility-epsilons" / f"{size}-{name}-{way}-{risk:g}.json"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        try:
            chosen = cv.epsilon_for_risk(
                mechanism(name, way, size), risk, of="content-context", model=contextual.model(),
                policy=WAYS[way].policy,
            )  # fmt: skip
            fields: dict[str, Any] = {"epsilon": chosen.epsilon, "nats": chosen.plain_ldp, "measured": chosen.measured}
        except UserError as reason:
            fields = {"refused": str(reason)}
        path.write_bytes(orjson.dumps(fields))
        print(f"  {path.stem}: {fields}", flush=True)
    return dict(json.loads(path.read_bytes()))


def measured(size: str, task: str, name: str, way: str, risk: float, asked: argparse.Namespace) -> Cell | None:
    """Return a cell; None without an epsilon of this risk, or where only what was kept is asked for."""
    path = inputs.work() / "utility-cells" / f"{size}-{task}-{name}-{way}-{risk:g}.json"
    if not path.exists():
        if asked.kept or "refused" in (chosen := epsilon_of(size, name, way, risk)):
            return None
        path.parent.mkdir(exist_ok=True)
        law, sample = mechanism(name, way, size), sampled(task, size)
        drawn, denoised = values_of(sample, task, law, WAYS[way].policy, chosen["epsilon"], asked.keys)
        path.write_bytes(orjson.dumps(Cell(task, name, way, risk, **chosen, drawn=drawn, denoised=denoised)))
        print(f"  {path.stem}", flush=True)
    return Cell(**json.loads(path.read_bytes()))


@functools.cache
def sampled(name: str, size: str) -> Sample:
    """Return some rows to train on and to test on, drawn by a fixed seed."""
    if name == "film":
        return films()
    shared, (train, test) = inputs.data(), SIZES[size][name]
    assert shared is not None
    rng = np.random.default_rng(0)

    def begun(texts: Sequence[str]) -> list[str]:
        return [" ".join(text.split()[: BEGINNING[size] or None]) for text in texts]

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
    return Sample([*texts, *pairs], labels, len(pairs))


def films() -> Sample:
    """Return the labelled sentences that gensim's package ships, every second to train on."""
    from gensim.test.utils import datapath

    with open(datapath("pang_lee_polarity.cor"), encoding="utf-8", errors="replace") as file:
        labels, texts = zip(*(line.split(maxsplit=1) for line in file), strict=True)
    split = ["train", "test"] * (len(texts) // 2)
    return Sample(list(texts), {"label": LabelledTexts(list(texts), list(labels), None, "film", split)})


@functools.cache
def held_out(source: str) -> list[str]:
    """Return the texts of the last shard, which no model has read, whose address names a source."""
    url = inputs.shards()[-1]
    batches = formats.find(formats.form_of(url)).batches
    texts: list[str] = []
    with open(url, "rb") as file:
        for batch in batches(file, url, Columns("text", None, ("url",))):
            addresses = batch.kept[0].to_pylist()
            texts += [text for text, at in zip(batch.texts.to_pylist(), addresses, strict=True) if source in at]
    return texts


def values_of(
    sample: Sample, task: str, law: Mechanism, policy: cv.TextPolicy, epsilon: float, keys: int
) -> tuple[Values, Values]:
    """Release texts under each key, denoise them, and measure both."""
    both: tuple[Values, Values] = ({}, {})
    budget = cv.Budget(epsilon)
    denoiser = Denoiser(law, budget, policy, contextual.model(), Search(margin=MARGIN))
    originals = {label: Remembered(Linear(), most=1) for label in sample.labels}
    for key in range(keys):
        secret = cv.Key(hashlib.sha256(f"benchmark {key}".encode()).digest())
        release = cv.Release(law, budget, policy, secret, accept_no_guarantee=True)
        texts = cv.privatize(sample.texts, release, cv.RowNumbers(task))
        readable, _ = denoiser.privatize(pa.array(texts), [], "text")
        for values, some in zip(both, (texts, readable.to_pylist()), strict=True):
            for name, value in figures(sample, some, law.space, originals).items():
                values.setdefault(name, []).append(value)
    return both


def figures(sample: Sample, texts: list[str], space: Space, originals: dict[str, Remembered]) -> dict[str, float]:
    """Return the figures of private texts."""
    out = {
        "content": contextual.share(*contextual.right_words(sample.texts, texts, content_words(space)))[0],
        "similarity": float(np.mean(cosine(sample.texts, texts, independent(False)))),
        "weighted": float(np.mean(cosine(sample.texts, texts, independent(True)))),
        "perplexity": reader().perplexity(texts).value,
    }
    if sample.pairs:
        pairs = [alike(some, sample.pairs) for some in (sample.texts, texts)]
        out["STS"] = float(stats.spearmanr(*pairs).statistic)
    for label, task in sample.labels.items():
        train, test = task.train_and_test(0)
        private, fitted = task.with_texts(texts), Remembered(Linear(), most=1)
        versions = {"original": (task, originals[label]), "private": (private, fitted)}
        for mode in MODES:
            (source, model), (target, _) = (versions[name] for name in mode.split("-"))
            out[f"{label}, {mode}"] = train_and_test(source.take(train), target.take(test), model).accuracy
    return out


def alike(texts: list[str], pairs: int) -> Any:
    """Return the similarity of the two texts of each pair; float64."""
    return cosine(texts[:-pairs], texts[-pairs:], independent(True))


@functools.lru_cache(maxsize=2)
def content_words(space: Space) -> frozenset[str]:
    return frozenset(itertools.compress(space.vocabulary.words, content_weights(space)))


@functools.cache
def independent(weighted: bool) -> AveragedVectors:
    """Return averaged vectors from which no space here is made; ``weighted`` against frequency."""
    shared = inputs.data()
    vectors = cv.read_vectors(
        str(shared / "embeddings" / "glove-twitter-25d-12k.txt.gz") if shared else inputs.vectors()
    )
    values, words = vectors.vectors, Vocabulary.from_words(vectors.words)
    if weighted:
        counts = read_counts(contextual.counted(), words).astype(np.float64)
        share = counts / counts.sum()
        values = ((values - share @ values) * (WEIGHT / (WEIGHT + share))[:, None]).astype(np.float32)
    space = cv.build_space(Vectors(list(vectors.words), values, "glove", None))
    return AveragedVectors(space, centered=not weighted, of=SIMILAR_BY)


@functools.cache
def reader() -> KneserNey:
    """Return a language model of other text than the denoiser's."""
    folder = str(inputs.work() / "utility-reader")
    if not is_artifact(folder):
        count_corpus(inputs.shards()[-1:], folder, Local(), CountOptions(3, 2))
    return KneserNey.of_counts(folder)


def table(size: str, task: str, risk: float, cells: Sequence[Cell]) -> Table:
    """Return a row for each mechanism, way, and text as drawn or denoised."""
    title, sample = TASKS[task][0], sampled(task, size)
    some = [cell for cell in cells if cell.task == task and cell.risk == risk]
    names = list(some[0].drawn) if some else []
    columns = ("mechanism", "way", "text", "ε", "nats", "risk", *names)
    shown = Table(f"{title} at content risk {risk:g} from context; mean ± half of the 95 % interval", columns)
    for cell in some:
        for text, values in (("drawn", cell.drawn), ("denoised", cell.denoised)):
            intervals = [interval(values[name], 0 if name == "perplexity" else 3) for name in names]
            nats = math.nan if cell.nats is None else cell.nats
            shown.rows.append((cell.mechanism, cell.way, text, cell.epsilon, nats, cell.measured, *intervals))
    targets(shown, some)
    for label, labelled in sample.labels.items():
        whole = baselines(labelled, Linear(), [0])[0]
        shown.notes.append(f"{label}, original text: {whole.accuracy:.3f}; constant: {whole.floor_accuracy:.3f}.")
    words = f"the {WORDS[size]:,} most frequent words of MiniLM's" if WORDS[size] else "all words of MiniLM's"
    rows = " and ".join(f"{n:,}" for n in SIZES[size][task])
    shown.notes += [
        f"Space: {words}. Rows to train and to test on: {rows}, of each at most {BEGINNING[size] or 'all'} words.",
        f"Perplexity of the original: {reader().perplexity(sample.texts).value:,.0f}, by another shard's model.",
        f"Similarity: averaged {SIMILAR_BY}; weighted: words count {WEIGHT:g} / ({WEIGHT:g} + their public share).",
        "STS: rank correlation of the similarities of pairs with those of the originals.",
        "Content: content words of the space that are right; denoised: what the contextual attacker reads.",
        "Of authors and gender, original-private is the static attacker, private-private the adaptive one.",
    ]
    return shown


def interval(values: Sequence[float], digits: int = 3) -> str:
    if len(values) < 2:
        return f"{values[0]:,.{digits}f}"
    half = float(stats.t.ppf(0.975, len(values) - 1)) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return f"{np.mean(values):,.{digits}f} ± {half:.{digits}f}"


def targets(shown: Table, cells: Sequence[Cell]) -> None:
    """Check that ours, denoised, is above every mechanism as published, by two standard errors."""
    published = [cell for cell in cells if cell.mechanism != OURS]
    for ours, other in itertools.product((cell for cell in cells if cell.mechanism == OURS), published):
        for name in ("similarity", "weighted", "label, private-original"):
            first, second = ours.denoised.get(name, []), other.drawn.get(name, [])
            if min(len(first), len(second)) > 1:
                error = math.sqrt(np.var(first, ddof=1) / len(first) + np.var(second, ddof=1) / len(second))
                more = float(np.mean(first) - np.mean(second))
                words = f"{name} {more:+.3f} over {other.mechanism}'s, error {error:.3f}"
                shown.target(f"{ours.way}, denoised: {words}", met=more > ERRORS * error)


__all__ = ["run"]
