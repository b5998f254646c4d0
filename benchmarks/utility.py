"""Every mechanism where equally much is recovered: as drawn and denoised; utility, and what attackers learn.

    python -m benchmarks utility [--quick | --full] [--recovered .5 ...] [--task sst2 ...] [--mechanism cmp ...]

First comes a table of both units (``units.py``; ``--units``: that alone).

Words are those of ``en``, and every reader knows its model, which has read none of these texts. Epsilon is where the
strongest of three readers (drawn text as it is; denoised, with and without a margin) recovers the share that is asked
for of the content words of the sets, found on a pilot of texts under a key of its own. Then the sets are released under
several keys, denoised, and measured. Pilots and cells are kept in the work folder, so that a run resumes where the last
one stopped. ``--quick``, the default: the 12,000 most frequent words; ``--full``: all words and more rows.
``--picture FILE`` draws the pilots' figures, by matplotlib (``sh scripts/group.sh docs`` installs it).
"""

import argparse
import functools
import hashlib
import importlib
import itertools
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson

import corpusveil as cv
from benchmarks import contextual, inputs, stores, units
from benchmarks.report import Skipped, Table
from benchmarks.sets import (
    BEGINNING,
    SIMILAR_BY,
    SIZES,
    TASKS,
    WEIGHT,
    Linear,
    Sample,
    content_words,
    figures,
    independent,
    interval,
    learned,
    readable,
    sampled,
)  # fmt: skip
from corpusveil.errors import DataError
from corpusveil.mechanisms import Mechanism
from corpusveil_evaluate.readers.ngrams.denoise import MARGIN
from corpusveil_evaluate.statistics.similarity import cosine
from corpusveil_evaluate.statistics.words_back import words_back
from corpusveil_evaluate.utility.text_classifiers import Remembered
from corpusveil_evaluate.utility.training_modes import BASELINE, scores_in

KEYS = 5
SHARES = (0.5, 0.3, 0.7)
NEAR = 0.004
"""How near to the share a pilot has to come."""
DRAWN = (0.15, 0.6)
"""Recovered shares of a picture, of words."""
LEAST, MOST = 1e-3, 2.0**14
"""Epsilons between which one is looked for."""
KEEP = "stop words kept"
OURS = "ring-geometric"
WAYS = ("en", "without grammar", "plain", KEEP)
"""How the space is made: as it is shipped; balanced, without grammar; without both, for the published mechanisms; as it
is shipped, with stop words kept."""
PUBLISHED = (
    "vickrey-cmp", "vickrey-mahalanobis", "cmp", "mahalanobis", "santext", "tem", "syntf", "diffractor-geometric",
    "diffractor-exponential", "custext", "custext-per-word", "truncated-gumbel",
)  # fmt: skip
PILOT = {"quick": 80, "full": 80, "smallest": 100}
"""Texts of each set in the pilot."""
WORDS = {"quick": 12_000, "full": 0, "smallest": 0}
"""The most frequent words, which are the space; 0: all."""
ERRORS = 2.0
PICTURED = ("en", "c4-like 100,000")
"""Stores of the picture."""
Values = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Point:
    """What a pilot measured at an epsilon: what each reader recovers, and similarities of its text."""

    epsilon: float
    nats: float | None
    recovered: dict[str, float]
    weighted: dict[str, float]

    @property
    def most(self) -> float:
        return max(self.recovered.values())


@dataclass(frozen=True, slots=True)
class Cell:
    """A mechanism in a way where a share is recovered, on a task: figures by key, of texts as drawn and denoised."""

    task: str
    mechanism: str
    way: str
    share: float
    epsilon: float
    nats: float | None
    drawn: Values
    denoised: Values


def run(arguments: Sequence[str] = ()) -> list[Table]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks utility")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true")
    sizes.add_argument("--full", action="store_true")
    parser.add_argument("--recovered", type=float, nargs="+", default=SHARES)
    parser.add_argument("--task", nargs="+", choices=TASKS, default=list(TASKS)[:-1])
    parser.add_argument("--mechanism", nargs="+", choices=(OURS, *PUBLISHED), default=(OURS, *PUBLISHED))
    parser.add_argument("--way", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--units", action="store_true", help="only the table of words beside passages")
    parser.add_argument("--store", nargs="*", default=stores.STORES)
    parser.add_argument("--per", nargs="+", choices=units.PERS, default=units.PERS)
    parser.add_argument("--epsilon", type=float, nargs="+", default=units.EPSILONS)
    parser.add_argument("--risk", type=float, nargs="*", default=units.RISKS)
    parser.add_argument("--picture", help="the SVG file into which the pilots' figures are drawn")
    parser.add_argument("--kept", action="store_true", help="show what was measured before, and measure nothing")
    asked = parser.parse_args(list(arguments))
    asked.size = "smallest" if inputs.SMALLEST else "full" if asked.full else "quick"
    if asked.size == "smallest":
        asked.task, asked.mechanism, asked.way, asked.recovered, asked.keys = ["film"], [OURS], ["en"], [0.7], 2
        asked.store, asked.epsilon, asked.risk = ["en"], [10.0], [0.7]
    elif (shared := inputs.data()) is None or not (shared / "tasks").is_dir():
        raise Skipped("the shared data and its task sets are not on this machine.")
    asked.key_of = key_of
    both = [] if asked.kept else [units.table(asked)]
    if asked.units:
        return both
    began, cells = time.perf_counter(), []
    for share, name, way in itertools.product(asked.recovered, asked.mechanism, asked.way):
        if (way == "plain") == (name != OURS):
            cells += [cell for task in asked.task if (cell := measured(task, name, way, share, asked))]
    if asked.picture:
        draw(asked)
    tables = both + [over_all(share, cells) for share in asked.recovered]
    tables += [table(asked.size, task, share, cells) for share in asked.recovered for task in asked.task]
    tables[-1].notes.append(f"This run took {(time.perf_counter() - began) / 60:.0f} minutes, without what was kept.")
    return tables


@functools.lru_cache(maxsize=2)
def mechanism(name: str, way: str, size: str) -> Mechanism:
    return cv.mechanism(name, contextual.space(way, WORDS[size]))


def policy_of(way: str) -> cv.TextPolicy:
    return cv.TextPolicy(stop_words="keep" if way == KEEP else "privatize")


def key_of(name: str) -> cv.Key:
    return cv.Key(hashlib.sha256(f"benchmark {name}".encode()).digest())


@functools.cache
def pilot_texts(size: str) -> list[str]:
    """Return some texts of every set, spread over its rows."""
    texts = [sampled(task, size).texts for task in SIZES[size]]
    return [each[at] for each in texts for at in np.linspace(0, len(each) - 1, PILOT[size]).astype(int)]


def pilots(name: str, way: str, size: str) -> tuple[Path, list[Point]]:
    """Return where the points of a pilot are kept, and those that were measured."""
    path = inputs.work() / "utility-pilots" / f"{size}-{name}-{way}.json"
    return path, [Point(**one) for one in json.loads(path.read_bytes())] if path.exists() else []


def point(name: str, way: str, epsilon: float, asked: argparse.Namespace) -> Point:
    law, texts, policy = mechanism(name, way, asked.size), pilot_texts(asked.size), policy_of(way)
    release = cv.Release(law, cv.Budget(epsilon), policy, key=key_of("pilot"), accept_no_guarantee=True)
    drawn = cv.privatize(texts, release, cv.RowNumbers("pilot"))
    read = {"drawn": drawn}
    for reader_of, margin in (("denoised", MARGIN), ("denoised without a margin", 0.0)):
        read[reader_of] = readable(law, epsilon, policy, margin, drawn)
    vectors, among = independent(True), content_words(law.space)
    return Point(
        epsilon, law.plain_ldp(epsilon),
        {by: contextual.share(*contextual.right_words(texts, some, among))[0] for by, some in read.items()},
        {by: float(np.mean(cosine(texts, some, vectors))) for by, some in read.items()},
    )  # fmt: skip


def pilot(name: str, way: str, share: float, asked: argparse.Namespace) -> Point | None:
    """Return the point of a pilot at which a share is recovered; None if there is no such epsilon."""
    path, known = pilots(name, way, asked.size)
    while not any(abs(one.most - share) <= NEAR for one in known):
        low = max((one.epsilon for one in known if one.most < share), default=0.0)
        high = min((one.epsilon for one in known if one.most >= share and one.epsilon > low), default=math.inf)
        if asked.kept or low >= MOST or high <= LEAST:
            return None
        epsilon = 1.0 if not known else math.sqrt((low or high / 64) * min(high, low * 64 or math.inf))
        if known and high / (low or LEAST / 2) < 1.005:
            break  # a step: the nearest is what there is
        try:
            known.append(point(name, way, min(max(epsilon, LEAST), MOST), asked))
        except DataError:
            return None  # truncated Gumbel has no law at a small epsilon
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(orjson.dumps(sorted(known, key=lambda one: one.epsilon)))
        print(f"  {path.stem}: epsilon {known[-1].epsilon:.4g}, {known[-1].recovered}", flush=True)
    return min(known, key=lambda one: abs(one.most - share))


def measured(task: str, name: str, way: str, share: float, asked: argparse.Namespace) -> Cell | None:
    """Return a cell; None without an epsilon of this share, or where only what was kept is asked for."""
    path = inputs.work() / "utility-cells" / f"{asked.size}-{task}-{name}-{way}-{share:g}.json"
    if not path.exists():
        at = None if asked.kept else pilot(name, way, share, asked)
        if at is None:
            return None
        path.parent.mkdir(exist_ok=True)
        law = mechanism(name, way, asked.size)
        drawn, denoised = values_of(sampled(task, asked.size), task, law, policy_of(way), at.epsilon, asked.keys)
        path.write_bytes(orjson.dumps(Cell(task, name, way, share, at.epsilon, at.nats, drawn, denoised)))
        print(f"  {path.stem}", flush=True)
    return Cell(**json.loads(path.read_bytes()))


def passages(name: str, per: str, asked: argparse.Namespace) -> list[Point]:
    """Return the points of passages of a store, of which a reader recovers what comes back."""
    path, known = pilots("passages", f"{per}, {name}", asked.size)
    texts, law = pilot_texts(asked.size), cv.PassageExchange(stores.opened(name, per))
    for epsilon in [] if known or asked.kept else asked.epsilon:
        release = cv.PassageRelease(law, epsilon, per, key=key_of("pilot"))  # type: ignore[arg-type]
        out = stores.released(release, texts)
        back = words_back(texts, out, content_words(law.store.space))[0]
        weighted = float(np.mean(cosine(texts, out, independent(True))))
        known.append(Point(epsilon, law.exchange(epsilon).epsilon, {"drawn": back}, {"drawn": weighted}))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(orjson.dumps(known))
    return known


def draw(asked: argparse.Namespace) -> None:
    """Draw a curve for each mechanism and of passages: what its better text keeps, over what a reader recovers.

    Words are drawn where epsilon was looked for, passages at each epsilon that was asked for.
    """
    file, size = asked.picture, asked.size
    plt = importlib.import_module("matplotlib.pyplot")
    plt.rcParams["svg.hashsalt"] = "utility"
    figure, axis = plt.subplots(figsize=(7.2, 4.4))
    for name, way in [(OURS, "en"), *((name, "plain") for name in PUBLISHED)]:
        known = [one for one in pilots(name, way, size)[1] if DRAWN[0] <= one.most <= DRAWN[1]]
        if len(known) < 3:
            continue
        best = [max(one.weighted.values()) for one in known]
        nats = min(known, key=lambda one: abs(one.most - 0.5)).nats
        bound = "no guarantee" if nats is None else f"{nats:.0f} nats at 0.5"
        axis.plot(
            [one.most for one in known], best, label=f"{name} ({bound})", linewidth=2.6 if name == OURS else 1.1,
            color="black" if name == OURS else None, marker="o", markersize=3, linestyle=":" if nats is None else "-",
        )  # fmt: skip
    for (name, per), mark in zip(itertools.product(PICTURED, asked.per), "^v^v", strict=False):
        known = passages(name, per, asked)
        axis.plot(
            [one.most for one in known], [max(one.weighted.values()) for one in known], linestyle="--", marker=mark,
            color="black" if name == "en" else "gray", markersize=4, linewidth=1.1,
            label=f"passages of {name}, {known[0].epsilon:g} to {known[-1].epsilon:g} nats a {per}",
        )  # fmt: skip
    axis.set(xlabel="content words that the strongest reader recovers", ylabel="weighted similarity to the original")
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, metadata={"Date": None}, bbox_inches="tight")


def values_of(
    sample: Sample, task: str, law: Mechanism, policy: cv.TextPolicy, epsilon: float, keys: int
) -> tuple[Values, Values]:
    """Release texts under each key, denoise them, and measure both."""
    both: tuple[Values, Values] = ({}, {})
    originals = {label: Remembered(Linear(), most=1) for label in sample.labels}
    for key in range(keys):
        release = cv.Release(law, cv.Budget(epsilon), policy, key=key_of(str(key)), accept_no_guarantee=True)
        texts = cv.privatize(sample.texts, release, cv.RowNumbers(task))
        for values, some in zip(both, (texts, readable(law, epsilon, policy, MARGIN, texts)), strict=True):
            found = {
                "content": contextual.share(*contextual.right_words(sample.texts, some, content_words(law.space)))[0],
                "perplexity": contextual.reader().perplexity(some).value,
                **figures(sample, some, law.space),
                **{name: float(np.mean(right)) for name, right in learned(sample, some, originals).items()},
            }
            for name, value in found.items():
                values.setdefault(name, []).append(value)
    return both


def over_all(share: float, cells: Sequence[Cell]) -> Table:
    """Return the means over sets, and what classifiers learn: labels of original text, authors of private text."""
    named = ("similarity", "weighted", "attested")
    taught = (("sst2", "label, private-original"), ("ag_news", "label, private-original"),
               ("blog_authors", "author, original-private"), ("blog_authors", "author, private-private"))  # fmt: skip
    columns = ("mechanism", "way", "text", "nats", "recovered", *named, "SST-2", "AG News", "authors", "adaptive")
    shown = Table(f"Means over sets where {share:g} are recovered", columns)
    groups = itertools.groupby((cell for cell in cells if cell.share == share), lambda cell: (cell.mechanism, cell.way))
    for (name, way), group in groups:
        some = {cell.task: cell for cell in group}
        for text in ("drawn", "denoised"):
            values = {task: getattr(cell, text) for task, cell in some.items()}
            means = [np.mean([np.mean(each[of]) for each in values.values()]) for of in ("content", *named)]
            right = [np.mean(values[task][of]) if task in values else math.nan for task, of in taught]
            nats = next(iter(some.values())).nats
            shown.rows.append((name, way, text, math.nan if nats is None else nats, *map(float, (*means, *right))))
    return shown


def table(size: str, task: str, share: float, cells: Sequence[Cell]) -> Table:
    """Return a row for each mechanism, way, and text as drawn or denoised."""
    title, sample = TASKS[task][0], sampled(task, size)
    some = [cell for cell in cells if cell.task == task and cell.share == share]
    names = list(some[0].drawn) if some else []
    columns = ("mechanism", "way", "text", "ε", "nats", *names)
    shown = Table(f"{title} where {share:g} are recovered; mean ± half of the 95 % interval", columns)
    for cell in some:
        for text, values in (("drawn", cell.drawn), ("denoised", cell.denoised)):
            intervals = [interval(values[name], 0 if name == "perplexity" else 3) for name in names]
            nats = math.nan if cell.nats is None else cell.nats
            shown.rows.append((cell.mechanism, cell.way, text, cell.epsilon, nats, *intervals))
    targets(shown, some)
    for label, labelled in sample.labels.items():
        whole = scores_in(BASELINE, labelled, labelled, Linear(), 0)
        shown.notes.append(f"{label}, original text: {whole.accuracy:.3f}; constant: {whole.floor_accuracy:.3f}.")
    words = f"the {WORDS[size]:,} most frequent words of en" if WORDS[size] else "all words of en"
    rows = " and ".join(f"{n:,}" for n in SIZES[size][task])
    shown.notes += [
        f"Space: {words}. Rows to train and to test on: {rows}, of each at most {BEGINNING[size] or 'all'} words.",
        f"Original perplexity: {contextual.reader().perplexity(sample.texts).value:,.0f}, by a shard of c4-like.",
        f"Attested of the original, pairs of words that are in that shard: {contextual.attested(sample.texts):.3f}.",
        f"Similarity: averaged {SIMILAR_BY}; weighted: words count {WEIGHT:g} / ({WEIGHT:g} + their public share).",
        "STS: rank correlation of the similarities of pairs with those of the originals.",
        "Content: content words of the space that are right.",
        "Of authors and gender, original-private is the static attacker, private-private the adaptive one.",
    ]
    return shown


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
