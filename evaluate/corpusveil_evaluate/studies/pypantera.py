"""The study of pyPANTERA (De Faveri, Faggioli, Ferro 2024): private text to classify, obfuscated queries to search."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from corpusveil.budget import Budget
from corpusveil.errors import DataError
from corpusveil.transforms.release.release import Release
from corpusveil_evaluate.studies.cells import Cell, Results, cells_over
from corpusveil_evaluate.studies.claims import compare
from corpusveil_evaluate.studies.profiles import PROFILES
from corpusveil_evaluate.studies.report import Account, Table
from corpusveil_evaluate.studies.retrieval.obfuscated_queries import (
    Variants,
    denoised,
    obfuscate,
    prepared,
    query_similarity,
    together,
)
from corpusveil_evaluate.studies.retrieval.obfuscated_search import (
    NAMES,
    RECALL_AT,
    score_obfuscated,
    score_ranking,
    search_obfuscated,
)
from corpusveil_evaluate.studies.search_collections import (
    JUDGED,
    SearchCollection,
    SearchName,
    Size,
    is_judged,
    prepare_index,
    search_collection,
)
from corpusveil_evaluate.studies.study import (
    READ,
    Epsilon,
    GridMechanism,
    ReadFirstGrid,
    Study,
    all_epsilons,
    claims_of,
)
from corpusveil_evaluate.studies.study_data import Needs, StudyData, key_of
from corpusveil_evaluate.studies.task_figures import named_scores, original_scores
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts
from corpusveil_evaluate.utility.text_classifiers import Predictor
from corpusveil_evaluate.utility.training_modes import score

TOGETHER = "together:"
"""The prefix of figures for all variants of a query, combined into one text."""
VOTED = "voted:accuracy"
APART = 0.1
"""The least lead of the plain query's nDCG@10 over random words for a meaningful search."""


class PypanteraGrid(ReadFirstGrid):
    """Keys of the grid in addition to those of every study."""

    epsilons: tuple[Epsilon, ...] = Field(min_length=1)
    """Of a word, in each variant."""
    mechanisms: tuple[GridMechanism, ...] = Field(min_length=1)
    searched: tuple[str, ...] = ()
    """Data sets whose texts are searched for known items, if no judged collection is given."""
    bundled_searched: tuple[str, ...] = ()
    searches: tuple[SearchName, ...] = Field(min_length=1)
    queries: int = Field(ge=1)
    """Queries of known-item search, each with this many"""
    terms: int = Field(ge=1)
    documents: int = Field(ge=10)
    """The most texts that are searched for known items."""
    variants: int = Field(ge=1)
    """Of each query, and of each text to classify."""
    depth: int = Field(ge=1)
    """Results of a variant in a judged collection,"""
    known_item_depth: int = Field(ge=1)
    """and among known items, which are so few that pools of 100 would contain all of them."""

    @property
    def shown(self) -> list[float]:
        """All epsilons in tables, including those of single mechanisms."""
        return all_epsilons(self.epsilons, self.mechanisms)

    @property
    def size(self) -> Size:
        return Size(self.queries, self.terms, self.documents)

    def depth_of(self, collection: str) -> int:
        return self.depth if collection == JUDGED else self.known_item_depth


class Pypantera(Study):
    """Classifiers of original text tested on private text, and search with several variants of a query."""

    name = "pypantera"
    paper = "pyPANTERA: A Python Package for Natural Language Obfuscation (De Faveri, Faggioli, Ferro 2024)"
    grid = PypanteraGrid
    no_use_for = ()

    def needs(self, grid: PypanteraGrid) -> Needs:
        return grid.needs(language=bool(grid.read_first))

    def cells(self, grid: PypanteraGrid, data: StudyData) -> list[Cell]:
        tasks = data.names(grid.tasks, grid.bundled)
        collections = _collections(grid, data)
        made = cells_over("baseline", task=tasks, seed=range(grid.seeds))
        made += cells_over("plain", collection=collections, seed=range(grid.seeds))
        for mechanism in grid.mechanisms:
            for epsilon in mechanism.epsilons or grid.epsilons:
                at = {"mechanism": mechanism.name, "parameters": mechanism.parameters, "epsilon": epsilon}
                for seed in range(grid.seeds):
                    made += [Cell("task", {"task": task, **at, "seed": seed}) for task in tasks]
                    made += [Cell("search", {"collection": name, **at, "seed": seed}) for name in collections]
        return made

    def prepare(self, grid: PypanteraGrid, data: StudyData) -> None:
        if is_judged(data) and any(search.startswith("bm25") for search in grid.searches):
            prepare_index(data)

    def work(self, cell: Cell, grid: PypanteraGrid, data: StudyData) -> Mapping[str, Any]:
        seed = cell["seed"]
        if cell.kind == "baseline":
            task = data.task(cell["task"], grid.train_rows, grid.test_rows)
            figures = classified(data, grid, task, [_tested(task, seed)], seed)
            return {
                **original_scores(task, data.model, seed),
                **{f"prepared:{name}": one for name, one in figures.items()},
            }
        if cell.kind == "plain":
            return plain(_searched(cell, grid, data), grid, data, cell["collection"], seed)
        mechanism = data.mechanism(cell["mechanism"], **cell["parameters"])
        budget, policy = Budget(cell["epsilon"]), PROFILES[self.name].policy()
        release = Release(mechanism, budget, policy, key=key_of(seed), accept_no_guarantee=True)
        if cell.kind == "task":
            task = data.task(cell["task"], grid.train_rows, grid.test_rows)
            drawn = obfuscate(_tested(task, seed), release, grid.variants, source=task.name)
            return classified(data, grid, task, list(zip(*drawn.texts, strict=True)), seed)
        of = _searched(cell, grid, data)
        variants = obfuscate(of.queries, release, grid.variants, source=cell["collection"])
        figures = found_with(of, variants, grid.depth_of(cell["collection"]))
        figures |= {**query_similarity(variants, data.encoder), "total_epsilon": variants.total}
        denoiser = None
        if cell["mechanism"] in grid.read_first:
            denoiser = data.denoiser(mechanism, budget, policy)
        if denoiser is None:
            return figures
        for kind, read in ((READ, denoised(variants, denoiser.readable)), (TOGETHER, together(variants, denoiser))):
            found = found_with(of, read, grid.depth_of(cell["collection"]))
            both = {**found, **query_similarity(read, data.encoder)}
            figures |= {f"{kind}{name}": value for name, value in both.items()}
        return figures

    def account(self, results: Results, grid: PypanteraGrid, data: StudyData) -> Account:
        claims, vectors = claims_of(self), bool(data.sources.vectors)
        of_tasks = {"differs": _of_tasks(grid, data), "given vectors": vectors}
        labelled = [claim for claim in claims if claim.per == "task"]
        tables = [_accuracies(results, grid, data)]
        checks = [*compare(labelled, results, grid.test_rows, of_tasks)]
        for collection, known in results.where("plain").each("collection"):
            tables += [_search(results, grid, collection, search) for search in grid.searches]
            if results.where("search", collection=collection).values(f"{READ}jaccard"):
                tables.append(_read(results, grid, collection))
            best = best_search(known, grid.searches)
            if best is not None:
                differs = _differs(data, collection, best)
                names = {"search": best, "differs": differs, "given vectors": vectors}
                searched = [claim for claim in claims if claim not in labelled]
                checks += compare(searched, results.where(collection=collection), grid.queries, names)
        return Account(tuple(tables), tuple(checks), tuple(_notes(grid, data)))


def _collections(grid: PypanteraGrid, data: StudyData) -> list[str]:
    return [JUDGED] if is_judged(data) else data.names(grid.searched, grid.bundled_searched, needed=False)


def _searched(cell: Cell, grid: PypanteraGrid, data: StudyData) -> SearchCollection:
    return search_collection(data, cell["collection"], grid.searches, grid.size)


def _tested(task: LabelledTexts, seed: int) -> list[str]:
    return [prepared(text) for text in task.take(task.train_and_test(seed)[1]).texts]


def classified(
    data: StudyData, grid: PypanteraGrid, task: LabelledTexts, versions: Sequence[Sequence[str]], seed: int
) -> dict[str, float]:
    """Return the scores of a classifier of original texts on versions of the test texts: their means, and a vote's."""
    if task.pairs is not None:
        raise DataError(
            f"{task.name}: this study classifies single texts, and these are pairs; take the task out of the grid."
        )
    train, test = task.train_and_test(seed)
    learnt_by = seed if data.model.seeded else 0
    predict = _trained(data, task.name, grid.train_rows, grid.test_rows, learnt_by)
    tested, labels = task.take(test), task.take(train).labels
    predicted = [predict(tested.with_texts(texts)) for texts in versions]
    scores = [named_scores(score(labelled, tested.labels, labels), "original-private:") for labelled in predicted]
    voted = [Counter(votes).most_common(1)[0][0] for votes in zip(*predicted, strict=True)]
    means = {name: float(np.mean([each[name] for each in scores])) for name in scores[0]}
    return means | {VOTED: score(voted, tested.labels, labels).accuracy}


@functools.lru_cache(maxsize=2)
def _trained(data: StudyData, name: str, train_rows: int, test_rows: int, seed: int) -> Predictor:
    """Train once per process: this study trains on original text only, so the classifier is the same in all cells."""
    task = data.task(name, train_rows, test_rows)
    train, _ = task.train_and_test(seed)
    return data.model.fit(task.take(train), seed)


def plain(of: SearchCollection, grid: PypanteraGrid, data: StudyData, collection: str, seed: int) -> dict[str, float]:
    """Return the results of the original queries, and as a floor those of random words of the space in their place."""
    depth = grid.depth_of(collection)
    same = Variants(of.queries, tuple((query,) for query in of.queries), 0.0)
    figures = found_with(of, same, depth)
    for name, (engine, _) in of.by.items():
        whole = score_ranking(engine.search(of.queries, RECALL_AT), of.judgements)
        figures[f"{name}:whole"] = whole["recall"]
    words, rng = data.space().vocabulary.words, np.random.default_rng(seed)

    def other(query: str) -> str:
        return " ".join(words[id] for id in rng.integers(len(words), size=len(query.split())).tolist())

    texts = tuple(tuple(other(query) for _ in range(grid.variants)) for query in of.queries)
    random = Variants(of.queries, texts, 0.0)
    of_random = {**found_with(of, random, depth), **query_similarity(random, data.encoder)}
    figures |= {f"random:{name}": value for name, value in of_random.items()}
    known = [word in data.space().vocabulary for query in of.queries for word in query.split()]
    return {
        **figures, "queries": len(of.queries),
        "documents": len(next(iter(of.by.values()))[0]), "known_words": float(np.mean(known)), "missing": of.missing,
    }  # fmt: skip


def found_with(of: SearchCollection, variants: Variants, depth: int) -> dict[str, float]:
    """Return the measures of every search with these variants."""
    figures: dict[str, float] = {}
    pool = max(depth, RECALL_AT)
    for name, (engine, client) in of.by.items():
        means = score_obfuscated(search_obfuscated(engine, variants, depth, client, pool), of.judgements)
        figures |= {f"{name}:{at}": value for at, value in means.items()}
    return figures


def _notes(grid: PypanteraGrid, data: StudyData) -> Iterator[str]:
    yield from PROFILES["pypantera"].lines()
    yield "Texts and queries are preprocessed before they are privatized, so terms with a digit are removed here, too."
    yield f"{_of_tasks(grid, data)}; the paper's Figure 3 is compared by its directions."
    yield (
        f"{grid.variants} variants of a query are {grid.variants} releases of it: at epsilon e a word, their "
        f"guarantee together is {grid.variants} e, the column r ε. The number of variants and of results "
        f"({grid.depth} each) are our choice."
    )
    if grid.read_first:
        text = "the corpus" if data.sources.corpus else "the text that the dependencies ship"
        yield (
            f"Denoised before the search: variants of {', '.join(grid.read_first)}, by a language model of {text}. "
            "Bundled passages come from that text, so the model has read the passages that are searched."
        )
    if set(_collections(grid, data)) <= {JUDGED}:
        return
    yield (
        "Known-item search replaces DL'19, whose passages and judgments were not given (collection, queries, "
        f"qrels): {grid.queries} queries of {grid.terms} terms from first halves of texts, over the second halves. "
        "Queries contain only words of the space, since other words are not privatized."
    )
    yield (
        f"There, a variant has {grid.known_item_depth} results, not {grid.depth}: with so few documents, the pools "
        "would contain all of them, even for random words. The rows 'random words' are the floor."
    )


def title_of(collection: str) -> str:
    """Return the name of a collection in tables: known-item search never has the name of a judged collection."""
    return "judged collection" if collection == JUDGED else f"known-item search in {collection}"


def _accuracies(results: Results, grid: PypanteraGrid, data: StudyData) -> Table:
    rows: list[tuple[Any, ...]] = []
    measures = {"original-private:accuracy": "", VOTED: f", vote of {grid.variants}"}
    for task in results.where("task").options("task"):
        for name, some in results.where("task", task=task).each("mechanism"):
            for measure, title in measures.items():
                means = [mean for _, mean, _ in some.line(measure)]
                whole = float(np.mean(means)) if len(means) == len(some.options("epsilon")) else None
                rows.append((task, f"{name}{title}", *some.over(measure, grid.shown), whole))
        known = results.where("baseline", task=task)
        empty = (None,) * (len(grid.shown) - 1)
        for title, at in (
            ("original text", "original-original:accuracy"),
            ("prepared, no noise", "prepared:original-private:accuracy"),
            ("most frequent label", "original-original:floor"),
        ):
            rows.append((task, title, None, *empty, known.mean(at)))
    columns = ("task", "mechanism", *(f"ε {epsilon:g}" for epsilon in grid.shown), "mean over ε")
    notes = (
        f"Trained on original text, tested on private text; nothing is trained on private text. {data.model.name}.",
        f"Means over {grid.variants} variants of a text, and the label that most of these get, at {grid.variants} ε.",
    )
    return Table("Classification: accuracy on private test texts", columns, rows, notes)


def _search(results: Results, grid: PypanteraGrid, collection: str, search: str) -> Table:
    known = results.where("plain", collection=collection)
    some = results.where("search", collection=collection)
    rows: list[tuple[Any, ...]] = [
        ("plain query", None, None, *(known.mean(f"{search}:{at}") for at in NAMES), 1.0, 1.0),
        ("random words", None, None, *(known.figure(f"random:{search}:{at}") for at in NAMES),
         known.mean("random:jaccard"), known.mean("random:cosine")),
    ]  # fmt: skip
    for name in some.options("mechanism"):
        for epsilon in grid.shown:
            at = some.where(mechanism=name, epsilon=epsilon)
            if not at.values("jaccard"):
                continue
            figures = [at.figure(f"{search}:{name}") for name in NAMES]
            rows.append((name, epsilon, at.mean("total_epsilon"), *figures, at.mean("jaccard"), at.mean("cosine")))
    columns = ("queries", "ε", "r ε", *NAMES.values(), "Jaccard", "cosine")
    first, _, client = search.partition("-")
    whole = known.mean(f"{search}:whole")
    sentence = (
        f"Searched by {first}, re-ranked by {client or first}; {known.mean('queries') or 0:.0f} queries, "
        f"{known.mean('documents') or 0:,.0f} documents, {grid.variants} variants, {grid.depth_of(collection)} "
        f"results of each. Of the queries' words {100 * (known.mean('known_words') or 0):.0f} % are in the space."
    )
    notes = [sentence, f"The plain query's recall@100 without a pool: {'-' if whole is None else f'{whole:.3f}'}."]
    if best_search(known, [search]) is None:
        notes.append("The plain query finds hardly more than random words, so no claim is judged by this search.")
    if missing := known.mean("missing"):
        notes.append(f"{missing:.0f} judged passages are not in the collection; they count as not found.")
    return Table(f"Obfuscated queries, {title_of(collection)}, {search}", columns, rows, tuple(notes))


def _read(results: Results, grid: PypanteraGrid, collection: str) -> Table:
    """Return what an engine learns and finds with the variants, and with its denoised versions of them."""
    some = results.where("search", collection=collection)
    measures = {"jaccard": "Jaccard", "cosine": "cosine"} | {f"{search}:ndcg": search for search in grid.searches}
    rows: list[tuple[Any, ...]] = []
    for name in some.options("mechanism"):
        for epsilon in grid.shown:
            at = some.where(mechanism=name, epsilon=epsilon)
            if at.values(f"{READ}jaccard"):
                pairs = (at.figure(f"{kind}{measure}") for measure in measures for kind in ("", READ, TOGETHER))
                rows.append((name, epsilon, at.mean("total_epsilon"), *pairs))
    titles = [title if measure in ("jaccard", "cosine") else f"nDCG@10, {title}" for measure, title in measures.items()]
    columns = ("queries", "ε", "r ε", *(f"{title}{kind}" for title in titles for kind in ("", ", read", ", together")))
    notes = (
        "Read: the engine denoises every variant with the published law and public text, and searches with the result.",
        "nDCG@10 is that of the client's ranking by the original query, so it depends on the documents in R.",
        (
            "Together: the engine merges the variants of a query into one text, by the product of their laws, and "
            "searches with it."
        ),
    )
    return Table(f"Read after denoising, {title_of(collection)}", columns, rows, notes)


def best_search(known: Results, searches: Sequence[str]) -> str | None:
    """Return the search whose plain query has the highest nDCG@10, None if none is well above random words."""
    apart = {}
    for search in searches:
        plain, floor = known.mean(f"{search}:ndcg"), known.mean(f"random:{search}:ndcg")
        if plain is not None and floor is not None and plain - floor >= APART:
            apart[search] = plain
    return max(apart, key=lambda one: apart[one]) if apart else None


def _of_tasks(grid: PypanteraGrid, data: StudyData) -> str:
    return f"{', '.join(data.names(grid.tasks, grid.bundled))} for the tweets; {data.model.name} for Twitter-roBERTa"


def _differs(data: StudyData, collection: str, search: str) -> str:
    texts = "your files for DL'19 on MS MARCO" if collection == JUDGED else f"{title_of(collection)} for DL'19"
    vectors = "given vectors" if data.sources.vectors else "word2vec of public text"
    engine = f"{data.encoder.label} for Contriever" if search == "dense" else f"{search} for Contriever"
    meant = f"{data.encoder.label} for MiniLM in the cosine"
    return f"{texts}; {engine}; {meant}; {vectors} for GloVe: the effect of an epsilon depends on their scale"


STUDY = Pypantera()
