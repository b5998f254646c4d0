"""Studies as a whole: grids are read strictly, cells are done once and resumed, figures are those of the cells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpusveil.errors import InUseError, UserError
from corpusveil.jobs.local import Local
from corpusveil.spaces.vectors import Vectors
from corpusveil_evaluate.studies import bundled_text
from corpusveil_evaluate.studies.cells import Cell, CellStage, Results, SeedMean, cells_over, run_cells
from corpusveil_evaluate.studies.study import STUDIES, find, read_grid
from corpusveil_evaluate.studies.study_data import Needs, Sources, StudyData, WordSpace
from corpusveil_evaluate.studies.study_preparation import prepare_data, reduced

STUDY_FILES = Path(bundled_text.__file__).parent
BUILT = [name for name, module in STUDIES.items() if (STUDY_FILES / f"{module}.py").exists()]


@pytest.mark.parametrize("name", BUILT)
def test_the_grids_that_ship_are_sound_and_a_file_replaces_keys(name: str, tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text("seeds = 17")
    for quick in (False, True):
        grid = read_grid(find(name), quick=quick)
        assert read_grid(find(name), quick=quick, file=str(file)) == grid.model_copy(update={"seeds": 17})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sedes = 3", 'grid.toml, "sedes": the study 1-diffractor has no such key; did you mean seeds?'),
        ("seeds = 0", "grid.toml, seeds: input should be greater than or equal to 1."),
        ("seeds = 'x'", "grid.toml, seeds: "),
        ("beside = [{ name = 'cpm' }]", "there is no mechanism cpm"),
        ("beside = [{ name = 'cmp', epsilon = [1] }]", "grid.toml, beside.0.epsilon: "),
        ("seeds = ", "grid.toml: this is not valid TOML"),
    ],
)
def test_a_wrong_key_of_a_grid_is_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(text)
    with pytest.raises(UserError) as caught:
        read_grid(find("1-diffractor"), file=str(file))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


class Counting:
    """Makes a function that squares, and writes down that it did."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def __call__(self) -> Any:
        return self.work

    def work(self, cell: Cell) -> Mapping[str, Any]:
        with self.log.open("a") as file:
            file.write(f"{cell['x']}\n")
        if cell["x"] == 3:
            raise UserError("3 can't be squared; leave it out.")
        return {"square": np.float64(cell["x"] ** 2)}


def test_cells_are_done_once_and_again_when_what_they_stand_on_changes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    cells = cells_over("square", x=[1, 2, 3])
    for mark, done in (("one", 3), ("one", 3), ("other", 6)):
        found = run_cells(CellStage(str(tmp_path), mark, Counting(log)), cells, Local())
        assert found.values("square") == [1.0, 4.0]
        assert found.refused == ["3 can't be squared; leave it out."]
        assert len(log.read_text().split()) == done
    record = json.loads(next((tmp_path / "cells" / "done").glob("square-2-*.json")).read_text())
    assert record["options"] == {"x": 2}
    assert record["seconds"] >= 0


def test_results_are_selected_by_options_and_have_mean_and_deviation() -> None:
    records = [
        {"kind": "task", "options": {"m": m, "seed": seed}, "result": {"a": a}}
        for m, seed, a in (("x", 0, 1.0), ("x", 1, 3.0), ("y", 0, 7.0))
    ]
    results = Results([*records, {"kind": "other", "options": {"m": "x"}, "result": {"a": 100.0}}])
    assert results.where("task", m="x").figure("a") == SeedMean(2.0, float(np.sqrt(2)), 2)
    assert results.where("task", m="y").figure("a") == SeedMean(7.0, None, 1)
    assert results.where("task", m="z").figure("a") is None
    assert results.where("task").options("m") == ["x", "y"]
    assert str(SeedMean(0.5, 0.25, 2)) == "0.5 ± 0.25"


@pytest.mark.parametrize("name", list(bundled_text.TASKS))
def test_a_bundled_task_is_the_same_every_time_with_a_split_and_labels_of_the_text(name: str) -> None:
    task = bundled_text.bundled_task(name)
    train, test = task.train_and_test(0)
    assert len(train) > 2 * len(test) > 400
    assert len(set(task.texts)) > 0.9 * len(task)
    assert len(task.classes) == {"bundled-articles": 10}.get(name, 2)
    bundled_text.bundled_task.cache_clear()
    assert bundled_text.bundled_task(name) == task


def test_vectors_of_fewer_dimensions_keep_the_largest_part_of_distances() -> None:
    rng = np.random.default_rng(0)
    flat = np.zeros((50, 8), np.float32)
    flat[:, :3] = rng.normal(size=(50, 3))
    given = Vectors([f"w{n}" for n in range(50)], flat, "made")
    made = reduced(given, 3)
    far = np.linalg.norm(flat[:, None] - flat, axis=2)
    assert np.allclose(far, np.linalg.norm(made.vectors[:, None] - made.vectors, axis=2), atol=1e-4)
    with pytest.raises(UserError, match="8 dimensions, and the grid needs 9"):
        reduced(given, 9)


def test_a_ground_is_made_once_and_refuses_other_data_in_its_place(vectors: str, tmp_path: Path) -> None:
    needs = Needs((WordSpace("words"), WordSpace("two", lists=2)))
    ground = StudyData(str(tmp_path / "out"), Sources(vectors=(vectors,)), needs)
    prepare_data(ground, Local())
    before = ground.space("two").digest
    assert len(ground.space("two").lists) == 2
    prepare_data(StudyData(ground.folder, ground.sources, needs), Local())
    assert StudyData(ground.folder, ground.sources, needs).space("two").digest == before
    with pytest.raises(InUseError):
        prepare_data(StudyData(ground.folder, ground.sources, Needs((WordSpace("words"),))), Local())
