"""All mechanisms, and passages, where a reader recovers equally many content words: what is left that is of use.

Epsilons of different mechanisms, and of words and whole texts, cannot be compared; what a reader recovers can. For each
mechanism on words, epsilon is found at which the strongest of three readers (the drawn text as it is; denoised, with
and without a margin) has a share of the content words of the originals, on a pilot under a key of its own. A word
counts as recovered that stands anywhere in the reader's text, so that passages, of which nothing else can be read, are
measured alike. Readers know the law, the space ``en`` and its language model.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import orjson
from pydantic import Field

import corpusveil as cv
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.content import content_weights
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage import files
from corpusveil.storage.artifacts import is_artifact
from corpusveil.storage.durable import mark_of
from corpusveil_evaluate.readers.ngrams.denoise import MARGIN, Denoiser, Search
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from corpusveil_evaluate.readers.ngrams.modelling import load_model
from corpusveil_evaluate.statistics.words_back import words_back
from corpusveil_evaluate.studies.cells import Cell, Results, cells_over
from corpusveil_evaluate.studies.report import Account, Table
from corpusveil_evaluate.studies.study import Epsilon, Grid, GridMechanism, Study
from corpusveil_evaluate.studies.study_data import ONE_LIST, Needs, StudyData, key_of
from corpusveil_evaluate.studies.task_figures import mode_scores, original_scores, text_statistics

OWN = "own-lists"
"""The space of the lists that ``en`` ships; ``ONE_LIST`` is of lists by meaning alone, for published mechanisms."""
LEAST, MOST = 2.0**-10, 2.0**14
"""The epsilons between which one is looked for,"""
STEP = 1.01
"""until two differ by less than this factor."""
PILOT = -1
"""The seed of pilots, which no cell has."""
LABELS = ("private-original:accuracy", "private-private:accuracy", "original-private:accuracy")


class EqualRecoveryGrid(Grid):
    """Keys of the grid in addition to those of every study. Without ``tasks``, all data sets of ``--data`` are used."""

    mechanisms: tuple[GridMechanism, ...] = Field(min_length=1)
    own_lists: tuple[str, ...] = ("ring-geometric",)
    """Mechanisms on the lists that ``en`` ships."""
    words: int = Field(ge=100)
    """The most frequent words of ``en``, which are the space."""
    shares: tuple[float, ...] = Field(min_length=1)
    """The shares of content words to recover; from 0 to 1."""
    tolerance: float = Field(gt=0, lt=0.5)
    """How near to a share a pilot has to come."""
    pilot: int = Field(ge=10)
    """Texts of each data set in the pilot."""
    stores: tuple[str, ...] = ()
    """Stores of passages: names or addresses,"""
    per: tuple[Literal["document", "sentence"], ...] = ("document",)
    """of which pieces of these sizes are replaced"""
    passage_epsilons: tuple[Epsilon, ...] = ()
    """at these epsilons."""


@dataclass(frozen=True, slots=True)
class Found:
    """An epsilon of a word and what the strongest reader recovers with it, from 0 to 1."""

    epsilon: float
    recovered: float
    nats: float | None
    """What one word costs, for any two words; None without a guarantee."""


class EqualRecovery(Study):
    """Words by every mechanism where equally much is recovered, and passages, on the same texts."""

    name = "equal-recovery"
    paper = "mechanisms on words, and passages, where a reader recovers equally much: no paper's, a comparison of ours"
    grid = EqualRecoveryGrid
    no_use_for = ("collection", "queries", "qrels", "vectors", "corpus", "text")

    def needs(self, grid: EqualRecoveryGrid) -> Needs:  # noqa: ARG002 - spaces are those of en
        return Needs(words=())

    def cells(self, grid: EqualRecoveryGrid, data: StudyData) -> list[Cell]:
        tasks, seeds = _tasks(grid, data), range(grid.seeds)
        made = cells_over("baseline", task=tasks, seed=seeds)
        for mechanism, share in itertools.product(grid.mechanisms, grid.shares):
            made += cells_over(
                "task", unit=["word"], of=[mechanism.name], parameters=[mechanism.parameters], share=[share],
                task=tasks, seed=seeds,
            )  # fmt: skip
        return made + cells_over(
            "task", unit=grid.per, of=grid.stores, epsilon=grid.passage_epsilons, task=tasks, seed=seeds
        )

    def prepare(self, grid: EqualRecoveryGrid, data: StudyData) -> None:
        """Make both spaces, and find every epsilon."""
        _make_spaces(grid.words, data)
        for mechanism, share in itertools.product(grid.mechanisms, grid.shares):
            _pilot(mechanism.name, mechanism.parameters, share, grid, data)

    def work(self, cell: Cell, grid: EqualRecoveryGrid, data: StudyData) -> Mapping[str, Any]:
        task, seed = data.task(cell["task"], grid.train_rows, grid.test_rows), cell["seed"]
        if cell.kind == "baseline":
            return original_scores(task, data.model, seed)
        if cell["unit"] == "word":
            found = _pilot(cell["of"], cell["parameters"], cell["share"], grid, data)
            law = _mechanism(cell["of"], cell["parameters"], grid, data)
            versions = _read(law, found.epsilon, task.texts, seed, data)
            text = versions["drawn"]
            cost = {"nats": found.nats, "epsilon": found.epsilon}
        else:
            exchange = cv.PassageExchange(_store(cell["of"]))
            release = cv.PassageRelease(exchange, cell["epsilon"], cell["unit"], key=key_of(seed), accept_overlap=True)
            text = cv.privatize(list(task.texts), release, cv.RowNumbers(task.name))
            versions, cost = {"drawn": text}, {"nats": exchange.exchange(cell["epsilon"]).epsilon}
        among = _content(data)
        shares = {name: words_back(task.texts, some, among)[0] for name, some in versions.items()}
        best = versions.get("denoised", text)
        return {
            **cost,
            "recovered": max(shares.values()),
            **text_statistics(task.texts, text, data.encoder),
            **{f"denoised:{name}": value for name, value in text_statistics(task.texts, best, data.encoder).items()},
            **mode_scores(task, task.with_texts(text), data.model, seed),
        }

    def account(self, results: Results, grid: EqualRecoveryGrid, data: StudyData) -> Account:
        tables = [_table(task, results.where(task=task), grid) for task in _tasks(grid, data)]
        return Account((*tables,), (), tuple(_notes(grid)))


def _tasks(grid: EqualRecoveryGrid, data: StudyData) -> list[str]:
    return data.names(grid.tasks or data.sets(), grid.bundled)


def _make_spaces(words: int, data: StudyData) -> None:
    """Make the spaces of the most frequent words of ``en``: with its lists, and with lists by meaning alone."""
    whole = cv.load_space("en")
    order = np.argsort(-np.asarray(whole.counts), kind="stable")[:words]
    kept = [whole.word(row) for row in np.sort(order)]
    if not is_artifact(where := data.address("spaces", OWN)):
        whole.without(set(whole.vocabulary.words) - set(kept)).save(where)
    if not is_artifact(where := data.address("spaces", ONE_LIST)):
        own = cv.load_space(data.address("spaces", OWN))
        cv.build_space(
            Vectors(list(own.vocabulary.words), np.asarray(own.vectors), "en", None),
            counts=own.counts,
            order="greedy",
            balance=0.0,
        ).save(where)


def _mechanism(name: str, parameters: Mapping[str, Any], grid: EqualRecoveryGrid, data: StudyData) -> Mechanism:
    return data.mechanism(name, OWN if name in grid.own_lists else ONE_LIST, **parameters)


@functools.lru_cache(maxsize=1)
def _store(name: str) -> cv.Store:
    return cv.load_store(name)


@functools.lru_cache(maxsize=1)
def _content_of(space: Space) -> frozenset[str]:
    return frozenset(itertools.compress(space.vocabulary.words, content_weights(space)))


def _content(data: StudyData) -> frozenset[str]:
    return _content_of(data.space(OWN))


def _read(law: Mechanism, epsilon: float, texts: Sequence[str], seed: int, data: StudyData) -> dict[str, list[str]]:
    """Return texts as they are drawn, and as two readers with the language model of ``en`` read them."""
    budget, policy = cv.Budget(epsilon), cv.TextPolicy()
    drawn = data.private(texts, law, budget, seed, policy, source="texts")
    read = {
        name: Denoiser(law, budget, policy, _model(), Search(margin=margin)).readable(drawn)
        for name, margin in (("denoised", MARGIN), ("without a margin", 0.0))
    }
    return {"drawn": drawn, **read}


@functools.cache
def _model() -> LanguageModel:
    return load_model("en")


def _pilot(name: str, parameters: Mapping[str, Any], share: float, grid: EqualRecoveryGrid, data: StudyData) -> Found:
    """Return the epsilon at which the strongest reader recovers a share; it is kept beside the spaces."""
    where = data.address("pilots", f"{name}-{mark_of(grid.decides(), _tasks(grid, data), parameters, share)[:16]}.json")
    if (kept := files.read_if_there(where)) is not None:
        return Found(**orjson.loads(kept))
    law, known = _mechanism(name, parameters, grid, data), dict[float, float]()
    tasks = [data.task(task, grid.train_rows, grid.test_rows).texts for task in _tasks(grid, data)]
    texts = [some[at] for some in tasks for at in np.linspace(0, len(some) - 1, grid.pilot).astype(int)]
    low, high = LEAST, MOST
    while not known or (high / low > STEP and min(abs(one - share) for one in known.values()) > grid.tolerance):
        epsilon = math.sqrt(low * high) if known else 1.0
        read = _read(law, epsilon, texts, PILOT, data)
        known[epsilon] = max(words_back(texts, some, _content(data))[0] for some in read.values())
        low, high = (epsilon, high) if known[epsilon] < share else (low, epsilon)
    epsilon = min(known, key=lambda at: abs(known[at] - share))
    found = Found(epsilon, known[epsilon], law.plain_ldp(epsilon))
    files.write_bytes(where, orjson.dumps(asdict(found)))
    return found


def _table(task: str, cells: Results, grid: EqualRecoveryGrid) -> Table:
    """Return a row for each mechanism and share, and for each store, piece and epsilon of passages."""
    columns = (
        "unit", "of", "epsilon", "nats a unit", "recovered", "similarity", "similarity, denoised",
        *(label.removesuffix(":accuracy") for label in LABELS),
    )  # fmt: skip
    words = ((("word", one.name), ("share", share)) for share in grid.shares for one in grid.mechanisms)
    passages = (
        (piece, ("epsilon", epsilon))
        for *piece, epsilon in itertools.product(grid.per, grid.stores, grid.passage_epsilons)
    )
    rows = []
    for (unit, of), at in itertools.chain(words, passages):
        some = cells.where("task", unit=unit, of=of, **dict([at]))
        if some.values("recovered"):
            figures = [some.figure(name) for name in ("recovered", "cs", "denoised:cs", *LABELS)]
            rows.append((unit, of, some.mean("epsilon") or at[1], some.mean("nats"), *figures))
    whole = cells.where("baseline")
    original = whole.figure("original-original:accuracy")
    floor = whole.figure("original-original:floor")
    note = f"A classifier of originals, tested on originals: {original}; of the most frequent label: {floor}."
    return Table(f"{task}: what is kept where a reader recovers equally much", columns, rows, (note,))


def _notes(grid: EqualRecoveryGrid) -> Iterator[str]:
    yield f"Words: the {grid.words:,} most frequent of en; readers know the law, and the language model of en."
    yield (
        "Recovered: of the content words of the originals, those that stand anywhere in the strongest reader's text; "
        "of passages, in the passage."
    )
    yield "Nats bound what one word, or one piece, tells; a text of n words costs n times as much."


STUDY = EqualRecovery()
