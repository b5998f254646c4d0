"""The study of collocations (Meisenbacher, Chevli, Matthes 2024): strategies S1 to S4 at equal budget of a document."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from corpusveil.budget import Budget
from corpusveil.collocations.artifact import read_artifact
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.errors import SettingError
from corpusveil.mechanisms import Mechanism
from corpusveil.search.neighbors import neighbors
from corpusveil.text.policy import TextPolicy
from corpusveil_evaluate.attacks.attribute_inference import ATTACKERS, relative_gain
from corpusveil_evaluate.studies.cells import Cell, Results, cells_over, of_seeds
from corpusveil_evaluate.studies.claims import compare
from corpusveil_evaluate.studies.report import Account, Table
from corpusveil_evaluate.studies.study import Epsilon, Grid, GridMechanism, Study, claims_of
from corpusveil_evaluate.studies.study_data import ONE_LIST, Needs, StudyData, counted
from corpusveil_evaluate.studies.task_figures import mode_scores, original_scores, text_statistics
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts

Strategy = Literal["s1", "s2", "s3", "s4"]
STRATEGIES: Mapping[Strategy, Mapping[str, str]] = {
    "s1": {"per": "document", "tokenizer": "word", "allocation": "word-share"},
    "s2": {"per": "document", "tokenizer": "gst", "allocation": "word-share"},
    "s3": {"per": "document", "tokenizer": "gst", "allocation": "uniform"},
    "s4": {"per": "document", "tokenizer": "mst", "allocation": "uniform"},
}
"""The settings of each strategy."""
GIVEN = "given vectors"
CORPUS = "of the corpus"
NEAREST = 5
COMPARED = 200
"""The number of joined tokens, the neighbors of which are compared with random ones."""
MODES_OF_ATTACKERS = (*ATTACKERS.values(),)


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
    s1_stop_words: Literal["privatize", "keep"] = "privatize"
    """The paper says that S1 keeps them; its example texts have them replaced."""
    joined_scale: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The median distance of two words in the spaces of S2 to S4, if it is not ``scale``."""
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
        needed = grid.needs(tokenizers=tuple(tokenizer for tokenizer in ("word", "gst", "mst") if tokenizer in how))
        return dataclasses.replace(needed, joined_scale=grid.joined_scale)

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
                    made += of_seeds("task", where, axes, grid.seeds)
                    made += of_seeds("attack", attacks, axes, grid.seeds) if mechanism is grid.mechanism else []
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
        denoiser = data.denoiser(*self._settings(task, cell, grid, data)) if grid.read_first else None
        if denoiser is not None:
            read = task.with_texts(denoiser.readable(released.texts))
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
        options, budget = dict[str, Any](STRATEGIES[cell["strategy"]]), cell["epsilon"] * average
        how = options["tokenizer"]
        space = ONE_LIST if cell["space"] == GIVEN else f"corpus-{how}"
        mechanism = data.mechanism(cell["mechanism"], space, **cell["parameters"])
        policy = TextPolicy(tokenizer=how)
        if cell["strategy"] == "s1":
            policy = dataclasses.replace(policy, stop_words=grid.s1_stop_words)
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
        averages = [f"{name} {grid.average_words.get(name, 0):g}" for name in results.where("task").options("task")]
        notes = [
            f"Budget of a document: base times average words, {', '.join(averages)}.",
            f"S1: stop_words = {grid.s1_stop_words}. S3's lead depends on this, and on the median distances below.",
            "In pairs, only the first text is perturbed.",
            "A text's topic is a constructed label (clusters of averaged vectors), and so is relative gain.",
        ]
        tasks = ", ".join(results.where("task").options("task"))
        corpus = f"{counted(data)['words']:,} words of public text for about 500 GB"
        near, random, beyond = nearness(data) if {"s3", "s4"} & set(grid.strategies) else (0.0, 0.0, False)
        notes.append(
            f"Nearest tokens of joined ones have words of similarity {near:.3f}, random tokens {random:.3f}"
            f"{'' if beyond else ': not beyond chance, so nothing is told of S3 beside S1'}."
        )
        names = {
            "mechanism": grid.mechanism.name, "encoder": data.encoder.label, "given neighbors": beyond,
            "differs": f"{tasks} for CoLA, MRPC, RTE, SST-2; {data.model.name} for DeBERTa; {corpus}",
        }  # fmt: skip
        derived = Results([*results.records, *_gains(results)])
        return Account(tables, tuple(compare(claims_of(self), derived, grid.test_rows, names)), tuple(notes))


def _average(name: str, grid: CollocationGrid) -> float:
    """Return the average words of a data set's texts. Raises UserError if the grid has no such number."""
    if name not in grid.average_words:
        raise SettingError(
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


def nearness(data: StudyData) -> tuple[float, float, bool]:
    """Return how similar the words of a joined token are to those of its nearest tokens, and to those of random ones.

    Similarity is by the vectors of words alone, and last is whether it is beyond chance: two standard errors above.
    """
    how = "gst" if "corpus-gst" in data.prepared else "mst"
    space, words = data.space(f"corpus-{how}"), data.space("corpus-word")
    ids, unit = dict(zip(words.vocabulary.words, range(len(words)), strict=True)), words.vectors
    unit = unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-9)
    parts = [[ids[part] for part in word.split("_") if part in ids] for word in space.vocabulary.words]
    meant = np.stack([unit[some].sum(axis=0) for some in parts])
    meant /= np.maximum(np.linalg.norm(meant, axis=1, keepdims=True), 1e-9)
    joined = np.array([id for id, word in enumerate(space.vocabulary.words) if "_" in word and parts[id]], np.int64)
    rng = np.random.default_rng(0)
    if joined.size < 2:
        return 0.0, 0.0, False
    joined = np.sort(rng.permutation(joined)[:COMPARED])
    near = neighbors(space.vectors, NEAREST)[joined]
    shares = [(meant[joined][:, None] * meant[some]).sum(axis=2).mean(axis=1)
              for some in (near, rng.integers(len(space), size=near.shape))]  # fmt: skip
    gained = shares[0] - shares[1]
    error = float(gained.std(ddof=1)) / math.sqrt(joined.size)
    return float(shares[0].mean()), float(shares[1].mean()), float(gained.mean()) > 2 * error


def _of_tasks(results: Results, measure: str, title: str) -> Table:
    some = results.where("task")
    epsilons = sorted(some.options("epsilon"))
    rows = []
    for task in some.options("task"):
        known = results.where("baseline", task=task)
        whole = known.mean("perplexity" if measure == "perplexity" else "original-original:accuracy")
        floor = None if measure != "private-private:accuracy" else known.mean("original-original:floor")
        for mechanism, strategy, space, of in some.where(task=task).each("mechanism", "strategy", "space"):
            ends = () if measure == "cs" else (whole, floor)[: 1 if measure == "perplexity" else 2]
            rows.append((task, mechanism, _label(strategy, space), *of.over(measure, epsilons), *ends))
    last = () if measure == "cs" else ("original", "constant")[: 1 if measure == "perplexity" else 2]
    return Table(title, ("task", "mechanism", "strategy", *(f"base {epsilon:g}" for epsilon in epsilons), *last), rows)


def _of_attacks(results: Results) -> Table:
    """Return attackers and relative gain: utility and attribute of the same texts, macro F1, adaptive attacker."""
    some = results.where("attack")
    rows: list[tuple[Any, ...]] = []
    for task in some.options("task"):
        known = results.where("attack baseline", task=task)
        floors = [known.mean(f"{label} original-original:floor_macro_f1") for label in ("attribute", "topic")]
        for strategy, space, epsilon, of in some.where(task=task).each("strategy", "space", "epsilon"):
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


def _gains(results: Results) -> Iterator[dict[str, Any]]:
    """Yield the relative gain of each seed, as cells of the kind ``gain``."""
    for task, strategy, space, epsilon, seed, of in results.where("attack").each(
        "task", "strategy", "space", "epsilon", "seed"
    ):
        at = {"task": task, "strategy": strategy, "space": space, "epsilon": epsilon, "seed": seed}
        gained = _gain(of, results.where("attack baseline", task=task))[3]
        yield {"kind": "gain", "options": at, "result": {"gain": gained}}


def _gain(of: Results, known: Results) -> tuple[Any, ...]:
    static, adaptive = (of.figure(f"attribute {mode}:macro_f1") for mode in MODES_OF_ATTACKERS)
    useful = of.figure("topic private-private:macro_f1")
    gained = None if useful is None or adaptive is None else _gain_of(useful.mean, adaptive.mean, known)
    return static, adaptive, useful, gained


def _gain_of(useful: float | None, attack: float | None, known: Results) -> float | None:
    whole, known_attack = (known.mean(f"{label} original-original:macro_f1") for label in ("topic", "attribute"))
    if useful is None or attack is None or not whole or not known_attack:
        return None
    return relative_gain(useful, whole, attack, known_attack)


STUDY = Collocated()
