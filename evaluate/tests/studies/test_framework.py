"""Studies as a whole: grids are read strictly, cells are done once, faults are told before anything is prepared."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpusveil.errors import AddressError, UserError, WorkError
from corpusveil.jobs.local import Local
from corpusveil_evaluate.studies import bundled_text, comparative
from corpusveil_evaluate.studies import run_study as running
from corpusveil_evaluate.studies.cells import Cell, CellStage, Results, SeedMean, cells_over, run_cells
from corpusveil_evaluate.studies.report import Account, Table, lines, render
from corpusveil_evaluate.studies.study import STUDIES, find, read_grid
from corpusveil_evaluate.studies.study_data import Needs, Sources, StudyData, WordSpace
from corpusveil_evaluate.studies.study_preparation import prepare_data
from evaluate.tests.studies.test_published_studies import opened
from tests.calls import QUIET, command, succeeds

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
    ("name", "text", "said"),
    [
        (
            "1-diffractor",
            "sedes = 3",
            'grid.toml, "sedes": the study 1-diffractor has no such key; did you mean seeds?',
        ),
        ("1-diffractor", "seeds = 0", "grid.toml, seeds: input should be greater than or equal to 1."),
        ("1-diffractor", "beside = [{ name = 'cpm' }]", "there is no mechanism cpm"),
        ("1-diffractor", "beside = [{ name = 'cmp', epsilon = [1] }]", "grid.toml, beside.0.epsilon: "),
        ("1-diffractor", "seeds = ", "grid.toml: this is not valid TOML"),
        ("1-diffractor", "epsilons = [1, 1.0]", "epsilons: 1.0 occurs twice"),
        ("1-diffractor", 'on_lists = ["santext"]', "on_lists.0: input should be 'diffractor-geometric'"),
        (
            "1-diffractor",
            'beside = [{ name = "tem", parameters = { gama = 1 } }]',
            "beside.0: tem has no parameter gama",
        ),
        (
            "pypantera",
            'mechanisms = [{ name = "tem" }, { name = "tem", parameters = { gamma = 1 } }]',
            "tem occurs twice",
        ),
        (
            "collocations",
            'also = [{ name = "cmp", parameters = {} }]',
            "cmp is already the mechanism of the whole grid",
        ),
    ],
)
def test_a_wrong_key_of_a_grid_or_one_that_no_cell_could_do_is_one_sentence(
    name: str, text: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "grid.toml").write_text(text)
    with pytest.raises(UserError) as caught:
        read_grid(find(name), quick=True, file=str(tmp_path / "grid.toml"))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


class Counting:
    """Makes a function that squares, and writes down that it did; 3 it can't."""

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
    log, cells = tmp_path / "log", cells_over("square", x=[1, 2, 3])
    for mark, done in (("one", 3), ("one", 3), ("other", 6)):
        found = run_cells(CellStage(str(tmp_path), mark, Counting(log)), cells, Local())
        assert found.values("square") == [1.0, 4.0]
        assert found.refused == ["3 can't be squared; leave it out."]
        assert len(log.read_text().split()) == done
    record = json.loads(next((tmp_path / "cells" / "done").glob("square-2-*.json")).read_text())
    assert record["options"] == {"x": 2}


@pytest.mark.parametrize("name", list(bundled_text.TASKS))
def test_a_bundled_task_is_the_same_every_time_with_a_split_and_labels_of_the_text(name: str) -> None:
    task = bundled_text.bundled_task(name)
    train, test = task.train_and_test(0)
    assert len(train) > 2 * len(test) > 400
    assert len(set(task.texts)) > 0.9 * len(task)
    assert len(task.classes) == {"bundled-articles": 10}.get(name, 2)
    bundled_text.bundled_task.cache_clear()
    assert bundled_text.bundled_task(name) == task


def test_a_ground_is_made_once_and_refuses_other_data_in_its_place(vectors: str, tmp_path: Path) -> None:
    needs = Needs((WordSpace("words"), WordSpace("two", lists=2)))
    ground = StudyData(str(tmp_path / "out"), Sources(vectors=(vectors,)), needs)
    prepare_data(ground, Local())
    before = ground.space("two").digest
    assert len(ground.space("two").lists) == 2
    prepare_data(StudyData(ground.folder, ground.sources, needs), Local())
    assert StudyData(ground.folder, ground.sources, needs).space("two").digest == before
    with pytest.raises(AddressError):
        prepare_data(StudyData(ground.folder, ground.sources, Needs((WordSpace("words"),))), Local())


TINY = "seeds = 1\ntrain_rows = 60\ntest_rows = 30\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    rows = "".join(f"some {n} text,{n % 2},{'train' if n % 3 else 'test'}\n" for n in range(90))
    for name in ("sst2", "blog_gender"):
        (folder / f"{name}.csv").write_text("text,label,split\n" + rows)
    return folder


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be prepared."""

    def prepare(*_: Any) -> None:
        raise AssertionError("something was prepared before the call was looked at")

    monkeypatch.setattr(running, "prepare_data", prepare)


def test_a_data_set_may_be_a_link_and_a_table_without_rows_says_why(data: Path, vectors: str, tmp_path: Path) -> None:
    """A folder of links had no data set at all; an empty table looked like a broken one."""
    links = tmp_path / "links"
    links.mkdir()
    (links / "sst2.csv").symlink_to(data / "sst2.csv")
    of = StudyData(str(tmp_path / "out"), Sources(str(links), (vectors,)), Needs())
    assert of.names(["sst2", "cola"], []) == ["sst2"]
    assert len(of.task("sst2", 60, 30)) == 90
    for empty, said in (({}, "No rows: no cell"), ({"empty": "2 points"}, "No rows: 2 points.")):
        account = Account((Table("Empty", ("a",), notes=("A note.",), **empty), Table("Full", ("a",), [(1,)])), ())
        for shown in ("\n".join(lines(account)), render(account, "a", "b")):
            assert shown.count("No rows") == 1
            assert said in shown


@pytest.mark.usefixtures("never")
@pytest.mark.parametrize(
    ("study", "given", "said"),
    [
        (
            "1-diffractor",
            ["--encoder", "/nowhere"],
            "/nowhere: this is neither a folder",
        ),
        ("1-diffractor", ["--model", "/nowhere"], "model /nowhere: choose tfidf or vectors"),
        ("1-diffractor", ["--data", "/nowhere"], "data /nowhere: there is nothing here"),
        ("1-diffractor", ["--data", "GRID"], "this is a file; name the folder"),
        ("1-diffractor", ["--corpus", "/nowhere/*.txt"], "this matches no file"),
        ("comparative-mldp", ["--vectors", "VECTORS", "--corpus", "GRID"], "corpus: vectors are given"),
        ("adversarial-robustness", ["--model", "vectors"], "model: the study adversarial-robustness does not use"),
        ("pypantera", ["--qrels", "GRID"], "belong together"),
        ("pypantera", ["--vectors", "VECTORS", "--vectors", "VECTORS"], "has a single embedding; give one file"),
        ("pypantera", ["--collection", "/a.tsv", "--queries", "/b.tsv", "--qrels", "/c"], "collection /a.tsv: there"),
        ("pypantera", ["--data", "DATA", "--output", "DATA/out"], "is read; choose another folder"),
    ],
)
def test_a_wrong_call_is_one_sentence_and_status_2_before_anything_is_prepared(
    study: str, given: list[str], said: str, data: Path, vectors: str, tmp_path: Path
) -> None:
    (tmp_path / "grid.toml").write_text(TINY)
    named = {"GRID": str(tmp_path / "grid.toml"), "DATA": str(data), "VECTORS": vectors, "DATA/out": f"{data}/out"}
    output = [] if "--output" in given else ["--output", str(tmp_path / "out")]
    given = [*(named.get(one, one) for one in given), *output]
    ended = command("evaluate", "study", study, "--config", named["GRID"], *given)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert said in ended.err
    assert not (tmp_path / "out").exists()
    assert sorted(path.name for path in data.iterdir()) == ["blog_gender.csv", "sst2.csv"]


@pytest.mark.usefixtures("never")
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("text,label\na b,1\n", "split"),
        ("text,label,split\na b,1,train\nc d,1,test\n", "1 label among 2 rows"),
        ("text,label,split\na b,1,train\nc d,,test\n", "row 2: the label is missing"),
        ("text,label,split\na b,1,train\nc d,2,train\n", "the split has no test rows"),
    ],
)
def test_a_data_set_that_cannot_be_read_is_told_at_once_with_its_name(
    content: str, said: str, vectors: str, data: Path, tmp_path: Path
) -> None:
    """In every cell it would be a refusal, kept for good, and the status 0."""
    (data / "blog_gender.csv").write_text(content)
    with pytest.raises(UserError, match="blog_gender") as caught:
        opened("collocations", "", Sources(str(data), (vectors,)), tmp_path)
    assert said in str(caught.value)


def test_what_a_study_of_given_data_writes_is_closed_even_in_a_folder_that_was_there(
    vectors: str, data: Path, tmp_path: Path
) -> None:
    (out := tmp_path / "out").mkdir(mode=0o755)
    keys = 'sizes = [4]\nmechanisms = [{ name = "cmp" }]\nepsilons = [1]\n'
    *_, one = opened("comparative-mldp", keys, Sources(str(data), (vectors,)), tmp_path)
    account, _ = running.run_study(one, Local())
    for path in out.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    refused = "sst2: the space has none of its words, so no word can be drawn; give other vectors."
    assert f"Not run: {refused}" in account.notes


def test_the_report_is_written_without_cells_that_failed_which_are_tried_again_and_the_status_is_1(
    vectors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a secret text")

    (tmp_path / "grid.toml").write_text(f'{TINY}sizes = [4]\nmechanisms = [{{ name = "cmp" }}]\nepsilons = [1]\n')
    monkeypatch.setattr(comparative, "word_statistics", fails)
    said = ["evaluate", "study", "comparative-mldp", "--quick", "--config", str(tmp_path / "grid.toml")]
    for _ in range(2):
        ended = command(*said, "--vectors", vectors, "--output", tmp_path / "o", *QUIET)
        assert ended.status == WorkError.exit_status
        assert "1 of 4 cells failed" in ended.err
    told = json.loads((tmp_path / "o" / "study.json").read_text())
    assert len(told["cells"]) == 3
    assert any("ZeroDivisionError" in note for note in told["notes"])
    assert "secret" not in ended.err + json.dumps(told)


def test_a_deviation_is_over_seeds_and_never_over_tasks() -> None:
    """Two tasks of .9 and .1 that no seed changes have deviated by .46."""
    records = [
        {"kind": "task", "options": {"task": task, "seed": seed}, "result": {"cs": value + 0.02 * seed}}
        for task, value in (("a", 0.9), ("b", 0.1))
        for seed in (0, 1)
    ]
    figure = Results(records).figure("cs")
    assert figure is not None
    assert (figure.mean, figure.count) == (pytest.approx(0.51), 2)
    assert figure.deviation == pytest.approx(0.02 / 2**0.5)
    unseeded = Results([{"kind": "words", "options": {}, "result": {"n": one}} for one in (1.0, 3.0)])
    assert unseeded.figure("n") == SeedMean(2.0, 2**0.5, 2)


def test_studies_are_listed_with_their_papers() -> None:
    said = succeeds("evaluate", "study", "--list").out.splitlines()
    assert [line.split(":")[0] for line in said] == list(STUDIES)
