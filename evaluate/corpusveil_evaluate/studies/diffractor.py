"""The study of 1-Diffractor (Meisenbacher, Chevli, Matthes 2024): lists compared with mechanisms on vectors."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from corpusveil.budget import Budget
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil_evaluate.readers.ngrams.word_risk import word_risk
from corpusveil_evaluate.statistics.word_statistics import word_statistics
from corpusveil_evaluate.studies.cells import Cell, Results, cells_over, of_seeds
from corpusveil_evaluate.studies.claims import compare
from corpusveil_evaluate.studies.profiles import PROFILES
from corpusveil_evaluate.studies.report import Account, Table
from corpusveil_evaluate.studies.study import (
    READ,
    SLOW_LAWS,
    Epsilon,
    GridMechanism,
    ReadFirstGrid,
    Study,
    claims_of,
)
from corpusveil_evaluate.studies.study_data import ONE_LIST, Needs, StudyData, WordSpace, key_of
from corpusveil_evaluate.studies.task_figures import drawn_words, mode_scores, original_scores, text_statistics
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts

Lists = Literal["L0", "L1", "L2"]
OnLists = Literal["diffractor-geometric", "diffractor-exponential"]
SPACES = {
    "L0": WordSpace("L0", embeddings=0, lists=1),
    "L1": WordSpace("L1", embeddings=0, lists=2),
    "L2": WordSpace("L2", embeddings=1, lists=1),
}
"""Lists per embedding: one of each, two of each, one of the first."""
SECONDS_A_DAY = 86_400
KEPT = f"{ONE_LIST}, stop words kept"
"""Where another mechanism has the policy of the lists, so that mechanisms are compared and not policies."""
_MADE = "00" * 32


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
    also_kept: tuple[str, ...] = ()
    """Of these also releases that keep what those on lists keep."""
    words: int = Field(ge=2)
    runs: int = Field(ge=2)
    speed_words: int = Field(ge=10)
    speed_repeats: int = Field(ge=1)


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
            for epsilon in one.epsilons or grid.epsilons:
                at = {**of, "epsilon": epsilon}
                made += [] if space == KEPT else [Cell("words", at)]
                made += of_seeds("task", tasks, at, grid.seeds)
                if space in ("L0", ONE_LIST):
                    made += of_seeds("attack", attacks, at, grid.seeds)
            made += [] if space == KEPT else [Cell("speed", {**of, "epsilon": 1.0})]
        return made

    def _mechanisms(self, grid: DiffractorGrid) -> Iterator[tuple[GridMechanism, str]]:
        for name in grid.on_lists:
            for lists in grid.lists:
                yield GridMechanism(name=name), lists
        for mechanism in grid.beside:
            yield mechanism, ONE_LIST
            if mechanism.name in grid.also_kept:
                yield mechanism, KEPT

    def work(self, cell: Cell, grid: DiffractorGrid, data: StudyData) -> Mapping[str, Any]:
        if cell.kind == "baseline":
            return original_scores(data.task(cell["task"], grid.train_rows, grid.test_rows), data.model, cell["seed"])
        space = ONE_LIST if cell["space"] == KEPT else cell["space"]
        mechanism = data.mechanism(cell["mechanism"], space, **cell["parameters"])
        epsilon = cell["epsilon"]
        if cell.kind == "words":
            ids = drawn_words(len(mechanism.space), grid.words)
            statistics = word_statistics(
                mechanism, epsilon, ids, grid.runs, key_of(0), exact=mechanism.name not in SLOW_LAWS
            )
            return {
                "n_w": statistics.n_w, "s_w": statistics.s_w,
                # seconds on a list, minutes on vectors
                **({"risk": word_risk(mechanism, epsilon).content.share} if cell["space"] in SPACES else {}),
            }  # fmt: skip
        if cell.kind == "speed":
            return speed(mechanism, epsilon, grid.speed_words, grid.speed_repeats)
        task = data.task(cell["task"], grid.train_rows, grid.test_rows)
        policy = PROFILES[self.name].policy()
        if cell["space"] == ONE_LIST:
            policy = dataclasses.replace(policy, stop_words="privatize")
        budget = Budget(epsilon)

        def private(texts: Any) -> list[str]:
            return data.private(texts, mechanism, budget, cell["seed"], policy, source=task.name)

        if cell.kind == "attack":  # trained on the original; the same test rows, perturbed
            _, test = task.train_and_test(cell["seed"])
            rows = test.tolist()
            released = private([task.texts[row] for row in rows])
            figures = _attacked(task, rows, released, data, cell["seed"])
            denoiser = data.denoiser(mechanism, budget, policy) if mechanism.name in grid.read_first else None
            if denoiser is not None:
                figures |= _attacked(task, rows, denoiser.readable(released), data, cell["seed"], READ)
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
        tables = (_figures(results, grid), _attacks(results), _speeds(results))
        tasks = tuple(results.where("task").options("task"))
        names = {
            "lists": next(name for name in SPACES if name in grid.lists), "tasks": tasks,
            "words": f"{grid.speed_words:,}", "model": data.model.name, "encoder": data.encoder.label,
            "scale": data.scale(ONE_LIST), "given vectors": bool(data.sources.vectors),
            "differs": f"{', '.join(tasks)} for GLUE; {data.model.name} for BERT",
        }  # fmt: skip
        checks = compare(claims_of(self), Results([*results.records, *drops(results)]), grid.test_rows, names)
        return Account(tables, tuple(checks), tuple(_notes(grid, data)))


def _attacked(
    task: LabelledTexts, rows: list[int], found: list[str], data: StudyData, seed: int, prefix: str = ""
) -> dict[str, float]:
    """Return the scores of a classifier of the original texts on test rows with these texts."""
    texts = list(task.texts)
    for row, text in zip(rows, found, strict=True):
        texts[row] = text
    return mode_scores(task, task.with_texts(texts), data.model, seed, ("original-private",), prefix)


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


def _each(results: Results) -> Iterator[tuple[str, Results]]:
    """Yield mechanisms on their lists, by their names in tables, with their cells."""
    for name, space, cells in results.each("mechanism", "space"):
        yield _label(name, space), cells


def _label(name: str, space: str) -> str:
    return name if space == ONE_LIST else f"{name}, {space.removeprefix(f'{ONE_LIST}, ')}"


def drops(results: Results) -> Iterator[dict[str, Any]]:
    """Yield the loss of accuracy on each task by mechanism and epsilon, as cells of the kind ``drop``."""
    for task, *options, cells in results.where("task").each("task", "mechanism", "space", "epsilon"):
        whole = results.where("baseline", task=task).mean("original-original:accuracy")
        private = cells.mean("private-private:accuracy")
        if whole is not None and private is not None:
            at = dict(zip(("mechanism", "space", "epsilon"), options, strict=True))
            yield {"kind": "drop", "options": {"task": task, **at}, "result": {"drop": whole - private}}


def _figures(results: Results, grid: DiffractorGrid) -> Table:
    """Return what releases keep of texts, beside what they say of a word: lists differ in both at equal epsilons."""
    tasks, lost = results.where("task"), Results(list(drops(results)))
    rows = []
    for name, space, epsilon, cells in tasks.each("mechanism", "space", "epsilon"):
        at = {"mechanism": name, "space": space, "epsilon": epsilon}
        words, drop = results.where("words", **at), lost.where(**at).mean("drop")
        of_words = (words.mean(measure) for measure in ("n_w", "s_w", "risk"))
        rows.append((_label(name, space), epsilon, None if drop is None else 100 * drop, cells.figure("cs"), *of_words))
    names = tasks.options("task")
    whole, floor = (
        100 * float(np.mean([results.where("baseline", task=task).mean(name) or 0.0 for task in names] or [0.0]))
        for name in ("original-original:accuracy", "original-original:floor")
    )
    notes = (
        f"Drop: accuracy on original texts minus accuracy on private texts, in points, mean over {', '.join(names)}.",
        f"Original {whole:.1f}, constant {floor:.1f}: at most {whole - floor:.1f} can be lost.",
        "Trained and tested on private texts. Of STS-B it is the mean of Pearson's and Spearman's correlation.",
        f"N_w, S_w: {grid.words} random words, {grid.runs} runs; exact where there is a law, except for Gumbel.",
        "Risk: of content words, how many a reader guesses from the released word alone, by public counts; on lists.",
    )
    columns = ("mechanism", "ε", "drop", "similarity", "N_w", "S_w", "risk")
    return Table("Utility, plausible deniability and risk", columns, rows, (*notes, *_leads(tasks, grid)))


def _leads(tasks: Results, grid: DiffractorGrid) -> Iterator[str]:
    """Yield how much of the lead over another mechanism is that stop words are kept, at the least epsilon."""
    at = tasks.where(epsilon=grid.epsilons[0])
    lists = at.where(mechanism=grid.on_lists[0], space=grid.lists[0]).mean("cs")
    for name in grid.also_kept:
        every, kept = (at.where(mechanism=name, space=space).mean("cs") for space in (ONE_LIST, KEPT))
        if lists is not None and every is not None and kept is not None:
            yield (
                f"At epsilon {grid.epsilons[0]:g} {grid.on_lists[0]}, {grid.lists[0]}, leads {name} by "
                f"{lists - every:.2f}, {kept - every:.2f} of it since {name} replaces stop words and the lists do not."
            )


def _attacks(results: Results) -> Table:
    attacks = results.where("attack")
    epsilons = attacks.options("epsilon")
    rows: list[tuple[Any, ...]] = []
    for task, of_task in attacks.each("task"):
        known = results.where("baseline", task=task)
        of_original = (known.mean("original-original:accuracy"), known.mean("original-original:floor"))
        for label, cells in _each(of_task):
            for prefix, title in (("", label), (READ, f"{label}, denoised first")):
                right = cells.over(f"{prefix}original-private:accuracy", epsilons)
                if not prefix or any(right):
                    rows.append((task, title, *right, *of_original))
    columns = ("task", "mechanism", *(f"ε {epsilon:g}" for epsilon in epsilons), "original", "constant")
    return Table("Static attackers: accuracy, trained on original texts", columns, rows)


def _speeds(results: Results) -> Table:
    rows = []
    for label, cells in _each(results):
        speeds = cells.where("speed")
        mib, each, first = (speeds.mean(measure) for measure in ("mib", "bytes_a_word", "first"))
        days = [of.mean("tokens_a_day") for of in (speeds, cells.where("task"))]
        shown = [None if day is None else f"{day:.3g}" for day in days]
        rows.append((label, *shown, mib, None if each is None else round(each), first))
    notes = (
        "Random words of the vocabulary: the median of repeats on one thread.",
        "Whole texts: time from text to text, mean of all cells; the texts include stop words and unknown words.",
        "Memory is measured by tracemalloc. It excludes what compiled code allocates, and the lists and vectors.",
    )
    columns = ("mechanism", "tokens a day", "of whole texts", "MiB for these words", "bytes a word", "first call, s")
    return Table("Efficiency", columns, rows, notes)


def _notes(grid: DiffractorGrid, data: StudyData) -> Iterator[str]:
    yield from PROFILES["1-diffractor"].lines()
    yield "Mechanisms beside the lists replace stop words too, as the study's table shows, unless a row says otherwise."
    if grid.read_first:
        text = "the corpus" if data.sources.corpus else "the text that the dependencies ship"
        yield f"Denoised first: releases of {', '.join(grid.read_first)}, with a language model of {text}."


STUDY = Diffractor()
