"""The study of adversarial robustness (N. Xu, Feyisetan, Aggarwal, Z. Xu, Teissier 2021).

Over its grid: N_w and S_w of CMP and of truncated Gumbel, and the robustness of networks of three regimes against a
genetic attacker who replaces words through the mechanism (``robustness``).
"""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field

from corpusveil.mechanisms import Mechanism, make_mechanism
from corpusveil.spaces import Space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage import files
from corpusveil.storage.durable import mark_of
from corpusveil_evaluate.mechanisms.truncated_gumbel import TruncatedGumbel, extent, floor_of
from corpusveil_evaluate.statistics.word_statistics import word_statistics
from corpusveil_evaluate.studies.cells import Cell, Results, cells_over
from corpusveil_evaluate.studies.claims import Check, compare
from corpusveil_evaluate.studies.report import Account, Table
from corpusveil_evaluate.studies.robustness.encoded_texts import Examples, encode
from corpusveil_evaluate.studies.robustness.genetic import Genetic, measure
from corpusveil_evaluate.studies.robustness.interval_bounds import Substitutes, WordBoxes, certified
from corpusveil_evaluate.studies.robustness.network_training import Noise, Regime, fit
from corpusveil_evaluate.studies.robustness.networks import Trained, network_of, vectors_of
from corpusveil_evaluate.studies.study import Epsilon, Finite, Grid, Study, claims_of
from corpusveil_evaluate.studies.study_data import ONE_LIST, Needs, StudyData, WordSpace, key_of
from corpusveil_evaluate.studies.task_figures import drawn_words, original_scores
from corpusveil_evaluate.terms import count_words
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts

ABOVE_FLOOR = 1e-3
"""Added to ln epsilon of a mechanism's floor, since the mechanism is not defined at the floor itself."""
AXES = {"cmp": "epsilon", "truncated-gumbel": "ln epsilon"}
PAPER_CLEAN = {"normal": "89.5", "augmented": "88 to 90", "ibp": "81.0"}
MEASURES = {"clean": "original", "private": "one private variant", "adversarial": "attacked"}
ROUNDING = 1e-9


class RobustnessGrid(Grid):
    """Keys of the grid in addition to those of every study. ``test_rows`` is the number of attacked texts."""

    cmp_epsilons: tuple[Epsilon, ...] = Field(min_length=1)
    gumbel_log_epsilons: tuple[Finite, ...] = Field(min_length=1)
    """ln epsilon; values below the mechanism's floor in a space mean the floor, like the study's smallest value."""
    regimes: tuple[Literal["normal", "augmented", "ibp"], ...] = Field(min_length=1)
    network_epochs: int = Field(ge=1)
    """Passes over the texts; ``epochs`` are those of word vectors."""
    width: int = Field(ge=1)
    longest: int = Field(ge=1)
    """Words of a text that are read."""
    kappa: float = Field(ge=0, le=1)
    substitutes: int = Field(ge=1)
    closeness: float = Field(default=1.0, gt=0)
    """Substitutes are within this many times the median distance of the last substitute."""
    variants: int = Field(ge=1)
    """Private versions of a text that are added for training."""
    members: int = Field(ge=2)
    generations: int = Field(ge=1)
    words: int = Field(ge=2)
    runs: int = Field(ge=2)

    def points(self) -> list[tuple[str, float]]:
        """Return mechanisms with their chart axis: epsilon, or ln epsilon."""
        return [
            *(("cmp", cmp_epsilon) for cmp_epsilon in self.cmp_epsilons),
            *(("truncated-gumbel", gumbel_log_epsilon) for gumbel_log_epsilon in self.gumbel_log_epsilons),
        ]


class AdversarialRobustness(Study):
    """N_w and S_w, and clean, adversarial and certified accuracy of three regimes."""

    name = "adversarial-robustness"
    paper = (
        "Differentially Private Adversarial Robustness Through Randomized Perturbations (N. Xu, Feyisetan, Aggarwal, "
        "Z. Xu, Teissier 2021)"
    )
    grid = RobustnessGrid
    no_use_for = (*Study.no_use_for, "model", "encoder")  # it uses separate networks, and measures no similarity

    def needs(self, grid: RobustnessGrid) -> Needs:
        one = WordSpace(ONE_LIST, lists=0)  # no mechanism here uses a list
        return Needs((one,), (), grid.dimensions, grid.epochs, grid.min_count, grid.scale or None)

    def cells(self, grid: RobustnessGrid, data: StudyData) -> list[Cell]:
        """Return the cells, epsilons outermost: processes then train different networks first, and share them later."""
        tasks = data.names(grid.tasks, grid.bundled)
        made = cells_over("baseline", task=tasks[1:], seed=range(1))  # whether words tell the labels of pairs
        for mechanism, at in grid.points():
            made += [Cell("words", {"task": task, "mechanism": mechanism, "at": at}) for task in tasks]
        for seed in range(grid.seeds):
            made += [
                Cell("attack", {"task": task, "regime": regime, "mechanism": mechanism, "at": at, "seed": seed})
                for mechanism, at in grid.points()
                for regime in grid.regimes
                for task in tasks
            ]
        return made

    def work(self, cell: Cell, grid: RobustnessGrid, data: StudyData) -> Mapping[str, Any]:
        task = data.task(cell["task"], grid.train_rows, grid.test_rows)
        if cell.kind == "baseline":
            return original_scores(task, data.model, cell["seed"])
        space = space_of(data.space(), task)
        mechanism = make_mechanism(cell["mechanism"], space)
        epsilon = epsilon_of(mechanism, cell["at"])
        if cell.kind == "words":
            ids = drawn_words(len(space), grid.words)
            statistics = word_statistics(mechanism, epsilon, ids, grid.runs, key_of(0), exact=False)
            return {
                "epsilon": epsilon, "words": len(space),
                "n_w": statistics.retention, "n_w_deviation": statistics.retention_deviation,
                "s_w": statistics.distinct, "s_w_deviation": statistics.distinct_deviation,
            }  # fmt: skip
        seed = int(cell["seed"])
        train, test = (encode(task.take(rows), space, longest=grid.longest, classes=task.classes)
                       for rows in task.train_and_test(seed))  # fmt: skip
        substitutes = _substitutes(space, grid.substitutes, grid.closeness)
        noise = Noise(mechanism, epsilon, key_of(seed))
        trained = self._trained(cell, grid, data, space, train, noise, substitutes)
        boxes = WordBoxes.from_space(vectors_of(space), substitutes)
        return {
            "epsilon": epsilon, **measure(trained, test, noise, Genetic(grid.members, grid.generations), seed),
            "certified": certified(trained, boxes, test).mean(),
        }  # fmt: skip

    def _trained(
        self,
        cell: Cell,
        grid: RobustnessGrid,
        data: StudyData,
        space: Space,
        train: Examples,
        noise: Noise,
        substitutes: Substitutes,
    ) -> Trained:
        """Return the network of a cell; a network without noise may come from an earlier cell."""
        regime: Regime = cell["regime"]

        def made() -> Trained:
            return fit(
                regime, train, space, grid.network_epochs, cell["seed"], noise=noise, substitutes=substitutes,
                variants=grid.variants, width=grid.width, kappa=grid.kappa,
            )  # fmt: skip

        if regime == "augmented":
            return made()
        mark = mark_of(data.digest(), grid.decides(), cell["task"], regime, cell["seed"])
        address = data.address("networks", f"{regime}-{mark[:16]}.npz")
        saved = files.read_if_there(address)
        if saved is None:
            trained = made()
            file = io.BytesIO()
            np.savez(file, **trained.parameters)  # type: ignore[arg-type]
            files.write_bytes(address, file.getvalue())
            return trained
        with np.load(io.BytesIO(saved), allow_pickle=False) as arrays:
            parameters = dict(arrays)
        return Trained.from_network(network_of(train, space, grid.width), parameters, vectors_of(space))

    def account(self, results: Results, grid: RobustnessGrid, data: StudyData) -> Account:
        attacks, words = results.where("attack"), results.where("words")
        mechanisms = [name for name in AXES if name in results.options("mechanism")]
        tables = [_curves(words, grid), _equal(words, grid)]
        tables += [_attacked(attacks.where(mechanism=name), name) for name in mechanisms]
        tables.append(_clean(attacks, grid))
        checks = self.checks(results, grid, data) if len(attacks) else ()
        return Account(tuple(tables), tuple(checks), tuple(_notes(grid)))

    def checks(self, results: Results, grid: RobustnessGrid, data: StudyData) -> Iterator[Check]:
        """Yield the comparison with the paper, by the first task; of the others it has pairs only."""
        attacks = results.where("attack")
        first, *others = attacks.options("task")
        size = attacks.mean("texts") or grid.test_rows  # seeds share the texts
        vectors = "the vectors given" if data.sources.vectors else "word2vec trained here"
        differs = (
            f"{first}, {grid.train_rows:,} texts to train on and {size:.0f} attacked, for IMDb's 20,000 and 1,000; "
            f"{vectors} for GloVe"
        )
        names = {
            "first": first, "rows": f"{grid.train_rows:,}", "differs": differs,
            "boxes": f"{differs}; nearest words for counter-fitted ones, whole boxes",
        }  # fmt: skip
        pairs = [{**record, "kind": "pairs"} for record in attacks.where(task=tuple(others)).records]
        equal = [
            {
                "kind": "equal",
                "options": {"task": task, "mechanism": name, "n_w": round(n_w, 2)},
                "result": {"s_w": value},
            }
            for task, n_w, *both in _equal(results.where("words"), grid).rows
            for name, value in zip(AXES, both, strict=True)
        ]
        derived = [*results.records, *_halves(attacks.where(task=first)), *pairs, *equal]
        yield from compare(claims_of(self), Results(derived), size, names)


@functools.lru_cache(maxsize=4)
def space_of(space: Space, task: LabelledTexts) -> Space:
    """Return the space of the words that a task's texts have, as the study's vocabularies are those of its data.

    Such a vocabulary discloses which words the texts have: for measurements only, never for a release.
    """
    counted, _ = count_words(task.texts, task.pairs or ())
    vocabulary = set(space.vocabulary.words)
    return build_space(
        Vectors(list(space.vocabulary.words), space.vectors, "words of the task"),
        lists=0,
        only=[word for word in counted.words if word in vocabulary],
    )


@functools.lru_cache(maxsize=4)
def _substitutes(space: Space, count: int, closeness: float) -> Substitutes:
    return Substitutes.from_space(space, count, closeness)


def epsilon_of(mechanism: Mechanism, at: float) -> float:
    """Return epsilon at a place of the grid: itself, or for truncated Gumbel e to it, but never below its floor."""
    if not isinstance(mechanism, TruncatedGumbel):
        return at
    floor = math.log(floor_of(len(mechanism.space), extent(mechanism.space)[0]))
    return math.exp(max(at, floor + ABOVE_FLOOR))


def _curves(words: Results, grid: RobustnessGrid) -> Table:
    rows = []
    for record in words.records:
        of, result = record["options"], record["result"]
        if "n_w" in result:
            figures = (result[name] for name in ("n_w", "n_w_deviation", "s_w", "s_w_deviation"))
            rows.append((of["task"], of["mechanism"], _written(of["mechanism"], result["epsilon"]), *figures))
    columns = ("words of", "mechanism", "at", "N_w", "deviation", "S_w", "deviation of S_w")
    note = f"{grid.runs:,} runs of each of {grid.words} random words; deviations are over the words."
    floors = (
        "Truncated Gumbel is not defined below a floor, which depends on the space: the smallest ln epsilon is used "
    )
    return Table("N_w and S_w over epsilon", columns, rows, (note, floors + "instead, as 4.67 in the study."))


def _written(mechanism: str, epsilon: float) -> str:
    return f"ln ε {math.log(epsilon):.2f}" if AXES[mechanism] == "ln epsilon" else f"ε {epsilon:g}"


def _equal(words: Results, grid: RobustnessGrid) -> Table:
    rows: list[tuple[Any, ...]] = []
    for task, of_task in words.each("task"):
        results = [[one["result"] for one in of_task.where(mechanism=name).records] for name in AXES]
        left, right = ([(one["n_w"], one["s_w"]) for one in some if "n_w" in one] for some in results)
        if left and right:
            rows += [(task, *point) for point in equal_retention(left, right)]
    note = f"Different words among {grid.runs:,} replacements, linear between the points of the curves."
    return Table("S_w at equal N_w", ("words of", "N_w", *AXES), rows, (note,), "there is no N_w that both reach")


def equal_retention(
    left: Sequence[tuple[float, float]], right: Sequence[tuple[float, float]]
) -> list[tuple[float, ...]]:
    """Return N_w and the S_w of two mechanisms there, at even places of the N_w that both reach; points (N_w, S_w)."""
    curves = [np.array(sorted(points)).T for points in (left, right)]
    low, high = max(shares[0] for shares, _ in curves), min(shares[-1] for shares, _ in curves)
    places = np.linspace(low, high, 9 if low <= high else 0)
    return [
        tuple(map(float, row)) for row in zip(places, *(np.interp(places, *curve) for curve in curves), strict=True)
    ]


def _attacked(attacks: Results, mechanism: str) -> Table:
    places = attacks.options("at")
    rows = []
    for task in attacks.options("task"):
        for regime in attacks.options("regime"):
            some = attacks.where(task=task, regime=regime)
            for figure, title in MEASURES.items():
                rows.append((task, regime, title, *some.over(figure, places, "at")))
    mark = "ln ε" if AXES[mechanism] == "ln epsilon" else "ε"
    columns = ("task", "trained", "texts", *(f"{mark} {at:g}" for at in places))
    notes = [
        "The attacker also tries the private variant, so it never does worse; the paper's does not.",
        "Attacks measure robustness, not privacy.",
    ]
    if AXES[mechanism] == "ln epsilon":
        notes += [raised] if (raised := _raised(attacks)) else []
    return Table(f"Accuracy under {mechanism}", columns, rows, tuple(notes))


def _raised(attacks: Results) -> str:
    """Say which places of the grid are below the mechanism's floor, and which value replaces each."""
    sentences = []
    for task in attacks.options("task"):
        for at in attacks.options("at"):
            epsilon = attacks.where(task=task, at=at).mean("epsilon")
            if epsilon is not None and math.log(epsilon) > at + ROUNDING:
                sentences.append(f"{at:g} is {math.log(epsilon):.2f} in {task}")
    return (
        f"Of ln ε {', '.join(sentences)}: the smallest at which the mechanism is defined in the space."
        if sentences
        else ""
    )


def _clean(attacks: Results, grid: RobustnessGrid) -> Table:
    names = ("clean", "certified", "floor")
    mechanism, at = grid.points()[len(grid.cmp_epsilons) - 1]
    rows = []
    for task in attacks.options("task"):
        for regime in attacks.options("regime"):
            some = attacks.where(task=task, regime=regime, mechanism=mechanism, at=at)
            rows.append((task, regime, *(some.figure(name) for name in names), PAPER_CLEAN[regime]))
    columns = ("task", "trained", "original", "certified", "constant", "paper, IMDb")
    certain = f"Certified: no allowed substitution (up to {grid.substitutes} nearest words) changes the answer. It "
    certain += "says nothing about words that a mechanism draws beyond these."
    notes = (certain, f"The augmented network is trained on variants by {mechanism} at {at:g}.")
    return Table("Original texts, and what is certified", columns, rows, notes)


def _notes(grid: RobustnessGrid) -> Iterator[str]:
    yield "Vocabularies are the words of each task's texts, as in the study. This is for measurement only."
    yield "Words without a vector are left out of texts, and the noise replaces words only."
    if grid.closeness < 1:
        yield (
            "Worst-case training uses boxes of substitutes within "
            f"{grid.closeness:g} times the median distance of the last substitute. The nearest words of ordinary "
            "vectors are often opposites (good, bad), and with whole boxes a network has nothing left to "
            "distinguish."
        )


def _halves(attacks: Results) -> Iterator[dict[str, Any]]:
    """Yield adversarial accuracy where the augmented network keeps about half of it, as cells of the kind ``half``."""
    for _, some in attacks.each("mechanism"):
        augmented = some.where(regime="augmented")
        known = {at: mean for at, mean, _ in augmented.line("adversarial", "at")}
        place = half_standing(known, augmented.mean("clean"))
        yield from ({**record, "kind": "half"} for record in (some.where(at=place).records if place else ()))


def half_standing(known: Mapping[float, float], clean: float | None) -> float | None:
    """Return where the augmented network keeps about half of its clean accuracy under attack; None where it never does.

    ``known`` is its adversarial accuracy by place. About half is 15 % to 85 %; chosen without a look at ibp, so the
    comparison there is of one pair of figures and not of the best of many.
    """
    if not clean:
        return None
    near = {at: abs(value / clean - 0.5) for at, value in known.items() if 0.15 <= value / clean <= 0.85}
    return min(near, key=lambda at: near[at]) if near else None


STUDY = AdversarialRobustness()
