"""The study of collocations (Meisenbacher, Chevli, Matthes 2024): strategies S1 to S4 at equal budget of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from corpusveil.budget import Budget
from corpusveil.collocations.artifact import read_artifact
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.errors import UnsetError
from corpusveil.evaluation.attacks.relative_gain import relative_gain
from corpusveil.evaluation.utility.labelled_texts import LabelledTexts
from corpusveil.evaluation.utility.training_modes import Mode
from corpusveil.mechanisms import Mechanism
from corpusveil.spaces.tour_improvement import neighbors
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.strategies import STRATEGIES, follow
from corpusveil_studies import readings
from corpusveil_studies.cells import Cell, Results, cells_over
from corpusveil_studies.study import UNQUOTED, Account, Chart, Check, Epsilon, Grid, GridMechanism, Study, Table
from corpusveil_studies.study_data import ONE_LIST, Needs, StudyData, counted
from corpusveil_studies.task_figures import mode_scores, original_scores, text_statistics

Strategy = Literal["s1", "s2", "s3", "s4"]
GIVEN = "given vectors"
CORPUS = "of the corpus"
NEAREST = 5
MODES_OF_ATTACKERS: tuple[Mode, ...] = ("original-private", "private-private")
"""Static and adaptive."""
PAPER_CS = {
    "s1": {0.1: 0.13, 0.5: 0.13, 1: 0.13, 5: 0.14, 10: 0.18, 15: 0.25, 25: 0.38, 50: 0.63},
    "s3": {0.1: 0.16, 0.5: 0.17, 1: 0.20, 5: 0.51, 10: 0.74, 15: 0.85, 25: 0.92, 50: 0.96},
    "s4": {0.1: 0.17, 0.5: 0.15, 1: 0.19, 5: 0.33, 10: 0.45, 15: 0.52, 25: 0.60, 50: 0.68},
}
PAPER_F1 = {
    "s1": {0.1: 58.75, 0.5: 56.03, 1: 53.94, 5: 56.80, 10: 56.73, 15: 58.87, 25: 67.78, 50: 76.11},
    "s3": {0.1: 50.92, 0.5: 52.22, 1: 56.15, 5: 71.18, 10: 84.56, 15: 87.69, 25: 92.51, 50: 92.78},
    "s4": {0.1: 51.61, 0.5: 50.92, 1: 52.68, 5: 57.11, 10: 71.25, 15: 65.90, 25: 80.2, 50: 80.24},
}
"""On SST-2."""
FROM = 10.0
"""The base from which collocations give more fluent text than words."""


class CollocationGrid(Grid):
    """Keys of the grid in addition to those of every study."""

    attacks: tuple[str, ...] = ()
    bundled_attacks: tuple[str, ...] = ()
    epsilons: tuple[Epsilon, ...] = Field(min_length=1)
    strategies: tuple[Strategy, ...] = Field(min_length=1)
    mechanism: GridMechanism
    also: tuple[GridMechanism, ...] = ()
    also_on: tuple[str, ...] = ()
    average_words: dict[str, Epsilon]
    neighbors_shown: int = Field(default=0, ge=0)
    read_first: bool = False
    """Whether attackers also denoise first: a law for every number of units, minutes per cell except on lists."""

    @field_validator("also")
    @classmethod
    def _another(cls, also: tuple[GridMechanism, ...], info: ValidationInfo) -> tuple[GridMechanism, ...]:
        own = info.data.get("mechanism")
        if own is not None and own.name in [mechanism.name for mechanism in also]:
            raise ValueError(f"{own.name} is already the mechanism of the whole grid; do not name it here")
        return also


class Collocated(Study):
    """From a raw corpus to tables: counts, collocations, vectors, spaces, then a comparison of strategies."""

    name = "collocations"
    paper = "A Collocation-based Method for Addressing Challenges in Word-level Metric DP (Meisenbacher et al. 2024)"
    grid = CollocationGrid

    def needs(self, grid: CollocationGrid) -> Needs:
        how = {STRATEGIES[name]["tokenizer"] for name in grid.strategies} | {"word"}
        return grid.needs(tokenizers=tuple(tokenizer for tokenizer in ("word", "gst", "mst") if tokenizer in how))

    def cells(self, grid: CollocationGrid, data: StudyData) -> list[Cell]:
        tasks = data.names(grid.tasks, grid.bundled)
        attacks = data.names(grid.attacks, grid.bundled_attacks, needed=False)
        for name in (*tasks, *attacks):
            _average(name, grid)
        seeds = range(grid.seeds)
        made = cells_over("baseline", task=tasks, seed=seeds)
        made += cells_over("attack baseline", task=attacks, seed=seeds)
        for mechanism in (grid.mechanism, *grid.also):
            of = {"mechanism": mechanism.name, "parameters": mechanism.parameters}
            epsilons = mechanism.epsilons or grid.epsilons
            where = tasks if mechanism is grid.mechanism else [name for name in tasks if name in grid.also_on]
            for strategy, space in self._strategies(grid, data):
                at = {"strategy": strategy, "space": space}
                for epsilon in epsilons:
                    axes = {**of, **at, "epsilon": epsilon}
                    made += [Cell("task", {"task": task, **axes, "seed": seed}) for task in where for seed in seeds]
                    if mechanism is grid.mechanism:
                        made += [
                            Cell("attack", {"task": task, **axes, "seed": seed}) for task in attacks for seed in seeds
                        ]
        return made

    def _strategies(self, grid: CollocationGrid, data: StudyData) -> Iterator[tuple[str, str]]:
        for name in grid.strategies:
            if name == "s1" and data.sources.vectors:
                yield name, GIVEN
            yield name, CORPUS

    def work(self, cell: Cell, grid: CollocationGrid, data: StudyData) -> Mapping[str, Any]:
        task = data.task(cell["task"], grid.train_rows, grid.test_rows)
        seed = cell["seed"]
        if cell.kind == "baseline":
            return {**original_scores(task, data.model, seed), "perplexity": data.language.perplexity(task.texts).value}
        if cell.kind == "attack baseline":
            useful = original_scores(data.with_topics(task), data.model, seed, "topic ")
            return {**original_scores(task, data.model, seed, "attribute "), **useful}
        released = self._released(task, cell, grid, data)
        if cell.kind == "task":
            scores = mode_scores(task, released, data.model, seed, ("private-private",))
            return {**scores, **text_statistics(task.texts, released.texts, data.encoder, data.language)}
        topic = data.with_topics(task)
        useful = mode_scores(topic, topic.with_texts(released.texts), data.model, seed, ("private-private",), "topic ")
        found = mode_scores(task, released, data.model, seed, MODES_OF_ATTACKERS, "attribute ")
        readable = data.readable(*self._settings(task, cell, grid, data)) if grid.read_first else None
        if readable is not None:
            read = task.with_texts(readable(released.texts))
            found |= mode_scores(task, read, data.model, seed, MODES_OF_ATTACKERS, "attribute read ")
        return {**found, **useful}

    def _released(self, task: LabelledTexts, cell: Cell, grid: CollocationGrid, data: StudyData) -> LabelledTexts:
        """Return private versions of the (first) texts, by strategy, at base times average words a document."""
        mechanism, budget, policy, joined = self._settings(task, cell, grid, data)
        return task.with_texts(
            data.private(task.texts, mechanism, budget, cell["seed"], policy, joined, source=task.name)
        )

    def _settings(
        self, task: LabelledTexts, cell: Cell, grid: CollocationGrid, data: StudyData
    ) -> tuple[Mechanism, Budget, TextPolicy, Collocations | None]:
        average = _average(task.name, grid)
        options, budget = follow(cell["strategy"], {}, (), cell["epsilon"], average)
        how = options["tokenizer"]
        space = ONE_LIST if cell["space"] == GIVEN else f"corpus-{how}"
        mechanism = data.mechanism(cell["mechanism"], space, **cell["parameters"])
        policy = TextPolicy(tokenizer=how, **{name: options[name] for name in ("stop_words",) if name in options})
        joined = None if how == "word" else data.collocations()
        return mechanism, Budget(budget, options["per"], options["allocation"]), policy, joined

    def account(self, results: Results, grid: CollocationGrid, data: StudyData) -> Account:
        tables = (
            _corpus(data),
            *_neighbors(grid, data),
            _of_tasks(results, "private-private:accuracy", "Micro F1, private to private"),
            _of_tasks(results, "cs", "Similarity of meaning"),
            _of_tasks(results, "perplexity", "Perplexity of all texts"),
            _of_attacks(results),
        )
        charts = (
            _chart(results, "cs", "Similarity of meaning"),
            _chart(results, "private-private:accuracy", "Micro F1"),
        )
        averages = [f"{name} {grid.average_words.get(name, 0):g}" for name in results.where("task").options("task")]
        notes = [
            f"Budget of a document: base times average words, {', '.join(averages)}.",
            "In pairs, only the first text is perturbed.",
            "A text's topic is a constructed label (clusters of averaged vectors), and so is relative gain.",
        ]
        return Account(tables, tuple(_checks(results, grid, data)), charts, tuple(notes))


def _average(name: str, grid: CollocationGrid) -> float:
    """Return the average words of a data set's texts. Raises UserError if the grid has no such number."""
    if name not in grid.average_words:
        raise UnsetError(
            f"average_words.{name}: the grid has no such number; add it to the configuration of the study, from public "
            "knowledge."
        )
    return grid.average_words[name]


def _label(strategy: str, space: str) -> str:
    return f"{strategy.upper()}, {space}" if strategy == "s1" else strategy.upper()


def _corpus(data: StudyData) -> Table:
    totals = counted(data)
    number = read_artifact(data.address("collocations"), "collocations")["collocations"]
    rows = [(totals["documents"], totals["sentences"], totals["words"], number.get("2", 0), number.get("3", 0))]
    note = "The paper: 2.5 million C4 texts, 3.02 million bigrams, 1.31 million trigrams; it states no least count."
    return Table("The public corpus", ("documents", "sentences", "words", "bigrams", "trigrams"), rows, (note,))


def _neighbors(grid: CollocationGrid, data: StudyData) -> Iterator[Table]:
    """Yield random collocations with the tokens nearest to them, as the paper shows them."""
    for how in ("gst", "mst"):
        if not grid.neighbors_shown or f"corpus-{how}" not in data.prepared:
            continue
        space = data.space(f"corpus-{how}")
        joined = [id for id in range(len(space)) if "_" in space.word(id)]
        some = np.sort(np.random.default_rng(0).permutation(joined)[: grid.neighbors_shown]).tolist()
        near = neighbors(space.vectors, NEAREST)
        rows = [(space.word(id), ", ".join(space.word(int(other)) for other in near[id])) for id in some]
        yield Table(f"Random collocations and their nearest tokens, {how.upper()}", ("token", "nearest"), rows)


def _ways(results: Results) -> list[tuple[str, str, str]]:
    """Return mechanism, strategy and space of all cells."""
    keys = ("mechanism", "strategy", "space")
    options = [record["options"] for record in results.records if "strategy" in record["options"]]
    return list(dict.fromkeys(tuple(option[key] for key in keys) for option in options))


def _of_tasks(results: Results, measure: str, title: str) -> Table:
    some = results.where("task")
    epsilons = sorted(some.options("epsilon"))
    rows = []
    for task in some.options("task"):
        known = results.where("baseline", task=task)
        whole = known.mean("perplexity" if measure == "perplexity" else "original-original:accuracy")
        floor = None if measure != "private-private:accuracy" else known.mean("original-original:floor")
        for mechanism, strategy, space in _ways(some):
            of = some.where(task=task, mechanism=mechanism, strategy=strategy, space=space)
            if len(of):
                figures = [of.where(epsilon=epsilon).figure(measure) for epsilon in epsilons]
                ends = () if measure == "cs" else (whole, floor)[: 1 if measure == "perplexity" else 2]
                rows.append((task, mechanism, _label(strategy, space), *figures, *ends))
    last = () if measure == "cs" else ("original", "constant")[: 1 if measure == "perplexity" else 2]
    return Table(title, ("task", "mechanism", "strategy", *(f"base {epsilon:g}" for epsilon in epsilons), *last), rows)


def _of_attacks(results: Results) -> Table:
    """Return attackers and relative gain: utility and attribute of the same texts, macro F1, adaptive attacker."""
    some = results.where("attack")
    rows: list[tuple[Any, ...]] = []
    for task in some.options("task"):
        known = results.where("attack baseline", task=task)
        floors = [known.mean(f"{label} original-original:floor_macro_f1") for label in ("attribute", "topic")]
        for _, strategy, space in _ways(some):
            for epsilon in sorted(some.options("epsilon")):
                of = some.where(task=task, strategy=strategy, space=space, epsilon=epsilon)
                rows.append((task, _label(strategy, space), epsilon, *_gain(of, known), *_best(of, floors[0])))
        whole = known.mean("attribute original-original:macro_f1")
        useful = known.mean("topic original-original:macro_f1")
        gained = _gain_of(floors[1], floors[0], known)
        rows.append((task, "original", None, whole, whole, useful, 0.0, None, None, whole))
        rows.append((task, "constant", None, floors[0], floors[0], floors[1], gained, None, None, floors[0]))
    columns = (
        "task", "strategy", "base", "static attacker", "adaptive attacker", "utility (topic)", "relative gain",
        "static, denoised first", "adaptive, denoised first", "best attacker",
    )  # fmt: skip
    notes = (
        (
            "Relative gain is that of the adaptive attacker. It is a success only above the relative gain of constant "
            "classifiers."
        ),
        "Denoised first: with the published law and the language model of the corpus.",
        "A dash: the share of a word under this strategy depends on something that a reader does not see.",
        "Best attacker: the best of these four and the constant one, by the means over seeds.",
    )
    return Table("Attackers and utility together, macro F1", columns, rows, notes)


def _best(of: Results, floor: float | None) -> tuple[Any, ...]:
    """Return the attackers who denoise first, and the best of all attackers, never below the constant one."""
    measures = [f"attribute {mode}:macro_f1" for mode in MODES_OF_ATTACKERS]
    first = [f"attribute read {mode}:macro_f1" for mode in MODES_OF_ATTACKERS]
    known = [mean for mean in (floor, *(of.mean(measure) for measure in measures + first)) if mean is not None]
    return (*(of.figure(measure) for measure in first), max(known, default=None))


def _gain(of: Results, known: Results) -> tuple[Any, ...]:
    static, adaptive = (of.figure(f"attribute {mode}:macro_f1") for mode in ("original-private", "private-private"))
    useful = of.figure("topic private-private:macro_f1")
    gained = None if useful is None or adaptive is None else _gain_of(useful.mean, adaptive.mean, known)
    return static, adaptive, useful, gained


def _gain_of(useful: float | None, attack: float | None, known: Results) -> float | None:
    whole, known_attack = (known.mean(f"{label} original-original:macro_f1") for label in ("topic", "attribute"))
    if useful is None or attack is None or not whole or not known_attack:
        return None
    return relative_gain(useful, whole, attack, known_attack)


def _chart(results: Results, measure: str, title: str) -> Chart:
    some = results.where("task")
    drawn = {}
    for task in some.options("task"):
        for mechanism, strategy, space in _ways(some):
            of = some.where(task=task, mechanism=mechanism, strategy=strategy, space=space)
            means = [(epsilon, of.where(epsilon=epsilon).figure(measure)) for epsilon in sorted(of.options("epsilon"))]
            points = [(epsilon, mean.mean, mean.deviation or 0.0) for epsilon, mean in means if mean is not None]
            drawn[f"{task}, {mechanism}, {_label(strategy, space)}"] = points
    return Chart(title, title.lower(), drawn, 1.0, "base of epsilon")


def _all_above(pairs: Sequence[tuple[float | None, float | None]]) -> bool | None:
    """Say whether the first of each pair is above the second; None if a figure is missing."""
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    return all(one > other for one, other in known) if len(known) == len(pairs) else None


def _checks(results: Results, grid: CollocationGrid, data: StudyData) -> Iterator[Check]:
    some = results.where("task", mechanism=grid.mechanism.name)
    tasks = some.options("task")
    corpus = f"{counted(data)['words']:,} words of public text for about 500 GB"
    differs = f"{', '.join(tasks)} for CoLA, MRPC, RTE, SST-2; {data.model.name} for DeBERTa; {corpus}"
    encoder = f"{data.encoder.label} for all-MiniLM-L6-v2; {differs}"

    def mean(strategy: str, epsilon: float, measure: str) -> float | None:
        return some.where(strategy=strategy, epsilon=epsilon, space=CORPUS).mean(measure)

    for strategy, quoted in PAPER_CS.items():
        shared = [epsilon for epsilon in grid.epsilons if epsilon in quoted]
        if strategy in grid.strategies and len(shared) > 1:
            means = [mean(strategy, epsilon, "cs") for epsilon in shared]
            reference, claim = (
                readings.side_by_side(quoted[epsilon] for epsilon in shared),
                f"{strategy.upper()}: similarity rises with the budget",
            )
            yield Check(
                f"{claim} ({readings.side_by_side(shared, 1)})",
                reference,
                readings.side_by_side(means),
                readings.is_rising(means),
                encoder,
            )
    pairs = (("s3", "s1", "more meaning", "cs", PAPER_CS), ("s3", "s4", "more meaning", "cs", PAPER_CS),
             ("s3", "s1", "a better F1", "private-private:accuracy", PAPER_F1))  # fmt: skip
    for better, worse, what, measure, paper in pairs:
        shared = [epsilon for epsilon in grid.epsilons if epsilon >= FROM / 2 and epsilon in paper[better]]
        if not {better, worse} <= set(grid.strategies) or not shared:
            continue
        pairs_seen = [(mean(better, epsilon, measure), mean(worse, epsilon, measure)) for epsilon in shared]
        taught = measure == "cs" or readings.learns(results.where("baseline"), grid.test_rows)
        same = _all_above(pairs_seen) if taught else None
        yield Check(
            f"{better.upper()} keeps {what} than {worse.upper()} from base {shared[0]:g} on",
            "; ".join(f"{paper[better][epsilon]:g} > {paper[worse][epsilon]:g}" for epsilon in shared),
            "; ".join(readings.side_by_side(pair, 3) for pair in pairs_seen), same,
            encoder if measure == "cs" else differs,
        )  # fmt: skip
    shared = [epsilon for epsilon in grid.epsilons if epsilon >= FROM]
    if {"s1", "s3"} <= set(grid.strategies) and shared:
        both = [(mean("s3", epsilon, "perplexity"), mean("s1", epsilon, "perplexity")) for epsilon in shared]
        yield Check(
            f"Perplexity: S3 below S1 from base {FROM:g} on", "yes",
            "; ".join(readings.side_by_side(pair, 0) for pair in both),
            _all_above([(words, joined) for joined, words in both]),
            f"interpolated Kneser-Ney of the corpus for GPT-2; {differs}",
        )  # fmt: skip
    attacks, slack = results.where("attack"), readings.largest_error(grid.test_rows)
    for task in attacks.options("task"):
        of = attacks.where(task=task)
        taught = readings.learns(results.where("attack baseline", task=task), grid.test_rows, "attribute ", "macro_f1")
        ends = [
            of.where(epsilon=epsilon).mean("attribute private-private:macro_f1") for epsilon in sorted(grid.epsilons)
        ]
        stands = f"{task} for Yelp authors and Trustpilot gender; {differs}"
        yield Check(
            f"{task}: the adaptive attacker grows with the budget",
            UNQUOTED,
            readings.side_by_side(ends),
            readings.is_above(ends[-1], ends[0], slack) if taught else None,
            stands,
        )
        known = [of.mean(f"attribute {mode}:macro_f1") for mode in ("original-private", "private-private")]
        claim = f"{task}: the adaptive attacker is stronger than the static one, mean over all"
        same = readings.is_above(known[1], known[0], slack) if taught else None
        yield Check(claim, UNQUOTED, readings.side_by_side(known[::-1]), same, stands)


STUDY = Collocated()
