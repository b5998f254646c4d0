"""The study of 1-Diffractor (Meisenbacher, Chevli, Matthes 2024): lists compared with mechanisms on vectors."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from corpusveil.budget import Budget
from corpusveil.evaluation.statistics.word_statistics import word_statistics
from corpusveil.evaluation.utility.labelled_texts import LabelledTexts
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.transforms.profiles import find as profile
from corpusveil_studies import readings
from corpusveil_studies.cells import Cell, Results, cells_over
from corpusveil_studies.study import (
    READ,
    SLOW_LAWS,
    UNQUOTED,
    Account,
    Chart,
    Check,
    Epsilon,
    GridMechanism,
    ReadFirstGrid,
    Study,
    Table,
    all_epsilons,
)
from corpusveil_studies.study_data import ONE_LIST, Needs, StudyData, WordSpace, key_of
from corpusveil_studies.task_figures import drawn_words, mode_scores, original_scores, text_statistics

Lists = Literal["L0", "L1", "L2"]
OnLists = Literal["diffractor-geometric", "diffractor-exponential"]
SPACES = {
    "L0": WordSpace("L0", embeddings=0, lists=1),
    "L1": WordSpace("L1", embeddings=0, lists=2),
    "L2": WordSpace("L2", embeddings=1, lists=1),
}
"""Lists per embedding: one of each, two of each, one of the first."""
SECONDS_A_DAY = 86_400
_MADE = "00" * 32
PAPER_CS = {
    "diffractor-geometric": {0.1: 0.37, 0.5: 0.57, 1: 0.66, 3: 0.80, 5: 0.82, 10: 0.82},
    "diffractor-exponential": {0.1: 0.31, 0.5: 0.48, 1: 0.57, 3: 0.73, 5: 0.79, 10: 0.82},
    "cmp": {0.1: 0.08, 0.5: 0.08, 1: 0.08, 3: 0.09, 5: 0.10, 10: 0.15},
}
PAPER_FRIENDS = {0.1: 21.84, 0.5: 25.68, 1: 28.29, 3: 31.88, 5: 32.56, 10: 32.66}
PAPER_MIB = {"diffractor-geometric": 0.05, "cmp": 207, "vickrey-cmp": 170, "tem": 81}


class DiffractorGrid(ReadFirstGrid):
    """Keys of the grid in addition to those of every study."""

    similarity: tuple[str, ...] = ()
    """Tasks on whose texts similarity is measured."""
    attacks: tuple[str, ...] = ()
    bundled_attacks: tuple[str, ...] = ()
    epsilons: tuple[Epsilon, ...] = Field(min_length=1)
    lists: tuple[Lists, ...] = Field(min_length=1)
    on_lists: tuple[OnLists, ...] = Field(min_length=1)
    beside: tuple[GridMechanism, ...] = ()
    words: int = Field(ge=2)
    runs: int = Field(ge=2)
    speed_words: int = Field(ge=10)
    speed_repeats: int = Field(ge=1)

    @property
    def shown(self) -> list[float]:
        """All epsilons in tables, including those of single mechanisms."""
        return all_epsilons(self.epsilons, self.beside)


class Diffractor(Study):
    """Utility drops, similarity, plausible deniability, static attackers and efficiency."""

    name = "1-diffractor"
    paper = "1-Diffractor: Efficient and Utility-Preserving Text Obfuscation (Meisenbacher, Chevli, Matthes 2024)"
    grid = DiffractorGrid

    def needs(self, grid: DiffractorGrid) -> Needs:
        return grid.needs(*(SPACES[name] for name in grid.lists), language=bool(grid.read_first))

    def cells(self, grid: DiffractorGrid, data: StudyData) -> list[Cell]:
        tasks = data.names(grid.tasks, grid.bundled)
        attacks = data.names(grid.attacks, grid.bundled_attacks, needed=False)
        made = cells_over("baseline", task=[*tasks, *attacks], seed=range(grid.seeds))
        for one, space in self._mechanisms(grid):
            of = {"mechanism": one.name, "parameters": one.parameters, "space": space}
            epsilons = one.epsilons or grid.epsilons
            for epsilon in epsilons:
                at = {**of, "epsilon": epsilon}
                made.append(Cell("words", at))
                made += [
                    Cell("task", {"task": task, **at, "seed": seed}) for task in tasks for seed in range(grid.seeds)
                ]
                if space in ("L0", ONE_LIST):
                    made += _seeds("attack", attacks, at, grid.seeds)
            made.append(Cell("speed", {**of, "epsilon": 1.0}))
        return made

    def _mechanisms(self, grid: DiffractorGrid) -> Iterator[tuple[GridMechanism, str]]:
        for name in grid.on_lists:
            for lists in grid.lists:
                yield GridMechanism(name=name), lists
        for mechanism in grid.beside:
            yield mechanism, ONE_LIST

    def work(self, cell: Cell, grid: DiffractorGrid, data: StudyData) -> Mapping[str, Any]:
        if cell.kind == "baseline":
            return original_scores(data.task(cell["task"], grid.train_rows, grid.test_rows), data.model, cell["seed"])
        mechanism = data.mechanism(cell["mechanism"], cell["space"], **cell["parameters"])
        epsilon = cell["epsilon"]
        if cell.kind == "words":
            ids = drawn_words(len(mechanism.space), grid.words)
            statistics = word_statistics(
                mechanism, epsilon, ids, grid.runs, key_of(0), exact=mechanism.name not in SLOW_LAWS
            )
            return {
                "n_w": statistics.n_w / 100, "s_w": statistics.s_w * grid.runs / 100,
                "n_w_sampled": statistics.retention, "s_w_sampled": statistics.distinct,
            }  # fmt: skip
        if cell.kind == "speed":
            return speed(mechanism, epsilon, grid.speed_words, grid.speed_repeats)
        task = data.task(cell["task"], grid.train_rows, grid.test_rows)
        policy, budget = profile(self.name).policy(), Budget(epsilon)

        def private(texts: Any) -> list[str]:
            return data.private(texts, mechanism, budget, cell["seed"], policy, source=task.name)

        if cell.kind == "attack":  # trained on the original; the same test rows, perturbed
            _, test = task.train_and_test(cell["seed"])
            rows = test.tolist()
            released = private([task.texts[row] for row in rows])
            figures = _attacked(task, rows, released, data, cell["seed"])
            readable = data.readable(mechanism, budget, policy) if mechanism.name in grid.read_first else None
            if readable is not None:
                figures |= _attacked(task, rows, readable(released), data, cell["seed"], READ)
            return figures
        began = time.perf_counter()
        texts = private(task.texts)
        seconds = time.perf_counter() - began
        second = None if task.pairs is None else private(task.pairs)
        version = task.with_texts(texts, second)
        figures = mode_scores(task, version, data.model, cell["seed"], ("private-private",))
        figures["tokens_a_day"] = sum(len(text.split()) for text in task.texts) / seconds * SECONDS_A_DAY
        if data.bundled or task.name in grid.similarity:
            figures |= text_statistics(task.texts, version.texts, data.encoder)
        return figures

    def account(self, results: Results, grid: DiffractorGrid, data: StudyData) -> Account:
        tables = (
            _drops(results, grid),
            _words(results, grid),
            _similarity(results, grid),
            _attacks(results),
            _speeds(results),
        )
        return Account(tables, tuple(_checks(results, grid, data)), _charts(results, grid), tuple(_notes(grid, data)))


def _attacked(
    task: LabelledTexts, rows: list[int], found: list[str], data: StudyData, seed: int, prefix: str = ""
) -> dict[str, float]:
    """Return the scores of a classifier of the original texts on test rows with these texts."""
    texts = list(task.texts)
    for row, text in zip(rows, found, strict=True):
        texts[row] = text
    return mode_scores(task, task.with_texts(texts), data.model, seed, ("original-private",), prefix)


def _seeds(kind: str, tasks: list[str], at: Mapping[str, Any], seeds: int) -> list[Cell]:
    return [Cell(kind, {"task": task, **at, "seed": seed}) for task in tasks for seed in range(seeds)]


def speed(mechanism: Any, epsilon: float, words: int, repeats: int) -> dict[str, float]:
    """Measure time and memory of the perturbation of random words, without tables and lists made before."""
    import tracemalloc

    ids = np.random.default_rng(0).integers(len(mechanism.space), size=words).astype(np.int32)
    key = DrawKey.derive(key_of(0), _MADE)
    began = time.perf_counter()
    mechanism.privatize(ids, epsilon, Draws.of_tokens(key, words, document="warm"))
    first = time.perf_counter() - began
    took = []
    for number in range(repeats):
        draws = Draws.of_tokens(key, words, document=str(number))
        began = time.perf_counter()
        mechanism.privatize(ids, epsilon, draws)
        took.append(time.perf_counter() - began)
    draws = Draws.of_tokens(key, words, document="memory")
    tracemalloc.start()
    mechanism.privatize(ids, epsilon, draws)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    seconds = float(np.median(took))
    return {
        "seconds": seconds, "first": first, "tokens_a_day": words / seconds * SECONDS_A_DAY,
        "mib": peak / 2**20, "bytes_a_word": peak / words,
    }  # fmt: skip


def _labels(results: Results) -> list[tuple[str, str, str]]:
    """Return mechanisms, spaces, and their names in tables."""
    pairs = dict.fromkeys(
        (record["options"]["mechanism"], record["options"]["space"])
        for record in results.records
        if "mechanism" in record["options"]
    )
    return [(name, space, name if space == ONE_LIST else f"{name}, {space}") for name, space in pairs]


def _drops(results: Results, grid: DiffractorGrid) -> Table:
    rows = []
    tasks = results.where("task").options("task")
    for name, space, label in _labels(results):
        rows.append((label, *(drop(results, name, space, epsilon, tasks) for epsilon in grid.shown)))
    whole, floor = (
        100 * float(np.mean([results.where("baseline", task=task).mean(name) or 0.0 for task in tasks] or [0.0]))
        for name in ("original-original:accuracy", "original-original:floor")
    )
    notes = (
        (
            f"Tasks: {', '.join(tasks)}. Original {whole:.1f}, constant {floor:.1f}: at most {whole - floor:.1f} can "
            "be lost."
        ),
        "Trained and tested on private texts. STS-B is left out: its labels are numbers.",
    )
    title = "Utility drop: accuracy on original texts minus accuracy on private texts, in points, mean over tasks"
    return Table(title, ("mechanism", *(f"ε {epsilon:g}" for epsilon in grid.shown)), rows, notes)


def drop(results: Results, mechanism: str, space: str, epsilon: float, tasks: list[str]) -> float | None:
    """Return the mean loss over tasks, in points."""
    lost = []
    for task in tasks:
        whole = results.where("baseline", task=task).mean("original-original:accuracy")
        private = results.where("task", task=task, mechanism=mechanism, space=space, epsilon=epsilon)
        mean = private.mean("private-private:accuracy")
        if whole is None or mean is None:
            return None
        lost.append(100 * (whole - mean))
    return float(np.mean(lost)) if lost else None


def _words(results: Results, grid: DiffractorGrid) -> Table:
    rows = []
    for name, space, label in _labels(results):
        for measure, title in (("n_w", "N_w"), ("s_w", "S_w")):
            some = [
                results.where("words", mechanism=name, space=space, epsilon=epsilon).mean(measure)
                for epsilon in grid.shown
            ]
            rows.append((label, title, *some))
    note = f"{grid.words} random words, {grid.runs} runs; exact where there is a law, except for Gumbel."
    return Table(
        "Plausible deniability", ("mechanism", "", *(f"ε {epsilon:g}" for epsilon in grid.shown)), rows, (note,)
    )


def _similarity(results: Results, grid: DiffractorGrid) -> Table:
    rows = [
        (
            label,
            *(
                results.where("task", mechanism=name, space=space, epsilon=epsilon).figure("cs")
                for epsilon in grid.shown
            ),
        )
        for name, space, label in _labels(results)
    ]
    return Table("Similarity of meaning", ("mechanism", *(f"ε {epsilon:g}" for epsilon in grid.shown)), rows)


def _attacks(results: Results) -> Table:
    attacks = results.where("attack")
    epsilons = attacks.options("epsilon")
    rows: list[tuple[Any, ...]] = []
    for task in attacks.options("task"):
        known = results.where("baseline", task=task)
        of_original = (known.mean("original-original:accuracy"), known.mean("original-original:floor"))
        for name, space, label in _labels(attacks):
            some = attacks.where(task=task, mechanism=name, space=space)
            for prefix, title in (("", label), (READ, f"{label}, denoised first")):
                measure = f"{prefix}original-private:accuracy"
                right = [some.where(epsilon=epsilon).figure(measure) for epsilon in epsilons]
                if not prefix or any(right):
                    rows.append((task, title, *right, *of_original))
    columns = ("task", "mechanism", *(f"ε {epsilon:g}" for epsilon in epsilons), "original", "constant")
    return Table("Static attackers: accuracy, trained on original texts", columns, rows)


def _speeds(results: Results) -> Table:
    rows = []
    for name, space, label in _labels(results):
        speeds = results.where("speed", mechanism=name, space=space)
        mib, each, first = (speeds.mean(measure) for measure in ("mib", "bytes_a_word", "first"))
        days = [of.mean("tokens_a_day") for of in (speeds, results.where("task", mechanism=name, space=space))]
        shown = [None if day is None else f"{day:.3g}" for day in days]
        rows.append((label, *shown, mib, None if each is None else round(each), first))
    notes = (
        "Random words of the vocabulary: the median of repeats on one thread.",
        "Whole texts: time from text to text, mean of all cells; the texts include stop words and unknown words.",
        "Memory is measured by tracemalloc. It excludes what compiled code allocates, and the lists and vectors.",
    )
    columns = ("mechanism", "tokens a day", "of whole texts", "MiB for these words", "bytes a word", "first call, s")
    return Table("Efficiency", columns, rows, notes)


def _charts(results: Results, grid: DiffractorGrid) -> tuple[Chart, ...]:
    def lines(kind: str, measure: str) -> dict[str, list[tuple[float, float, float]]]:
        drawn = {}
        for name, space, label in _labels(results):
            some = [
                (e, results.where(kind, mechanism=name, space=space, epsilon=e).figure(measure)) for e in grid.shown
            ]
            drawn[label] = [(e, one.mean, one.deviation or 0.0) for e, one in some if one is not None]
        return drawn

    return (
        Chart("Accuracy, private to private", "accuracy", lines("task", "private-private:accuracy"), 1.0),
        Chart("Words that stay unchanged", "N_w", lines("words", "n_w"), 1.0),
    )


def _notes(grid: DiffractorGrid, data: StudyData) -> Iterator[str]:
    yield from profile("1-diffractor").lines()
    if grid.read_first:
        text = "the corpus" if data.sources.corpus else "the text that the dependencies ship"
        yield f"Denoised first: releases of {', '.join(grid.read_first)}, with a language model of {text}."


def _checks(results: Results, grid: DiffractorGrid, data: StudyData) -> Iterator[Check]:
    differs = f"{', '.join(results.where('task').options('task'))} for GLUE; {data.model.name} for BERT"
    space = next(name for name in ("L0", *grid.lists) if name in grid.lists)
    for name in grid.on_lists:
        shared = [epsilon for epsilon in grid.epsilons if epsilon in PAPER_CS[name]]
        some = [results.where("task", mechanism=name, space=space, epsilon=epsilon).mean("cs") for epsilon in shared]
        yield Check(
            f"{name}, {space}: similarity rises with epsilon {readings.side_by_side(shared, 1)}",
            readings.side_by_side(PAPER_CS[name][epsilon] for epsilon in shared),
            readings.side_by_side(some),
            readings.is_rising(some),
            f"{data.encoder.label} for all-MiniLM-L6-v2; {differs}",
        )
    low = min(grid.epsilons)
    two = (("diffractor-geometric", space), ("cmp", ONE_LIST))
    pair = [results.where("task", mechanism=name, space=of, epsilon=low).mean("cs") for name, of in two]
    at = low if low in PAPER_CS["cmp"] else min(PAPER_CS["cmp"])
    yield Check(
        f"At epsilon {low:g} 1-Diffractor, {space}, keeps more meaning than CMP",
        f"{readings.side_by_side(PAPER_CS[name][at] for name, _ in two)}{'' if at == low else f' at {at:g}'}",
        readings.side_by_side(pair),
        None if None in pair else pair[0] > pair[1],  # type: ignore[operator]
        f"equal epsilons are not equal guarantees, since the metrics differ; {differs}",
    )
    tasks, slack = results.where("task").options("task"), readings.largest_error(grid.test_rows)
    known = Results([record for task in tasks for record in results.where("baseline", task=task).records])
    ends = [drop(results, "diffractor-geometric", space, one, tasks) for one in (max(grid.epsilons), low)]
    yield Check(
        f"Utility drops less at epsilon {max(grid.epsilons):g} than at {low:g}",
        UNQUOTED, readings.side_by_side(ends, 1),
        readings.is_above(ends[1], ends[0], 100 * slack) if readings.learns(known, grid.test_rows) else None,
        differs,
    )  # fmt: skip
    attacks = results.where("attack", mechanism="diffractor-geometric")
    for task in attacks.options("task"):
        known = results.where("baseline", task=task)
        shared = [epsilon for epsilon in grid.epsilons if epsilon in PAPER_FRIENDS]
        some = [attacks.where(task=task, epsilon=epsilon).mean("original-private:accuracy") for epsilon in shared]
        yield Check(
            f"Static attack on {task}: weaker at small epsilon",
            f"Friends {readings.side_by_side(PAPER_FRIENDS[epsilon] for epsilon in shared)} (original 33.13)",
            readings.side_by_side(None if one is None else 100 * one for one in some),
            readings.is_above(some[-1], some[0], slack) if some and readings.learns(known, grid.test_rows) else None,
            f"{task} for the speakers of Friends; {data.model.name} for BERT",
        )
    geometric = results.where("speed", mechanism="diffractor-geometric", space=space).mean("mib")
    for beside in ("cmp", "vickrey-cmp", "tem"):
        other = results.where("speed", mechanism=beside).mean("mib")
        if geometric is not None and other is not None:
            yield Check(
                f"{grid.speed_words:,} words take less memory than with {beside}, in MiB",
                f"{PAPER_MIB['diffractor-geometric']} and {PAPER_MIB[beside]}, of 1,000",
                readings.side_by_side((geometric, other)), geometric < other,
                "implementations of our own: vectors are memory-mapped and not counted",
            )  # fmt: skip


STUDY = Diffractor()
