"""Every mechanism at equal contextual risk: as published, balanced, denoised; utility, and what attackers learn.

    python -m benchmarks utility [--quick | --full] [--risk .5 ...] [--task sst2 ...] [--mechanism cmp ...]

Epsilon is what ``--risk`` chooses for a reader who uses context; then the task sets are released under five keys,
denoised, and measured. Each cell is kept in the work folder, so that a run resumes where the last one stopped.
``--quick``, the default: the 12,000 most frequent words and some rows of each set; ``--full``: all words and more rows.
"""

import argparse
import datetime as dt
import functools
import hashlib
import itertools
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
from scipy import stats

import corpusveil as cv
from benchmarks import contextual, inputs
from benchmarks.equal_risk import FILE, OURS, EqualRisk, EqualRiskPoint
from benchmarks.report import Skipped, Table
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.errors import UserError
from corpusveil.evaluation.statistics.changed_words import changed_share
from corpusveil.evaluation.statistics.encoders import AveragedVectors
from corpusveil.evaluation.statistics.perplexity import KneserNey
from corpusveil.evaluation.statistics.similarity import cosine
from corpusveil.evaluation.terms import count_words
from corpusveil.evaluation.utility.labelled_texts import LabelledTexts, read_task
from corpusveil.evaluation.utility.text_classifiers import Remembered, Tfidf
from corpusveil.evaluation.utility.training_modes import MODES, Mode, baselines, train_and_test
from corpusveil.jobs.local import Local
from corpusveil.language.denoise import MARGIN, Denoiser, Search
from corpusveil.mechanisms import Mechanism
from corpusveil.spaces import Space, Vocabulary
from corpusveil.spaces.public_counts import read_counts
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.artifacts import is_artifact

KEYS = 5
RISKS = (0.3, 0.5, 0.7, 0.9)
PUBLISHED = (
    "diffractor-geometric",
    "diffractor-exponential",
    "custext",
    "custext-per-word",
    "santext",
    "tem",
    "truncated-gumbel",
    "syntf",
    "cmp",
    "mahalanobis",
    "vickrey-cmp",
    "vickrey-mahalanobis",
)
SPACES = {"plain": (0.0, "greedy"), "balanced": (contextual.BALANCE, "improved")}
SIZES = {
    "quick": {"sst2": (1000, 500), "ag_news": (500, 400), "blog_gender": (500, 400)},
    "full": {"sst2": (6000, 872), "ag_news": (4000, 2000), "blog_gender": (4105, 852)},
}
"""Rows to train on and to test on."""
BEGINNING = {"quick": 60, "full": 0}
"""The most words of a text, 0 for all; blogs are long."""
WORDS = {"quick": 12_000, "full": 0}
"""The most frequent words, which are the space; 0: all."""
TASK_NAMES = {"sst2": "SST-2", "ag_news": "AG News", "blog_gender": "blogs"}
FIGURES = ("unchanged", "similarity", "weighted", "perplexity", "distinct", *MODES)
WEIGHT = 1e-3
"""Of a word of public share p in *weighted* similarity: ``WEIGHT / (WEIGHT + p)`` (Arora, Liang, Ma 2017)."""
SIMILAR_BY = "GloVe vectors, 25 dimensions"
ERRORS = 2.0
CHART = inputs.ROOT / "docs" / "equal-risk.svg"

MODEL = Tfidf(words=1)
Values = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Cell:
    """A mechanism in a space at a risk, on a task: figures by key, of texts as drawn and denoised."""

    task: str
    mechanism: str
    space: str
    risk: float
    epsilon: float
    nats: float
    measured: float
    drawn: Values
    denoised: Values


def run(arguments: Sequence[str] = ()) -> list[Table]:
    asked = _asked(arguments)
    size = "full" if asked.full else "quick"
    began = time.perf_counter()
    found = functools.partial(kept, size) if asked.kept else functools.partial(measure, size)
    cells = [cell for risk in asked.risk for cell in found(risk, asked.task, asked.mechanism, asked.space)]
    tables = [table(size, task, risk, cells) for risk in asked.risk for task in asked.task]
    tables[-1].notes.append(f"This run took {(time.perf_counter() - began) / 60:.0f} minutes, without what was kept.")
    if asked.chart:
        shown = equal_risk(size, asked.task[0], cells)
        FILE.write_text(shown.as_json(), encoding="utf-8")
        CHART.write_text(shown.chart(), encoding="utf-8")
    return tables


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks utility")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true")
    sizes.add_argument("--full", action="store_true")
    parser.add_argument("--risk", type=float, nargs="+", default=RISKS)
    parser.add_argument("--task", nargs="+", choices=TASK_NAMES, default=list(TASK_NAMES))
    parser.add_argument("--mechanism", nargs="+", choices=(*OURS, *PUBLISHED), default=(*OURS, *PUBLISHED))
    parser.add_argument("--space", nargs="+", choices=SPACES, default=list(SPACES))
    parser.add_argument("--kept", action="store_true", help="show what was measured before, and measure nothing")
    parser.add_argument("--chart", action="store_true", help=f"write {CHART.name} and {FILE.name} of the first task")
    return parser.parse_args(list(arguments))


def measure(
    size: str, risk: float, tasks: Sequence[str], mechanisms: Sequence[str], spaces: Sequence[str]
) -> list[Cell]:
    """Return all cells of a risk, except those without an epsilon."""
    shared = inputs.data()
    if shared is None or not all((shared / "tasks" / f"{name}.parquet").is_file() for name in tasks):
        raise Skipped("the shared data and its task sets are not on this machine.")
    cells = []
    for name in mechanisms:
        for kind in spaces:
            space = contextual.space(*SPACES[kind], WORDS[size])
            mechanism = cv.mechanism(name, space)
            try:
                chosen = cv.epsilon_for_risk(mechanism, risk, of="context", model=contextual.model())
            except UserError as reason:
                print(f"  {name}, {kind}: {reason}", flush=True)
                continue
            for task in tasks:
                path = _path(size, task, name, kind, risk)
                if not path.exists():
                    path.parent.mkdir(exist_ok=True)
                    drawn, denoised = measured(subset(shared, task, size), mechanism, chosen.epsilon)
                    nats = math.nan if chosen.plain_ldp is None else chosen.plain_ldp
                    cell = Cell(task, name, kind, risk, chosen.epsilon, nats, chosen.measured, drawn, denoised)
                    path.write_bytes(orjson.dumps(cell))
                    print(f"  {path.stem}", flush=True)
                cells.append(_read(path))
    return cells


def kept(size: str, risk: float, tasks: Sequence[str], mechanisms: Sequence[str], spaces: Sequence[str]) -> list[Cell]:
    """Return the cells of a risk that were measured before."""
    paths = [_path(size, *at, risk) for at in itertools.product(tasks, mechanisms, spaces)]
    return [_read(path) for path in paths if path.exists()]


def _path(size: str, task: str, mechanism: str, kind: str, risk: float) -> Path:
    return inputs.work() / "utility-cells" / f"{size}-{task}-{mechanism}-{kind}-{risk:g}.json"


def _read(path: Path) -> Cell:
    found = json.loads(path.read_bytes())
    return Cell(**{**found, "nats": math.nan if found["nats"] is None else found["nats"]})


def subset(shared: Path, name: str, size: str) -> LabelledTexts:
    """Return some rows to train on and to test on, drawn by a fixed seed."""
    task = read_task(str(shared / "tasks" / f"{name}.parquet"), split="split", name=name)
    rng = np.random.default_rng(0)
    parts = zip(task.train_and_test(0), SIZES[size][name], strict=True)
    some = task.take(np.concatenate([np.sort(rng.permutation(rows)[:most]) for rows, most in parts]))
    return some.with_texts([" ".join(text.split()[: BEGINNING[size] or None]) for text in some.texts])


def measured(task: LabelledTexts, mechanism: Mechanism, epsilon: float) -> tuple[Values, Values]:
    """Release a task under each key, denoise it, and measure both."""
    drawn: Values = {name: [] for name in FIGURES}
    denoised: Values = {name: [] for name in FIGURES}
    policy, budget = cv.TextPolicy(), cv.Budget(epsilon)
    denoiser = Denoiser(mechanism, budget, policy, contextual.model(), Search(margin=MARGIN))
    originals = Remembered(MODEL, most=1)
    for key in range(KEYS):
        secret = cv.Key(hashlib.sha256(f"benchmark {key}".encode()).digest())
        release = cv.Release(mechanism, budget, policy, secret, accept_no_guarantee=True)
        texts = cv.privatize(list(task.texts), release, cv.RowNumbers(task.name))
        readable, _ = denoiser.privatize(pa.array(texts), [], "text")
        for values, some in ((drawn, texts), (denoised, readable.to_pylist())):
            for name, value in figures(task, some, mechanism.space, originals).items():
                values[name].append(value)
    return drawn, denoised


def figures(task: LabelledTexts, texts: Sequence[str], space: Space, originals: Remembered) -> dict[str, float]:
    known = changed_share(task.texts, texts, space.vocabulary)
    train, test = task.train_and_test(0)
    private, fitted = task.with_texts(texts), Remembered(MODEL, most=1)
    versions = {"original": (task, originals), "private": (private, fitted)}

    def accuracy(mode: Mode) -> float:
        source, target = mode.split("-")
        version, model = versions[source]
        return train_and_test(version.take(train), versions[target][0].take(test), model).accuracy

    return {
        "unchanged": 1 - known.share,
        "similarity": float(np.mean(cosine(task.texts, texts, independent(False)))),
        "weighted": float(np.mean(cosine(task.texts, texts, independent(True)))),
        "perplexity": reader().perplexity(texts).value,
        "distinct": float(len(count_words(texts)[0])),
        **{mode: accuracy(mode) for mode in MODES},
    }


@functools.cache
def independent(weighted: bool) -> AveragedVectors:
    """Return averaged vectors from which no space here is made; ``weighted`` against frequency."""
    shared = inputs.data()
    assert shared is not None
    vectors = cv.read_vectors(str(shared / "embeddings" / "glove-twitter-25d-12k.txt.gz"))
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
    """Return a row for each mechanism, space, and text as drawn or denoised."""
    shared = inputs.data()
    assert shared is not None
    data = subset(shared, task, size)
    whole = baselines(data, MODEL, [0])[0]
    perplexity, distinct = reader().perplexity(data.texts).value, len(count_words(data.texts)[0])
    rows = " and ".join(f"{n:,}" for n in SIZES[size][task])
    told = Table(
        f"{TASK_NAMES[task]} at contextual risk {risk:g}, {KEYS} keys; mean ± half of the 95 % interval",
        (
            "mechanism",
            "space",
            "text",
            "ε",
            "nats",
            "unchanged",
            "similarity",
            "weighted",
            "perplexity",
            "distinct words",
            *MODES,
        ),
    )
    some = [cell for cell in cells if cell.task == task and cell.risk == risk]
    for cell in some:
        for text, values in (("drawn", cell.drawn), ("denoised", cell.denoised)):
            shown = [interval(values[name], 0 if name in ("perplexity", "distinct") else 3) for name in FIGURES]
            told.rows.append((cell.mechanism, cell.space, text, cell.epsilon, cell.nats, *shown))
    targets(told, some)
    words = f"the {WORDS[size]:,} most frequent words of MiniLM's" if WORDS[size] else "all words of MiniLM's"
    original = f"accuracy {whole.accuracy:.3f}, constant {whole.floor_accuracy:.3f}, perplexity {perplexity:,.0f}"
    original += f", {distinct:,} distinct words"
    similar = f"{independent(False).label}; weighted: words count {WEIGHT:g} / ({WEIGHT:g} + their public share)"
    beginning = f", the first {BEGINNING[size]} words of each" if BEGINNING[size] else ""
    told.notes += [
        f"Space: {words}. Rows trained and tested on: {rows}{beginning}. Classifier: TF-IDF of words.",
        f"Original text: {original}.",
        f"Similarity: {similar}. Perplexity: of another shard than the denoiser's model.",
        "Unchanged: of the words that the space has. Of denoised text it is what the contextual attacker reads.",
    ]
    if task == "blog_gender":
        told.notes.append(
            "The label is the writer's gender: original-private is the static attacker, private-private the adaptive "
            "one; in rows of denoised text they denoise first."
        )
    return told


def interval(values: Sequence[float], digits: int = 3) -> str:
    half = float(stats.t.ppf(0.975, len(values) - 1)) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return f"{np.mean(values):,.{digits}f} ± {half:.{digits}f}"


def targets(told: Table, cells: Sequence[Cell]) -> None:
    """Check that ours, balanced and denoised, is above every mechanism as published, by two standard errors."""
    for ours in (cell for cell in cells if cell.mechanism in OURS and cell.space == "balanced"):
        for other in (cell for cell in cells if cell.mechanism in PUBLISHED and cell.space == "plain"):
            for name in ("similarity", "weighted", "private-original"):
                first, second = ours.denoised[name], other.drawn[name]
                error = math.sqrt((np.var(first, ddof=1) + np.var(second, ddof=1)) / len(first))
                more = float(np.mean(first) - np.mean(second))
                words = f"{name} {more:+.3f} over {other.mechanism}'s, error {error:.3f}"
                told.target(f"{ours.mechanism} balanced, denoised: {words}", met=more > ERRORS * error)


def equal_risk(size: str, task: str, cells: Sequence[Cell]) -> EqualRisk:
    """Return the data of the chart: mean similarities of a task, of all cells, and their description."""
    some = [cell for cell in cells if cell.task == task]
    newest = max(_path(size, task, cell.mechanism, cell.space, cell.risk).stat().st_mtime for cell in some)
    points = [
        EqualRiskPoint(cell.mechanism, cell.space, text, cell.risk, round(float(np.mean(values["similarity"])), 4))
        for cell in sorted(some, key=lambda cell: (OURS + PUBLISHED).index(cell.mechanism))
        for text, values in (("drawn", cell.drawn), ("denoised", cell.denoised))
    ]
    return EqualRisk(
        TASK_NAMES[task],
        sum(SIZES[size][task]),
        len(contextual.space(*SPACES["plain"], WORDS[size])),
        KEYS,
        dt.datetime.fromtimestamp(newest, dt.UTC).date().isoformat(),
        f"averaged {SIMILAR_BY}, of which no space is made",
        tuple(points),
    )


__all__ = ["run"]
