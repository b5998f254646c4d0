"""The published studies: what their cells measure, against known answers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpusveil.errors import DataError
from corpusveil.jobs.local import Local
from corpusveil_evaluate.studies import adversarial_robustness, comparative
from corpusveil_evaluate.studies.cells import Cell, Results
from corpusveil_evaluate.studies.comparative import METRICS, score_of
from corpusveil_evaluate.studies.run_study import prepare_study, run_study
from corpusveil_evaluate.studies.study import Study, find, read_grid
from corpusveil_evaluate.studies.study_data import Sources, StudyData
from tests.contracts.spaces import words_of
from tests.mechanisms.spaces import normal

SMALL = "seeds = 2\ntrain_rows = 60\ntest_rows = 30\n"


def opened(name: str, text: str, sources: Sources, folder: Path) -> tuple[Study, Any, StudyData, Any]:
    """Return a study, its grid with other keys, its ground and what runs it."""
    file = folder / "grid.toml"
    file.write_text(SMALL + text)
    study = find(name)
    grid = read_grid(study, quick=True, file=str(file))
    one = prepare_study(study, grid, sources, str(folder / "out"), Local())
    return study, grid, one.data, one


def test_an_attacker_who_denoises_first_has_a_figure_and_a_row_of_its_own(tmp_path: Path) -> None:
    """Where public text shows in which order words stand he learns more; nothing else is another."""
    rng = np.random.default_rng(1)
    words = [f"w{a}{b}" for a in "abcdefghijklmnop" for b in "abcdefghijklmno"]
    begins = rng.integers(200, size=400)
    lines = [" ".join(words[first : first + 40]) for first in begins.tolist()]
    (tmp_path / "data").mkdir()
    (tmp_path / "public.txt").write_text("\n".join(lines))
    np.savez(tmp_path / "v.npz", vocab=np.array(words), vectors=rng.normal(size=(240, 8)).astype(np.float32))
    rows = [{"text": line, "label": f"l{first // 20}", "split": "test" if n % 3 else "train"}
            for n, (first, line) in enumerate(zip(begins.tolist(), lines, strict=True))]  # fmt: skip
    for name in ("sst2", "blog_gender"):
        (tmp_path / "data" / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    sources = Sources(
        data=str(tmp_path / "data"), vectors=(str(tmp_path / "v.npz"),), corpus=(str(tmp_path / "public.txt"),)
    )
    keys = 'tasks = ["sst2"]\nattacks = ["blog_gender"]\nepsilons = [0.2]\nlists = ["L0"]\n'
    keys += 'on_lists = ["diffractor-geometric"]\nbeside = [{ name = "tem" }]\n'
    study, grid, ground, one = opened("1-diffractor", keys, sources, tmp_path)
    at = {"task": "blog_gender", "mechanism": "diffractor-geometric", "parameters": {}, "space": "L0", "seed": 0}
    found = study.work(Cell("attack", {**at, "epsilon": 0.2}), grid, ground)
    unread = grid.model_copy(update={"read_first": ()})
    drawn = study.work(Cell("attack", {**at, "epsilon": 0.2}), unread, ground)
    assert {name: value for name, value in found.items() if not name.startswith("read:")} == drawn
    assert found["read:original-private:accuracy"] > found["original-private:accuracy"] + 0.1
    account, _ = run_study(one, Local())
    table = next(table for table in account.tables if table.title.startswith("Static attackers"))
    assert [row[1] for row in table.rows] == [
        "diffractor-geometric, L0",
        "diffractor-geometric, L0, denoised first",
        "tem",
    ]


def test_stop_words_are_kept_by_lists_and_by_whom_the_grid_names(
    vectors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The published lead over CMP is in part that lists keep stop words: CMP runs by both rules."""
    keys = 'epsilons = [1]\nlists = ["L0"]\non_lists = ["diffractor-geometric"]\nread_first = []\n'
    keys += 'beside = [{ name = "cmp" }, { name = "tem" }]\nalso_kept = ["cmp"]\nattacks = []\nbundled_attacks = []\n'
    study, grid, ground, one = opened("1-diffractor", keys, Sources(vectors=(vectors,)), tmp_path)
    kept = []
    monkeypatch.setattr(
        StudyData, "private", lambda self, texts, of, budget, seed, policy, **_: kept.append(policy) or list(texts)
    )
    rules = {}
    for cell in one.cells:
        if cell.kind == "task" and cell["seed"] == 0:
            study.work(cell, grid, ground)
            rules[cell["mechanism"], cell["space"]] = kept[-1].stop_words
    assert {policy.unknown_words for policy in kept} == {"keep"}
    assert rules == {
        ("diffractor-geometric", "L0"): "keep", ("cmp", "words, stop words kept"): "keep",
        ("cmp", "words"): "privatize", ("tem", "words"): "privatize",
    }  # fmt: skip
    records = [
        {"kind": "task", "options": {"mechanism": name, "space": space, "epsilon": 1}, "result": {"cs": value}}
        for (name, space), value in zip(rules, (0.9, 0.1, 0.6, 0.2), strict=True)
    ]
    note = study.account(Results(records), grid, ground).tables[0].notes[-1]
    assert "leads cmp by 0.80, 0.50 of it since" in note


def test_graded_pairs_are_scored_by_the_correlation_of_their_grades(tmp_path: Path) -> None:
    """STS-B, in its form: two sentences, a number from 0 to 5, and test rows whose grade is hidden."""
    rng, words, data = np.random.default_rng(0), words_of(24), tmp_path / "data"
    data.mkdir()
    rows = []
    for row in range(130):
        order, kept = rng.permutation(words).tolist(), int(rng.integers(9))
        other = [*order[:kept], *order[8 : 16 - kept]]
        split, grade = ("train", "validation", "test")[row // 60], 5 * kept / 8
        rows.append(f"{' '.join(order[:8])},{' '.join(other)},{grade if row < 120 else -1.0},{split}\n")
    head = "text,text2,label,split\n"
    (data / "stsb.csv").write_text(head + "".join(rows))
    np.savez(tmp_path / "v.npz", vocab=np.array(words), vectors=normal(24, 6))
    keys = 'epsilons = [0.01, 1000]\nlists = ["L2"]\non_lists = ["diffractor-geometric"]\nbeside = []\n'
    keys += "also_kept = []\nread_first = []\nwords = 10\n"
    sources = Sources(str(data), (str(tmp_path / "v.npz"),))
    study, grid, ground, one = opened("1-diffractor", keys, sources, tmp_path)
    whole = study.work(Cell("baseline", {"task": "stsb", "seed": 0}), grid, ground)
    assert (whole["original-original:floor"], len(ground.task("stsb", 60, 30))) == (0, 90)
    assert 0.7 < whole["original-original:accuracy"] < 1
    account, _ = run_study(one, Local())
    (lost, kept), known = account.tables[0].rows, 100 * whole["original-original:accuracy"]
    assert [row[:2] for row in (lost, kept)] == [("diffractor-geometric, L2", 0.01), ("diffractor-geometric, L2", 1000)]
    assert lost[2] > known - 40
    assert kept[2] == pytest.approx(0, abs=1)
    assert [lost[-1] < 0.4, kept[-1] > 0.99] == [True, True], "the risk"
    for label in ("much", "nan", "1e400", "５"):
        (data / "stsb.csv").write_text(head + f"a,b,{label},train\n")
        with pytest.raises(DataError, match="stsb, row 1: the label is not a number"):
            StudyData(ground.folder, sources, ground.needs).task("stsb", 60, 30)


@pytest.fixture(scope="module")
def collocated(vectors: str, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    grid = 'epsilons = [1, 10000]\nstrategies = ["s1", "s2", "s3", "s4"]\nmechanism = { name = "ring-geometric" }\n'
    grid += "dimensions = 8\nepochs = 1\nread_first = true\njoined_scale = 9.7\n"
    sources = Sources(vectors=(vectors,), corpus=(str(corpus),))
    return opened("collocations", grid, sources, tmp_path_factory.mktemp("collocated"))


@pytest.mark.slow
def test_from_a_raw_corpus_to_tables_in_one_run(collocated: Any) -> None:
    """Collocations of the corpus are found, S1 is run on both spaces, every claim is answered from the cells."""
    _, _, ground, one = collocated
    account, page = run_study(one, Local())
    tables = {table.title: table for table in account.tables}
    assert tables["The public corpus"].rows[0][:3] == (1200, 1200, 1200 * 11)
    assert any("san_marino" in word for word in ground.space("corpus-gst").vocabulary.words)
    scales = {name: ground.scale(name) for name in ("corpus-word", "corpus-gst", "corpus-mst")}
    assert scales == {"corpus-word": "4.85", "corpus-gst": "9.7", "corpus-mst": "9.7"}
    assert ground.scale("words") not in ("4.85", "9.7"), "given vectors are left as they are"
    assert any("corpus-gst: " in note and "median distance 9.7" in note for note in account.notes)
    strategies = [row[2] for row in tables["Similarity of meaning"].rows]
    assert strategies == ["S1, given vectors", "S1, of the corpus", "S2", "S3", "S4"]
    attackers = tables["Attackers and utility together, macro F1"].rows
    assert [row[1] for row in attackers[-2:]] == ["original", "constant"]
    assert attackers[-2][6] == 0.0
    read = {row[1]: row[7:9] for row in attackers[:-2]}
    assert all(read[name] == (None, None) for name in ("S1, given vectors", "S1, of the corpus", "S2"))
    assert all(None not in read[name] for name in ("S3", "S4")), "a reader sees how many units a text has"
    for row in attackers[:-2]:
        means = [figure.mean for figure in (*row[3:5], *row[7:9]) if figure is not None]
        assert row[9] == max(attackers[-1][9], *means)
    told = [check.same for check in account.checks if "attacker" not in check.claim and "gain" not in check.claim]
    assert told
    assert None not in told  # an attacker can be within a standard error of so few texts
    assert Path(page).is_file()
    assert "text" not in "".join(path.name for path in Path(ground.folder, "cells", "done").iterdir())


@pytest.fixture(scope="module")
def compared(vectors: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    grid = "sizes = [4, 16]\nepsilons = [1, 1000]\nwords = 10\nruns = 20\n"
    grid += 'mechanisms = [{ name = "syntf" }, { name = "cmp" }, { name = "truncated-gumbel" }]\n'
    return opened("comparative-mldp", grid, Sources(vectors=(vectors,)), tmp_path_factory.mktemp("compared"))


@pytest.mark.slow
def test_every_mechanism_has_its_five_metrics_and_puc_by_the_formula(compared: Any) -> None:
    *_, one = compared
    account, _ = run_study(one, Local())
    table = next(table for table in account.tables if table.title == "bundled-sources")
    assert len(table.rows) == 3 * 2 * 2
    by = {(row[0], row[1], row[2]): dict(zip(table.columns, row, strict=True)) for row in table.rows}
    row = by["cmp", 16, 1000.0]
    assert row["N_w"] == pytest.approx(100)  # so large an epsilon changes nothing
    assert row["PP"] < by["cmp", 16, 1.0]["PP"]  # but words that the space lacks
    whole = float(table.notes[0].split()[1].rstrip(","))
    five = [row[name] for name in ("N_w", "S_w", "PP", "CS", "LOW")]
    metrics = dict(zip(METRICS, five, strict=True))
    assert row["PUC 0.75"] == pytest.approx(score_of(row["accuracy"].mean / 100, whole / 100, metrics, 0.75), abs=0.1)
    assert any("truncated-gumbel is defined only above" in note for note in account.notes)
    assert by["truncated-gumbel", 4, 1.0]["accuracy"] is None


@pytest.mark.parametrize(
    ("baseline", "accuracy", "five", "printed"),
    [
        (77.30, 72.58, (32.1, 5.1, 70.5, 62.9, 70.5), (82.22, 70.54, 58.86)),  # SynTF 50
        (77.30, 52.10, (0.0, 97.5, 98.2, 33.5, 46.8), (69.67, 71.94, 74.21)),  # CMP 50
        (84.53, 81.24, (27.7, 13.6, 70.9, 67.5, 25.0), (87.05, 77.98, 68.92)),  # truncated Gumbel 300
    ],
)
def test_puc_is_that_of_the_rows_of_its_paper(
    baseline: float, accuracy: float, five: tuple[float, ...], printed: tuple[float, ...]
) -> None:
    metrics: dict[str, float | None] = dict(zip(METRICS, five, strict=True))
    for alpha, value in zip((0.75, 0.5, 0.25), printed, strict=True):
        assert score_of(accuracy / 100, baseline / 100, metrics, alpha) == pytest.approx(value, abs=0.0051)
    below, at_0 = (score_of(accuracy, baseline, metrics | {"cs": cs}, 0.5) for cs in (-7.0, 0.0))
    assert below == at_0, "a cosine below 0 counts as 0"
    for missing in ((accuracy, baseline, metrics | {"cs": None}), (None, baseline, metrics), (accuracy, None, metrics)):
        assert score_of(*missing, 0.5) is None


def test_the_regression_finds_coefficients_that_were_put_in() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, 5))
    points[:, 4] = 2 + points[:, :4] @ np.array([1.0, -2.0, 0.5, 3.0])
    fitted, fit = comparative.regression(points)
    assert fitted == pytest.approx([2, 1, -2, 0.5, 3])
    assert fit == pytest.approx(1)
    points[:, 4] = rng.normal(size=30)
    assert comparative.regression(points)[1] < 0.6


def test_a_tiny_study_of_robustness_has_all_figures_and_keeps_its_promises(tmp_path: Path) -> None:
    """On sst2 and rte, whose labels words tell, with vectors that have them as a direction."""
    rng, words, data = np.random.default_rng(0), words_of(60), tmp_path / "data"
    data.mkdir()
    for name, pairs in (("sst2", False), ("rte", True)):
        with open(data / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(["text", *(["text2"] if pairs else []), "label", "split"])
            for row in range(130):
                label = int(rng.integers(2))
                text = " ".join(rng.choice(words[30 * label : 30 * label + 30], 5))
                premise = [" ".join(rng.choice(words, 4))] if pairs else []
                out.writerow([*premise, text, label, "train" if row < 100 else "test"])
    vectors = 40 * normal(60, 6)
    vectors[:, 0] += np.where(np.arange(60) < 30, -60, 60)
    np.savez(data / "vectors.npz", vocab=np.array(words), vectors=vectors)
    grid = read_grid(adversarial_robustness.STUDY, quick=True).model_copy(
        update={
            "seeds": 1, "train_rows": 100, "test_rows": 30,
            "cmp_epsilons": (0.01, 20.0), "gumbel_log_epsilons": (2.0, 86.0),
            "network_epochs": 12, "members": 5, "generations": 3, "words": 20, "runs": 20, "width": 16,
        }
    )  # fmt: skip
    sources = Sources(str(data), (str(data / "vectors.npz"),))
    one = prepare_study(adversarial_robustness.STUDY, grid, sources, str(tmp_path / "out"), Local(1))
    assert len(one.cells) == 1 + 2 * 4 + 2 * 4 * 3
    account, page = run_study(one, Local(1))
    results = Results(json.loads(Path(page).with_name("study.json").read_bytes())["cells"])
    assert not results.refused
    for record in results.where("attack").records:
        found = record["result"]
        assert found["adversarial"] <= min(found["clean"], found["private"])
        assert found["certified"] <= found["clean"] + 1e-9
    easy = results.where("attack", task="sst2", regime="normal")
    assert easy.mean("clean") > 0.9
    # truncated Gumbel draws among few near words, which have the same label here, so it costs little at any epsilon
    for mechanism, low, high, least in (("cmp", 0.01, 20.0, 0.2), ("truncated-gumbel", 2.0, 86.0, 0.0)):
        some = easy.where(mechanism=mechanism)
        fallen, stands = (some.where(at=at).mean("adversarial") for at in (low, high))
        assert fallen is not None
        assert stands is not None
        assert fallen + least <= stands
        assert stands > 0.8
    names = {one.title for one in account.tables}
    assert {"N_w and S_w over epsilon", "S_w at equal N_w", "Accuracy under cmp"} <= names
    assert json.loads((tmp_path / "out" / "study.json").read_text())["checks"]
    assert Path(page).exists()
    assert all(check.differs for check in account.checks)
    blind = [
        {**one, "result": dict.fromkeys(one["result"], 0.5)} if one["kind"] == "baseline" else one
        for one in results.records
    ]
    for checks, same in (
        (account.checks, True),
        (adversarial_robustness.STUDY.checks(Results(blind), grid, one.data), None),
    ):
        assert [check.same for check in checks if "learns rte" in check.claim] == [same], "only if words tell labels"
    rises = [check for check in account.checks if "N_w rises" in check.claim]
    assert [check.same for check in rises] == [True, True]
