"""The study of adversarial robustness (N. Xu, Feyisetan, Aggarwal, Z. Xu, Teissier 2021).

The work of ``studies.robustness`` over the study's grid: N_w and S_w of CMP and of truncated Gumbel, and the robustness
of networks of three regimes against a genetic attacker who replaces words through the mechanism.
"""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from corpusveil.evaluation.terms import count_words
from corpusveil.evaluation.utility.labelled_texts import LabelledTexts
from corpusveil.mechanisms import Mechanism, make
from corpusveil.mechanisms.truncated_gumbel import TruncatedGumbel, extent, floor_of
from corpusveil.spaces import Space, build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage import files
from corpusveil.storage.durable import mark_of
from corpusveil_studies.cells import Cell, Results
from corpusveil_studies.robustness.accuracies import measure
from corpusveil_studies.robustness.encoded_texts import LONGEST, Examples, encode
from corpusveil_studies.robustness.genetic import Genetic
from corpusveil_studies.robustness.interval_bounds import Substitutes, WordBoxes, certified
from corpusveil_studies.robustness.network_training import NetworkTraining
from corpusveil_studies.robustness.networks import WIDTH, Trained, network_of, vectors_of
from corpusveil_studies.robustness.training_regimes import VARIANTS, Noise, Regime, fit
from corpusveil_studies.robustness.word_curves import word_curve
from corpusveil_studies.robustness_account import account_of
from corpusveil_studies.study import Account, Epsilon, Finite, Grid, Study
from corpusveil_studies.study_data import ONE_LIST, Needs, StudyData, WordSpace, key_of
from corpusveil_studies.task_figures import drawn_words

ABOVE_FLOOR = 1e-3
"""Added to ln epsilon of a mechanism's floor, since the mechanism is not defined at the floor itself."""


class RobustnessGrid(Grid):
    """Keys of the grid in addition to those of every study. ``test_rows`` is the number of attacked texts."""

    cmp_epsilons: tuple[Epsilon, ...] = Field(min_length=1)
    gumbel_log_epsilons: tuple[Finite, ...] = Field(min_length=1)
    """ln epsilon; values below the mechanism's floor in a space mean the floor, like the study's smallest value."""
    regimes: tuple[Literal["normal", "augmented", "ibp"], ...] = Field(min_length=1)
    network_epochs: int = Field(ge=1)
    """Passes over the texts; ``epochs`` are those of word vectors."""
    width: int = Field(default=WIDTH, ge=1)
    longest: int = Field(default=LONGEST, ge=1)
    """Words of a text that are read."""
    kappa: float = Field(default=0.8, ge=0, le=1)
    reach: float = Field(default=1.0, gt=0, le=1)
    """The final share of the boxes of substitutes in worst-case training."""
    substitutes: int = Field(ge=1)
    closeness: float = Field(default=1.0, gt=0)
    """Substitutes are within this many times the median distance of the last substitute."""
    variants: int = Field(default=VARIANTS, ge=1)
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
        return Needs((one,), (), grid.dimensions, grid.epochs, grid.min_count)

    def cells(self, grid: RobustnessGrid, data: StudyData) -> list[Cell]:
        """Return the cells, epsilons outermost: processes then train different networks first, and share them later."""
        tasks = data.names(grid.tasks, grid.bundled)
        made: list[Cell] = []
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
        space = space_of(data.space(), task)
        mechanism = make(cell["mechanism"], space)
        epsilon = epsilon_of(mechanism, cell["at"])
        if cell.kind == "words":
            ids = drawn_words(len(space), grid.words)
            (statistics,) = word_curve(mechanism, (epsilon,), ids, grid.runs, key_of(0)).points
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
        told_of = measure(trained, test, noise, Genetic(grid.members, grid.generations), seed)
        boxes = WordBoxes.of(vectors_of(space), substitutes)
        figures = {
            "epsilon": epsilon, "clean": told_of.clean, "private": told_of.private,
            "adversarial": told_of.adversarial, "floor": told_of.floor, "texts": told_of.texts,
            "certified": certified(trained, boxes, test).mean(),
            "certified_reach": certified(trained, boxes, test, grid.reach).mean(),
        }  # fmt: skip
        return figures | ({} if math.isnan(told_of.changed) else {"changed": told_of.changed})

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
        plan = NetworkTraining(epochs=grid.network_epochs, kappa=grid.kappa, reach=grid.reach)

        def made() -> Trained:
            more = {"noise": noise, "substitutes": substitutes, "variants": grid.variants, "width": grid.width}
            return fit(regime, train, space, plan, cell["seed"], **more)  # type: ignore[arg-type]

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
        return Trained.of(network_of(train, space, grid.width), parameters, vectors_of(space))

    def account(self, results: Results, grid: RobustnessGrid, data: StudyData) -> Account:
        return account_of(results, grid, data)


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
    return Substitutes.of(space, count, closeness)


def epsilon_of(mechanism: Mechanism, at: float) -> float:
    """Return epsilon at a place of the grid: itself, or for truncated Gumbel e to it, but never below its floor."""
    if not isinstance(mechanism, TruncatedGumbel):
        return at
    floor = math.log(floor_of(len(mechanism.space), extent(mechanism.space)[0]))
    return math.exp(max(at, floor + ABOVE_FLOOR))


STUDY = AdversarialRobustness()
