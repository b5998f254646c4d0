"""The study of adversarial robustness: tiny grids on made data, and checks that say yes, no and nothing."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpusveil.jobs.local import Local
from corpusveil_evaluate.studies import adversarial_robustness as study
from corpusveil_evaluate.studies.run_study import PreparedStudy, prepare_study, run_study
from corpusveil_evaluate.studies.study import read_grid
from corpusveil_evaluate.studies.study_data import Sources
from tests.contracts.spaces import words_of
from tests.mechanisms.spaces import normal

WORDS = words_of(60)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with sst2 and rte, whose labels words tell, and vectors that have them as a direction."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name, pairs in (("sst2", False), ("rte", True)):
        with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(["text", *(["text2"] if pairs else []), "label", "split"])
            for row in range(130):
                label = int(rng.integers(2))
                text = " ".join(rng.choice(WORDS[30 * label : 30 * label + 30], 5))
                premise = [" ".join(rng.choice(WORDS, 4))] if pairs else []
                out.writerow([*premise, text, label, "train" if row < 100 else "test"])
    vectors = 40 * normal(len(WORDS), 6)
    vectors[:, 0] += np.where(np.arange(len(WORDS)) < 30, -60, 60)
    np.savez(folder / "vectors.npz", vocab=np.array(WORDS), vectors=vectors)
    return folder


def prepared(data: Path, output: Path, **other: Any) -> PreparedStudy:
    grid = read_grid(study.STUDY, quick=True).model_copy(
        update={
            "seeds": 1, "train_rows": 100, "test_rows": 30,
            "cmp_epsilons": (0.01, 20.0), "gumbel_log_epsilons": (2.0, 86.0),
            "network_epochs": 12, "members": 5, "generations": 3, "words": 20, "runs": 20, "width": 16, **other,
        }
    )  # fmt: skip
    return prepare_study(study.STUDY, grid, Sources(str(data), (str(data / "vectors.npz"),)), str(output), Local(1))


def test_a_tiny_study_has_all_figures_and_keeps_its_promises(data: Path, tmp_path: Path) -> None:
    one = prepared(data, tmp_path)
    assert len(one.cells) == 2 * 4 + 2 * 4 * 3
    account, page = run_study(one, Local(1))
    results = one.done()
    assert not results.refused
    for record in results.where("attack").records:
        found = record["result"]
        assert found["adversarial"] <= min(found["clean"], found["private"])
        assert found["certified"] <= found["certified_reach"] <= found["clean"] + 1e-9
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
    assert json.loads((tmp_path / "study.json").read_text())["checks"]
    assert Path(page).exists()
    assert all(check.differs for check in account.checks)
    rises = [check for check in account.checks if "N_w rises" in check.claim]
    assert [check.same for check in rises] == [True, True]
