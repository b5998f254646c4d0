"""Words beside passages: what each keeps of a text, what comes back, how often its original is picked from a list.

    python -m benchmarks units [--store en FOLDER ...] [--task sst2 ...] [--per document] [--epsilon 10] [--risk .5]

Words are those of the whole ``en``, at the epsilon that ``--risk`` chooses, as drawn and denoised. A store is ``en`` or
one that ``corpusveil store`` made; K of passages follows from its public figures. Cells are kept in the work folder.
"""

import argparse
import dataclasses
import functools
import hashlib
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

import corpusveil as cv
from benchmarks import inputs
from benchmarks.report import Skipped, Table
from benchmarks.sets import TASKS, Linear, Sample, content_words, learned, readable, sampled
from corpusveil.storage.documents import Documents
from corpusveil.transforms.release.risk import epsilon_at
from corpusveil_evaluate.attacks.picked_texts import texts_picked
from corpusveil_evaluate.readers.ngrams.denoise import MARGIN
from corpusveil_evaluate.statistics.words_back import words_back
from corpusveil_evaluate.utility.text_classifiers import Remembered

EPSILONS, RISKS, PERS = (6.0, 8.0, 10.0, 12.0, 14.0), (0.3, 0.5, 0.7), ("document", "sentence")
LABEL = "label, private-original"
AUTHORS = "author, private-private"
KNOWN = (("AG News", "ag_news"), ("SST-2", "sst2"), ("blogs", "blog_authors"))
MEASURES = (
    *((f"back, {title}", task, "back") for title, task in KNOWN), *((title, task, LABEL) for title, task in KNOWN[:2]),
    ("adaptive", "blog_authors", AUTHORS), *((f"picked, {title}", task, "picked") for title, task in KNOWN),
    ("back", None, "back"),
)  # fmt: skip
"""Columns: of a task, or the mean over tasks."""
Cell = dict[str, Any]


def run(arguments: Sequence[str] = ()) -> list[Table]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks units")
    parser.add_argument("--task", nargs="+", choices=TASKS, default=list(TASKS)[:-1])
    parser.add_argument("--keys", type=int, default=5)
    parser.add_argument("--store", nargs="*", default=["en"])
    parser.add_argument("--per", nargs="+", choices=PERS, default=PERS)
    parser.add_argument("--epsilon", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--risk", type=float, nargs="*", default=RISKS)
    asked = parser.parse_args(list(arguments))
    if inputs.SMALLEST:
        asked.task, asked.keys, asked.epsilon, asked.risk = ["film"], 2, [10.0], [0.7]
    elif (shared := inputs.data()) is None or not (shared / "tasks").is_dir():
        raise Skipped("the shared data and its task sets are not on this machine.")
    return [table(asked)]


def key_of(name: str) -> cv.Key:
    return cv.Key(hashlib.sha256(f"benchmark {name}".encode()).digest())


def released(release: cv.PassageRelease, texts: Sequence[str]) -> list[str]:
    """Return the released rows, without a run's check that the store does not have the texts."""
    documents = Documents(pa.array(texts, pa.large_string()), [f" {row}" for row in range(len(texts))])
    out: list[str] = dataclasses.replace(release, accept_overlap=True).kernel().apply(documents)[0].to_pylist()
    return out


@functools.cache
def originals(task: str) -> dict[str, Remembered]:
    return {label: Remembered(Linear(), most=1) for label in sampled(task).labels}


@functools.lru_cache(maxsize=1)
def word_law() -> cv.RingGeometric:
    return cv.RingGeometric(cv.load_space("en"))


@functools.cache
def epsilon_of(risk: float) -> float:
    return epsilon_at(word_law(), risk, cv.TextPolicy()).epsilon


def add(cell: Cell, task: str, texts: list[str]) -> None:
    """Add the figures of one key."""
    sample = sampled(task)
    found = {"back": words_back(sample.texts, texts, content_words(word_law().space))[0]}
    for name, value in (found | learned(sample, texts, originals(task))).items():
        cell["values"].setdefault(name, []).append(value)


def by_words(texts: Sequence[str], name: str, epsilon: float, key: cv.Key) -> tuple[list[str], list[str]]:
    """Return a set of this name as drawn, and denoised."""
    release = cv.Release(word_law(), cv.Budget(epsilon), cv.TextPolicy(), key=key)
    drawn = cv.privatize(list(texts), release, cv.RowNumbers(name))
    return drawn, readable(word_law(), epsilon, cv.TextPolicy(), MARGIN, drawn)


def of_words(task: str, risk: float, asked: argparse.Namespace) -> list[Cell]:
    epsilon = epsilon_of(risk)
    cells: list[Cell] = [{"values": {}, "epsilon": epsilon} for _ in range(2)]
    for key in range(asked.keys):
        both = by_words(sampled(task).texts, task, epsilon, key_of(str(key)))
        for cell, texts in zip(cells, both, strict=True):
            add(cell, task, texts)
    return cells


def of_passages(task: str, name: str, per: Any, epsilon: float, asked: argparse.Namespace) -> list[Cell]:
    sample: Sample = sampled(task)
    law = cv.PassageExchange(cv.load_store(name))
    cell: Cell = {"values": {}, "epsilon": epsilon, "neighbors": law.exchange(epsilon).neighbors}
    for key in range(asked.keys):
        release = cv.PassageRelease(law, epsilon, per, key=key_of(str(key)))
        add(cell, task, texts := released(release, sample.texts))
        if not key:
            cell["values"]["picked"] = [texts_picked(release, sample.texts, texts).share]
    return [cell]


def kept(name: str, make: Any) -> list[Cell]:
    """Return cells that were measured before, or measure and keep them."""
    path = inputs.work() / "unit-cells" / f"{name}.json"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        cells = make()
        path.write_bytes(orjson.dumps(cells))
        print(f"  {name}", flush=True)
    out: list[Cell] = orjson.loads(path.read_bytes())
    return out


def cells_of(asked: argparse.Namespace) -> dict[tuple[str, ...], dict[str, Cell]]:
    """Return the cells by unit and text, and then by task."""
    rows: dict[tuple[str, ...], dict[str, Cell]] = {}
    for name, per in itertools.product(asked.store, asked.per):
        for epsilon, task in itertools.product(asked.epsilon, asked.task):
            label = f"{asked.keys}-{task}-{per}-{Path(name).name}-{epsilon:g}"
            cell, = kept(label, functools.partial(of_passages, task, name, per, epsilon, asked))  # fmt: skip
            rows.setdefault((per, name, f"{epsilon:g}"), {})[task] = cell
    for risk, task in itertools.product(asked.risk, asked.task):
        label = f"{asked.keys}-{task}-words-{epsilon_of(risk):.4g}"
        pair = kept(label, functools.partial(of_words, task, risk, asked))
        for text, cell in zip(("drawn", "denoised"), pair, strict=True):
            rows.setdefault(("word", f"risk {risk:g}", text), {})[task] = cell
    return rows


def table(asked: argparse.Namespace) -> Table:
    """Return a row for each unit, with the means over keys."""
    rows = cells_of(asked)
    shown = Table(
        "Words and passages: means over sets, labels of original text by a classifier of private text",
        ("unit", "store or risk", "text or nats", "ε", "K", *(column for column, _, _ in MEASURES)),
    )
    for row, cells in rows.items():
        first = next(iter(cells.values()))
        means = [
            float(np.mean([np.mean(cell["values"][name]) for task, cell in cells.items()
                           if of in (None, task) and name in cell["values"]] or [math.nan]))
            for _, of, name in MEASURES
        ]  # fmt: skip
        shown.rows.append((*row, first["epsilon"], first.get("neighbors", math.nan), *means))
    spreads = [
        float(np.std(values, ddof=1)) for cells in rows.values() for cell in cells.values()
        for name, values in cell["values"].items() if len(values) > 1 and name == "back"
    ]  # fmt: skip
    widest = max(spreads, default=math.nan)
    shown.notes.append(f"{asked.keys} keys; the largest deviation of back: {widest:.3f}.")
    return shown
