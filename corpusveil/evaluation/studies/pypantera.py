"""The study of pyPANTERA (De Faveri, Faggioli, Ferro 2024): private text to classify, obfuscated queries to search."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from pydantic import Field

from corpusveil.budget import Budget
from corpusveil.errors import UserError
from corpusveil.evaluation.models import Predictor
from corpusveil.evaluation.retrieval.measures import NAMES, RECALL_AT, score_obfuscated, score_ranking
from corpusveil.evaluation.retrieval.protocol import search_obfuscated
from corpusveil.evaluation.retrieval.queries import Variants, obfuscate, prepared, query_similarity
from corpusveil.evaluation.studies.cells import Cell, Results, cells_over
from corpusveil.evaluation.studies.ground import Ground, Needs, key_of
from corpusveil.evaluation.studies.measures import baseline, scored
from corpusveil.evaluation.studies.pypantera_account import account_of
from corpusveil.evaluation.studies.searched import (
    JUDGED,
    Search,
    Searched,
    Size,
    is_judged,
    prepare_index,
    searched,
)
from corpusveil.evaluation.studies.study import Account, Epsilon, Grid, Mechanism, Study, all_epsilons
from corpusveil.evaluation.utility import score
from corpusveil.transforms.profiles import find as profile
from corpusveil.transforms.release import Release


class PypanteraGrid(Grid):
    """Keys of the grid beside those of every study."""

    epsilons: tuple[Epsilon, ...] = Field(min_length=1)
    """Of a word, in each variant."""
    mechanisms: tuple[Mechanism, ...] = Field(min_length=1)
    searched: tuple[str, ...] = ()
    """Data sets whose texts are searched for known items, where no judged collection is given."""
    bundled_searched: tuple[str, ...] = ()
    searches: tuple[Search, ...] = Field(min_length=1)
    queries: int = Field(ge=1)
    """Of known-item search; each of so many"""
    terms: int = Field(ge=1)
    documents: int = Field(ge=10)
    """At most so many are searched for known items."""
    variants: int = Field(ge=1)
    """Of each query."""
    depth: int = Field(ge=1)
    """Results of a variant in a judged collection,"""
    known_item_depth: int = Field(ge=1)
    """and among known items, which are so few that the pools of 100 would be all of them."""

    @property
    def shown(self) -> list[float]:
        """All epsilons that tables have, those that mechanisms have of their own among them."""
        return all_epsilons(self.epsilons, self.mechanisms)

    @property
    def size(self) -> Size:
        return Size(self.queries, self.terms, self.documents)

    def depth_of(self, collection: str) -> int:
        return self.depth if collection == JUDGED else self.known_item_depth


class Pypantera(Study):
    """Classifiers of original text that meet private text, and search with several variants of a query."""

    name = "pypantera"
    paper = "pyPANTERA: A Python Package for Natural Language Obfuscation (De Faveri, Faggioli, Ferro 2024)"
    grid = PypanteraGrid
    no_use_for = ()

    def needs(self, grid: PypanteraGrid) -> Needs:
        return grid.needs()

    def cells(self, grid: PypanteraGrid, ground: Ground) -> list[Cell]:
        tasks = ground.names(grid.tasks, grid.bundled)
        collections = _collections(grid, ground)
        made = cells_over("baseline", task=tasks, seed=range(grid.seeds))
        made += cells_over("plain", collection=collections, seed=range(grid.seeds))
        for one in grid.mechanisms:
            for epsilon in one.epsilons or grid.epsilons:
                at = {"mechanism": one.name, "parameters": one.parameters, "epsilon": epsilon}
                for seed in range(grid.seeds):
                    made += [Cell("task", {"task": task, **at, "seed": seed}) for task in tasks]
                    made += [Cell("search", {"collection": name, **at, "seed": seed}) for name in collections]
        return made

    def prepare(self, grid: PypanteraGrid, ground: Ground) -> None:
        if is_judged(ground) and any(one.startswith("bm25") for one in grid.searches):
            prepare_index(ground)

    def work(self, cell: Cell, grid: PypanteraGrid, ground: Ground) -> Mapping[str, Any]:
        seed = cell["seed"]
        if cell.kind == "baseline":
            task = ground.task(cell["task"], grid.train_rows, grid.test_rows)
            same = [prepared(text) for text in task.texts]
            found = classified(ground, grid, cell["task"], same, seed)
            return {**baseline(task, ground.model, seed), **{f"prepared:{name}": one for name, one in found.items()}}
        if cell.kind == "plain":
            return plain(_searched(cell, grid, ground), grid, ground, cell["collection"], seed)
        mechanism = ground.mechanism(cell["mechanism"], **cell["parameters"])
        budget, policy = Budget(cell["epsilon"]), profile(self.name).policy()
        if cell.kind == "task":
            task = ground.task(cell["task"], grid.train_rows, grid.test_rows)
            texts = [prepared(text) for text in task.texts]
            _, test = task.train_and_test(seed)
            rows = test.tolist()
            private = ground.private([texts[row] for row in rows], mechanism, budget, seed, policy, source=task.name)
            for row, text in zip(rows, private, strict=True):
                texts[row] = text
            return classified(ground, grid, cell["task"], texts, seed)
        release = Release(mechanism, budget, policy, key_of(seed), accept_no_guarantee=True)
        of = _searched(cell, grid, ground)
        variants = obfuscate(of.queries, release, grid.variants, source=cell["collection"])
        near = query_similarity(variants, ground.encoder)
        found = found_with(of, variants, grid.depth_of(cell["collection"]))
        return {**found, "jaccard": near.jaccard, "cosine": near.cosine, "total_epsilon": variants.total}

    def account(self, results: Results, grid: PypanteraGrid, ground: Ground) -> Account:
        return account_of(results, grid, ground, list(_notes(grid, ground)))


def _collections(grid: PypanteraGrid, ground: Ground) -> list[str]:
    return [JUDGED] if is_judged(ground) else ground.names(grid.searched, grid.bundled_searched, needed=False)


def _searched(cell: Cell, grid: PypanteraGrid, ground: Ground) -> Searched:
    return searched(ground, cell["collection"], grid.searches, grid.size)


def classified(ground: Ground, grid: PypanteraGrid, name: str, texts: list[str], seed: int) -> dict[str, float]:
    """Return how a classifier of the original texts does on the test rows of other texts."""
    task = ground.task(name, grid.train_rows, grid.test_rows)
    if task.pairs is not None:
        raise UserError(f"{name}: this study classifies single texts, and these are pairs; take it out of the grid.")
    train, test = task.train_and_test(seed)
    learnt_by = seed if ground.model.seeded else 0
    predict = _trained(ground, name, grid.train_rows, grid.test_rows, learnt_by)
    tested = task.with_texts(texts).take(test)
    labels = [task.labels[row] for row in train.tolist()]
    return scored(score(predict(tested), tested.labels, labels), "original-private:")


@functools.lru_cache(maxsize=2)
def _trained(ground: Ground, name: str, train_rows: int, test_rows: int, seed: int) -> Predictor:
    """Train once a process: this study trains on nothing private, so the classifier is the same in all cells."""
    task = ground.task(name, train_rows, test_rows)
    train, _ = task.train_and_test(seed)
    return ground.model.fit(task.take(train), seed)


def plain(of: Searched, grid: PypanteraGrid, ground: Ground, collection: str, seed: int) -> dict[str, float]:
    """Return what the original queries find, and as a floor what random words of the space find in their place."""
    depth = grid.depth_of(collection)
    same = Variants(of.queries, tuple((query,) for query in of.queries), 0.0, "word")
    found = found_with(of, same, depth)
    for name, (engine, _) in of.by.items():
        whole = score_ranking(engine.search(of.queries, RECALL_AT), of.judgements)
        found[f"{name}:whole"] = whole.means()[NAMES["recall"]]
    words, rng = ground.space().vocabulary.words, np.random.default_rng(seed)

    def other(query: str) -> str:
        return " ".join(words[id] for id in rng.integers(len(words), size=len(query.split())).tolist())

    texts = tuple(tuple(other(query) for _ in range(grid.variants)) for query in of.queries)
    random = Variants(of.queries, texts, 0.0, "word")
    found |= {f"random:{name}": value for name, value in found_with(of, random, depth).items()}
    near = query_similarity(random, ground.encoder)
    known = [word in ground.space().vocabulary for query in of.queries for word in query.split()]
    return {
        **found, "random:jaccard": near.jaccard, "random:cosine": near.cosine, "queries": len(of.queries),
        "documents": len(next(iter(of.by.values()))[0]), "known_words": float(np.mean(known)), "missing": of.missing,
    }  # fmt: skip


def found_with(of: Searched, variants: Variants, depth: int) -> dict[str, float]:
    """Return the measures of every search with these variants."""
    found: dict[str, float] = {}
    kept = max(depth, RECALL_AT)
    for name, (engine, client) in of.by.items():
        means = score_obfuscated(search_obfuscated(engine, variants, depth, client, kept), of.judgements).means()
        found |= {f"{name}:{at}": means[title] for at, title in NAMES.items()}
    return found


def _notes(grid: PypanteraGrid, ground: Ground) -> Iterator[str]:
    yield from profile("pypantera").lines()
    yield "Texts and queries are prepared before they are privatized, so here, too, terms with a digit are taken out."
    stand_in = ", ".join(ground.names(grid.tasks, grid.bundled))
    yield (
        f"{stand_in} stands in for the tweets, {ground.model.name} for Twitter-roBERTa; of the accuracies we know no "
        "figure of the paper, so none is compared."
    )
    yield (
        f"{grid.variants} variants of a query are {grid.variants} releases of it: at epsilon e a word they promise "
        f"{grid.variants} e together, the column r ε. Their number and {grid.depth} results each are our choice."
    )
    if set(_collections(grid, ground)) <= {JUDGED}:
        return
    yield (
        "Known-item search stands in for DL'19, whose passages and judgements are not here (--collection, --queries, "
        f"--qrels): {grid.queries} queries of {grid.terms} terms from first halves of texts, over the second halves. "
        "Only words of the space are asked for, since others are not privatized."
    )
    yield (
        f"A variant has {grid.known_item_depth} results there, not {grid.depth}: the documents are so few that the "
        "pools would be all of them, with random words too. The rows 'random words' are the floor."
    )


STUDY = Pypantera()
