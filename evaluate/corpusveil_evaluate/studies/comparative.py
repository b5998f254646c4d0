"""The comparative analysis (Meisenbacher, Nandakumar, Klymenko, Matthes 2024): seven mechanisms, five metrics, PUC."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from corpusveil.budget import Budget
from corpusveil.errors import DataError
from corpusveil.spaces import Space
from corpusveil.text.classes import WORD
from corpusveil.text.languages import STOP_WORDS
from corpusveil.text.policy import TextPolicy
from corpusveil.text.tokens import Tokenizer
from corpusveil_evaluate.statistics.shared_words import english_share
from corpusveil_evaluate.statistics.word_statistics import word_statistics
from corpusveil_evaluate.studies.cells import Cell, Results, SeedMean, cells_over, of_seeds
from corpusveil_evaluate.studies.claims import compare
from corpusveil_evaluate.studies.report import Account, Table
from corpusveil_evaluate.studies.study import SLOW_LAWS, Epsilon, Grid, GridMechanism, Study, claims_of
from corpusveil_evaluate.studies.study_data import Needs, StudyData, WordSpace, key_of
from corpusveil_evaluate.studies.task_figures import mode_scores, original_scores, text_statistics
from corpusveil_evaluate.terms import count_words, terms_of, tokenizer_of
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts

KEPT = "not"
METRICS = ("n_w", "s_w", "pp", "cs", "low")
FEWEST_POINTS = 15
"""Three points for each coefficient: fewer points are always fitted well."""


class ComparativeGrid(Grid):
    """Keys of the grid in addition to those of every study."""

    epsilons: tuple[Epsilon, ...] = Field(min_length=1)
    sizes: tuple[Annotated[int, Field(ge=2)], ...] = Field(min_length=1)
    """Dimensions of the vectors."""
    mechanisms: tuple[GridMechanism, ...] = Field(min_length=1)
    words: int = Field(ge=2)
    runs: int = Field(ge=2)
    alphas: tuple[Annotated[float, Field(ge=0, le=1)], ...] = ()


class Comparative(Study):
    """Accuracy, N_w, S_w, PP, CS, LOW and derived figures, over mechanisms, dimensions and epsilons."""

    name = "comparative-mldp"
    paper = "A Comparative Analysis of Word-Level Metric Differential Privacy (Meisenbacher et al. 2024)"
    grid = ComparativeGrid

    def needs(self, grid: ComparativeGrid) -> Needs:
        return grid.needs(*(WordSpace(f"words-{size}", lists=0, dimensions=size) for size in grid.sizes))

    def cells(self, grid: ComparativeGrid, data: StudyData) -> list[Cell]:
        tasks = data.names(grid.tasks, grid.bundled)
        made = cells_over("baseline", task=tasks, seed=range(2 * grid.seeds))
        for mechanism in grid.mechanisms:
            for size in grid.sizes:
                for epsilon in mechanism.epsilons or grid.epsilons:
                    at = {
                        "mechanism": mechanism.name,
                        "parameters": mechanism.parameters,
                        "size": size,
                        "epsilon": epsilon,
                    }
                    made += [Cell("words", {"task": task, **at}) for task in tasks]
                    made += of_seeds("task", tasks, at, grid.seeds)
        return made

    def work(self, cell: Cell, grid: ComparativeGrid, data: StudyData) -> Mapping[str, Any]:
        task = words_only_task(data.task(cell["task"], grid.train_rows, grid.test_rows))
        if cell.kind == "baseline":
            english = english_share(task.texts, data.space())
            return {**original_scores(task, data.model, cell["seed"]), "english": english}
        mechanism = data.mechanism(cell["mechanism"], f"words-{cell['size']}", **cell["parameters"])
        epsilon = cell["epsilon"]
        if cell.kind == "words":
            ids = words_of(task, mechanism.space, grid.words)
            statistics = word_statistics(
                mechanism, epsilon, ids, grid.runs, key_of(0), exact=mechanism.name not in SLOW_LAWS
            )
            return {"n_w": statistics.n_w, "s_w": statistics.s_w / grid.runs}
        seed = cell["seed"]
        texts = data.private(task.texts, mechanism, Budget(epsilon), seed, ground_policy(), source=task.name)
        figures = mode_scores(task, task.with_texts(texts), data.model, seed, ("private-original",))
        figures |= text_statistics(task.texts, texts, data.encoder)
        if count_words(texts)[1]:
            figures["english"] = english_share(texts, data.space())
        return figures

    def account(self, results: Results, grid: ComparativeGrid, data: StudyData) -> Account:
        tasks = results.where("task").options("task")
        tables = (
            *(_metrics(results, grid, task) for task in tasks),
            _relative(results, grid),
            _regression(results, tasks),
        )
        notes = (
            (
                "Preprocessing: lower case, words only, no stop words except 'not', not lemmatized. All figures are "
                "percentages."
            ),
            (
                "English words: the share of words that the space contains. A mechanism over this space writes only "
                "such words."
            ),
            (
                "As in the study's code, classifiers learn from private texts and are tested on original ones, and "
                "words that the space lacks stay. PUC counts a mean cosine below 0 as 0."
            ),
        )
        vectors = "given vectors" if data.sources.vectors else "word2vec of bundled text"
        names = {
            "size": max(grid.sizes), "dimensions": min(grid.sizes), "encoder": data.encoder.label,
            "given encoder": data.sources.encoder is not None, "given vectors": bool(data.sources.vectors),
            "first": grid.epsilons[0], "last": grid.epsilons[-1], "scale": data.scale(f"words-{max(grid.sizes)}"),
            "differs": f"{', '.join(tasks)} for IMDb and AG News; {vectors} for GloVe; {data.model.name} for an LSTM",
        }  # fmt: skip
        derived = Results([*results.records, *_derived(results, tasks)])
        checks = compare(claims_of(self), derived, grid.test_rows, names)
        return Account(tables, tuple(checks), notes)


def ground_policy() -> TextPolicy:
    """Return the text policy for prepared texts: words that the space lacks stay, as in the study's code."""
    return TextPolicy(unknown_words="keep", punctuation="drop", numbers="drop", other="drop", contacts="drop")


def words_only_task(task: LabelledTexts) -> LabelledTexts:
    """Return a task as the study prepares it: lower-case words without stop words, but with 'not'."""
    return _prepared(task.name, tuple(task.texts), task)


@functools.lru_cache(maxsize=4)
def _prepared(name: str, texts: tuple[str, ...], task: LabelledTexts) -> LabelledTexts:  # noqa: ARG001 - the name tells tasks apart
    return task.with_texts([words_only(text) for text in texts])


def words_only(text: str) -> str:
    """Return the words of a text in lower case, without stop words but with 'not'."""
    tokens = Tokenizer.of_words([]).tokenize([text])
    words = [tokens.text(n).lower() for n in range(len(tokens.classes)) if tokens.classes[n] == WORD]
    return " ".join(word for word in words if word == KEPT or word not in STOP_WORDS)


def words_of(task: LabelledTexts, space: Space, count: int) -> npt.NDArray[np.int64]:
    """Return random words of a data set that the space has, ids int64; all words equally likely.

    Raises UserError if the space has none of them.
    """
    known = np.unique(terms_of(task.texts, tokenizer_of(space.vocabulary)).words().ids)
    if not known.size:
        raise DataError(f"{task.name}: the space has none of its words, so no word can be drawn; give other vectors.")
    return np.sort(np.random.default_rng(0).permutation(known)[:count]).astype(np.int64)


def _percent(results: Results, words: Results) -> dict[str, float | None]:
    """Return the five metrics in percent; statistics of words come from separate cells."""
    means: dict[str, float | None] = {name: words.mean(name) for name in ("n_w", "s_w")}
    means |= {name: results.mean(name) for name in ("pp", "cs", "low")}
    return {name: None if value is None else 100 * value for name, value in means.items()}


def _rows(results: Results, task: str) -> Iterator[tuple[str, int, float, Results, dict[str, float | None]]]:
    """Yield mechanism, size, epsilon, cells and the five metrics."""
    for name, size, epsilon, some in results.where("task", task=task).each("mechanism", "size", "epsilon"):
        words = results.where("words", task=task, mechanism=name, size=size, epsilon=epsilon)
        yield name, size, epsilon, some, _percent(some, words)


def score_of(
    accuracy: float | None, whole: float | None, five: Mapping[str, float | None], alpha: float
) -> float | None:
    """Return PUC: ``alpha 100 accuracy / whole + (1 - alpha) [(100 - N_w) + S_w + PP + CS + (100 - LOW)] / 5``.

    The metrics are in percent. Similarity to the original, CS, counts as privacy here, as in the paper; a cosine below
    0 counts as 0, the end of PUC's range. None if a metric is missing.
    """
    values = [five[name] for name in METRICS]
    if accuracy is None or not whole or None in values:
        return None
    n_w, s_w, pp, cs, low = (max(float(value), 0.0) for value in values if value is not None)
    return alpha * 100 * accuracy / whole + (1 - alpha) * (100 - n_w + s_w + pp + cs + 100 - low) / 5


def _metrics(results: Results, grid: ComparativeGrid, task: str) -> Table:
    known = results.where("baseline", task=task)
    whole, floor, english = (
        known.mean(name) for name in ("original-original:accuracy", "original-original:floor", "english")
    )
    rows = []
    for name, size, epsilon, some, five in _rows(results, task):
        accuracy = some.figure("private-original:accuracy")
        mean = None if accuracy is None else accuracy.mean
        scores = [score_of(mean, whole, five, alpha) for alpha in grid.alphas]
        shares = [None if (one := some.mean("english")) is None else 100 * one]
        figure = None if accuracy is None else _times_100(accuracy)
        rows.append((name, size, epsilon, figure, *(five[metric] for metric in METRICS), *shares, *scores))
    columns = ("mechanism", "dimensions", "ε", "accuracy", "N_w", "S_w", "PP", "CS", "LOW", "English")
    sentence = "" if whole is None or floor is None or english is None else (
        f"Original {100 * whole:.1f}, constant {100 * floor:.1f}; English words in the original {100 * english:.1f}."
    )  # fmt: skip
    return Table(task, (*columns, *(f"PUC {alpha:g}" for alpha in grid.alphas)), rows, (sentence,))


def _times_100(mean: SeedMean) -> SeedMean:
    return SeedMean(100 * mean.mean, None if mean.deviation is None else 100 * mean.deviation, mean.count)


def _relative(results: Results, grid: ComparativeGrid) -> Table:
    """Return N_w : S_w, averaged over dimensions, and its logarithm."""
    rows = []
    some = results.where("words")
    for mechanism in grid.mechanisms:
        for epsilon in mechanism.epsilons or grid.epsilons:
            at_sizes = [some.where(mechanism=mechanism.name, epsilon=epsilon, size=size) for size in grid.sizes]
            pairs = [(of.mean("n_w"), of.mean("s_w")) for of in at_sizes]
            known = [(n, s) for n, s in pairs if n is not None and s]
            if known:
                mean = float(np.mean([n / s for n, s in known]))
                rows.append((mechanism.name, epsilon, mean, math.log10(mean) if mean > 0 else None))
    return Table("N_w : S_w, mean over dimensions", ("mechanism", "ε", "ratio", "log10"), rows)


def regression(points: Sequence[Sequence[float]]) -> tuple[npt.NDArray[np.float64], float]:
    """Fit CS to epsilon, N_w, S_w, PP by least squares; points [N, 5], CS last.

    Returns the intercept and four coefficients, float64 [5], and R².
    """
    array = np.asarray(points, dtype=np.float64)
    design = np.column_stack([np.ones(len(array)), array[:, :4]])
    fitted = np.asarray(np.linalg.lstsq(design, array[:, 4], rcond=None)[0], dtype=np.float64)
    left = array[:, 4] - design @ fitted
    spread = float(((array[:, 4] - array[:, 4].mean()) ** 2).sum())
    return fitted, 1 - float(left @ left) / spread if spread else math.nan


def _points(results: Results, tasks: Sequence[str]) -> list[list[float]]:
    points = []
    for task in tasks:
        for _, _, epsilon, _, five in _rows(results, task):
            values = [epsilon, *(five[name] for name in ("n_w", "s_w", "pp", "cs"))]
            if None not in values:
                points.append([float(value) for value in values if value is not None])
    return points


def _regression(results: Results, tasks: Sequence[str]) -> Table:
    points = _points(results, tasks)
    columns = ("points", "intercept", "ε", "N_w", "S_w", "PP", "R²")
    if len(points) <= 5:
        why = f"{len(points)} points, and five coefficients need more"
        return Table("Regression of CS", columns, empty=why)
    fitted, fit = regression(points)
    return Table("Regression of CS", columns, [(len(points), *fitted.tolist(), fit)])


def _derived(results: Results, tasks: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield PUC at alpha 0.5, as cells of the kind ``puc``, and the fit of CS, as one of the kind ``regression``."""
    for task in tasks:
        whole = results.where("baseline", task=task).mean("original-original:accuracy")
        for name, size, epsilon, some, five in _rows(results, task):
            at = {"task": task, "mechanism": name, "size": size, "epsilon": epsilon}
            score = score_of(some.mean("private-original:accuracy"), whole, five, 0.5)
            yield {"kind": "puc", "options": at, "result": {"puc": score}}
    points = _points(results, tasks)
    fit = regression(points)[1] if len(points) >= FEWEST_POINTS else None
    yield {"kind": "regression", "options": {}, "result": {"r2": fit}}


STUDY = Comparative()
