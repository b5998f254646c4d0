"""Tables, charts and checks of the study of pyPANTERA."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corpusveil_studies import readings
from corpusveil_studies.cells import Results
from corpusveil_studies.retrieval.ranking_scores import NAMES
from corpusveil_studies.search_collections import JUDGED
from corpusveil_studies.study import READ, Account, Chart, Check, Table
from corpusveil_studies.study_data import StudyData

TOGETHER = "together:"
"""The prefix of figures for all variants of a query, combined into one text."""
MEASURES = ("recall of R", "nDCG@10", "Jaccard", "cosine")
PAPER: dict[str, dict[float, tuple[float, float, float, float | None]]] = {
    "cmp": {1: (0, 0, 0, 0.025), 10: (0.028, 0.052, 0.119, 0.225), 15: (0.292, 0.544, 0.460, 0.628),
            50: (0.444, 0.564, 0.935, 0.902)},
    "custext": {1: (0.053, 0.143, 0.089, 0.357), 5: (0.245, 0.439, 0.374, 0.627), 10: (0.430, 0.576, 0.816, 0.881)},
    "santext": {1: (0, 0, 0, None), 5: (0.444, 0.564, 0.935, 0.902)},
}  # fmt: skip
"""Recall, nDCG@10, Jaccard, cosine by epsilon. Of SanText's 0 at epsilon 1 the cosine is not stated."""
PLAIN = (0.498, 0.636)
"""Recall and nDCG@10 of the original queries."""
NEAR = 0.8
"""The share of the plain query's nDCG@10 that counts as nearly as good; .564 of .636 is .89."""
SLACK = 0.02
"""The least rise of recall and nDCG: a few dozen known items cannot show smaller differences."""
FLOOR_SLACK = 0.05
APART = 0.1
"""The least lead of the plain query's nDCG@10 over random words for a meaningful search."""
SAME = 0.95
"""The least Jaccard index at which variants count as the original query."""


def account_of(results: Results, grid: Any, data: StudyData, notes: Sequence[str]) -> Account:
    """Return the report of the study."""
    tables = [_accuracies(results, grid, data)]
    for collection in results.where("plain").options("collection"):
        tables += [_search(results, grid, collection, search) for search in grid.searches]
        if results.where("search", collection=collection).values(f"{READ}jaccard"):
            tables.append(_read(results, grid, collection))
    return Account(tuple(tables), tuple(_checks(results, grid, data)), tuple(_charts(results, grid)), tuple(notes))


def title_of(collection: str) -> str:
    """Return the name of a collection in tables: known-item search never has the name of a judged collection."""
    return "judged collection" if collection == JUDGED else f"known-item search in {collection}"


def _accuracies(results: Results, grid: Any, data: StudyData) -> Table:
    rows: list[tuple[Any, ...]] = []
    measure = "original-private:accuracy"
    for task in results.where("task").options("task"):
        of = results.where("task", task=task)
        for name in of.options("mechanism"):
            some = of.where(mechanism=name)
            means = [some.where(epsilon=epsilon).mean(measure) for epsilon in some.options("epsilon")]
            defined = [mean for mean in means if mean is not None]
            each = [some.where(epsilon=epsilon).figure(measure) for epsilon in grid.shown]
            rows.append((task, name, *each, float(np.mean(defined)) if len(defined) == len(means) else None))
        known = results.where("baseline", task=task)
        empty = (None,) * (len(grid.shown) - 1)
        for title, at in (
            ("original text", "original-original:accuracy"),
            ("prepared, no noise", "prepared:original-private:accuracy"),
            ("most frequent label", "original-original:floor"),
        ):
            rows.append((task, title, None, *empty, known.mean(at)))
    columns = ("task", "mechanism", *(f"ε {epsilon:g}" for epsilon in grid.shown), "mean over ε")
    note = f"Trained on original text, tested on private text; nothing is trained on private text. {data.model.name}."
    return Table("Classification: accuracy on private test texts", columns, rows, (note,))


def _search(results: Results, grid: Any, collection: str, search: str) -> Table:
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
    if missing := known.mean("missing"):
        notes.append(f"{missing:.0f} judged passages are not in the collection; they count as not found.")
    return Table(f"Obfuscated queries, {title_of(collection)}, {search}", columns, rows, tuple(notes))


def _read(results: Results, grid: Any, collection: str) -> Table:
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


def _charts(results: Results, grid: Any) -> Iterator[Chart]:
    def lines(of: Results, measure: str) -> dict[str, list[tuple[float, float, float]]]:
        drawn: dict[str, list[tuple[float, float, float]]] = {}
        for name in of.options("mechanism"):
            for epsilon in grid.shown:
                figure = of.where(mechanism=name, epsilon=epsilon).figure(measure)
                if figure is not None:
                    drawn.setdefault(name, []).append((epsilon, figure.mean, figure.deviation or 0.0))
        return drawn

    for task in results.where("task").options("task"):
        of = results.where("task", task=task)
        yield Chart(f"{task}: accuracy on private texts", "accuracy", lines(of, "original-private:accuracy"), 1.0)
    for collection in results.where("search").options("collection"):
        of = results.where("search", collection=collection)
        for search in grid.searches:
            title = f"{title_of(collection)}, {search}"
            yield Chart(f"nDCG@10, {title}", "nDCG@10", lines(of, f"{search}:ndcg"), 1.0)


def _checks(results: Results, grid: Any, data: StudyData) -> Iterator[Check]:
    for collection in results.where("search").options("collection"):
        of, known = results.where("search", collection=collection), results.where("plain", collection=collection)
        search = best_search(known, grid.searches)
        if search is None:
            continue
        names = (f"{search}:pool_recall", f"{search}:ndcg", "jaccard", "cosine")
        differs = _differs(data, collection, search)
        yield from _of_each(of, known, grid, names, differs)
        yield from _between(of, known, grid, names, differs)


def best_search(known: Results, searches: Sequence[str]) -> str | None:
    """Return the search whose plain query has the highest nDCG@10, None if none is well above random words."""
    apart = {}
    for search in searches:
        plain, floor = known.mean(f"{search}:ndcg"), known.mean(f"random:{search}:ndcg")
        if plain is not None and floor is not None and plain - floor >= APART:
            apart[search] = plain
    return max(apart, key=lambda one: apart[one]) if apart else None


def _differs(data: StudyData, collection: str, search: str) -> str:
    texts = "your files for DL'19 on MS MARCO" if collection == JUDGED else f"{title_of(collection)} for DL'19"
    vectors = "given vectors" if data.sources.vectors else "word2vec of public text"
    engine = f"{data.encoder.label} for Contriever" if search == "dense" else f"{search} for Contriever"
    meant = f"{data.encoder.label} for MiniLM in the cosine"
    return f"{texts}; {engine}; {meant}; {vectors} for GloVe: the effect of an epsilon depends on their scale"


def _of_each(of: Results, known: Results, grid: Any, names: Sequence[str], differs: str) -> Iterator[Check]:
    """Yield for each mechanism with reference values whether the four figures rise between their epsilons."""
    for name, quoted in PAPER.items():
        shared = [epsilon for epsilon in grid.epsilons if epsilon in quoted]
        if len(shared) < 2 or not of.where(mechanism=name).values("jaccard"):
            continue
        means = [[of.where(mechanism=name, epsilon=epsilon).mean(at) for at in names] for epsilon in shared]
        slacks = (SLACK, SLACK, 0.0, 0.0)
        rises = [
            readings.is_rising(column, slack) for column, slack in zip(zip(*means, strict=True), slacks, strict=True)
        ]
        yield Check(
            f"{name}: {', '.join(MEASURES)} rise with epsilon {readings.side_by_side(shared, 0)}",
            "; ".join(readings.side_by_side(quoted[epsilon], 3) for epsilon in shared),
            "; ".join(readings.side_by_side(row, 3) for row in means),
            None if None in rises else all(rises), differs,
        )  # fmt: skip
    floors = [known.mean(f"random:{at}") for at in names[:2]]
    for name in ("cmp", "santext", "tem"):
        found_low = [of.where(mechanism=name, epsilon=1).mean(at) for at in names[:2]]
        if 1 in grid.epsilons and None not in (*found_low, *floors):
            pairs = list(zip(found_low, floors, strict=True))
            yield Check(
                f"{name} at epsilon 1 finds as much as random words: recall of R, nDCG@10", "0.000 0.000",
                f"{readings.side_by_side(found_low, 3)} (random {readings.side_by_side(floors, 3)})",
                all(one - floor <= FLOOR_SLACK for one, floor in pairs if one is not None and floor is not None),
                differs,
            )  # fmt: skip


def _between(of: Results, known: Results, grid: Any, names: Sequence[str], differs: str) -> Iterator[Check]:
    """Yield the paper's claims on mechanisms compared with each other and with the original query."""
    plain = known.mean(names[1])
    top = max(grid.epsilons)
    best = of.where(mechanism="cmp", epsilon=top).mean(names[1])
    if plain and best is not None and top >= 50:
        yield Check(
            f"cmp at epsilon {top:g} has at least {NEAR:g} of the plain query's nDCG@10",
            f"{PAPER['cmp'][50][1]:.3f} of {PLAIN[1]:.3f}", f"{best:.3f} of {plain:.3f}", best >= NEAR * plain, differs,
        )  # fmt: skip
    pair = [of.where(mechanism=name, epsilon=1).mean(names[0]) for name in ("custext", "cmp")]
    if pair[0] is not None and pair[1] is not None:
        yield Check(
            "At epsilon 1 custext finds more than cmp: recall of R",
            f"{PAPER['custext'][1][0]:.3f} {PAPER['cmp'][1][0]:.3f}", readings.side_by_side(pair, 3), pair[0] > pair[1],
            f"equal epsilons are not equal guarantees, since the metrics differ; {differs}",
        )  # fmt: skip
    from_5 = [epsilon for epsilon in grid.epsilons if epsilon >= 5]
    means = [of.where(mechanism="tem", epsilon=epsilon).mean("jaccard") for epsilon in from_5]
    defined = [one for one in means if one is not None]
    if defined and len(defined) == len(from_5):
        yield Check(
            f"tem leaves the original query from epsilon 5 on: Jaccard at {readings.side_by_side(from_5, 1)}",
            "1 from 5 on", readings.side_by_side(means, 3), min(defined) >= SAME, differs,
        )  # fmt: skip
