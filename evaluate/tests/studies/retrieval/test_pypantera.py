"""The study of pyPANTERA: its cells on small data, against known answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpusveil_evaluate.studies import pypantera
from corpusveil_evaluate.studies.cells import Cell
from corpusveil_evaluate.studies.pypantera import STUDY, PypanteraGrid
from corpusveil_evaluate.studies.retrieval.obfuscated_queries import Variants
from corpusveil_evaluate.studies.search_collections import JUDGED
from corpusveil_evaluate.studies.study import read_grid
from corpusveil_evaluate.studies.study_data import Sources, StudyData
from tests.contracts.spaces import small_space, words_of

WORDS = words_of(300)
SEARCHED = {
    "seeds": 1, "epsilons": (0.001, 1e6), "queries": 12, "documents": 200, "variants": 3, "known_item_depth": 5,
    "depth": 5, "train_rows": 150, "test_rows": 60, "mechanisms": ({"name": "cmp"},), "read_first": (),
}  # fmt: skip


def grid(**keys: Any) -> PypanteraGrid:
    shipped = read_grid(STUDY)
    return PypanteraGrid.model_validate({**shipped.model_dump(), **SEARCHED, **keys})


def row(rng: np.random.Generator) -> dict[str, str]:
    """Return a text of 40 words, of which 12 of its own occur in both halves, and a label that its first words tell."""
    label = int(rng.integers(2))
    topic = rng.choice(WORDS[60:], 12, replace=False)
    of_label = rng.choice(WORDS[30 * label : 30 * label + 30], 6)
    words = [*rng.permutation(topic), *of_label, *rng.choice(WORDS[60:], 4), *rng.permutation(topic)]
    return {"text": " ".join(words), "label": f"label {label}"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data sets, vectors, and a judged collection made of them."""
    folder = tmp_path_factory.mktemp("pypantera")
    rng = np.random.default_rng(0)
    rows = [{**row(rng), "split": "train" if n < 150 else "test"} for n in range(210)]
    for name in ("sst2", "blog_gender"):
        (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(one) for one in rows))
    space = small_space(words=WORDS)
    np.savez(folder / "vectors.npz", vocab=np.array(WORDS), vectors=space.vectors)
    texts = [one["text"] for one in rows]
    (folder / "passages.tsv").write_text("".join(f"p{n}\t{text}\n" for n, text in enumerate(texts)))
    (folder / "queries.tsv").write_text("".join(f"{n}\t{' '.join(texts[n].split()[:8])}?\n" for n in range(12)))
    lost = "0 0 gone 2\n0 0 p3 1\n"
    (folder / "qrels").write_text(lost + "".join(f"{n} 0 p{n} {2 + n % 2}\n" for n in range(10)))
    return folder


def ground(folder: Path, *, judged: bool = False, **sources: Any) -> StudyData:
    files = ("collection", "passages.tsv"), ("queries", "queries.tsv"), ("qrels", "qrels")
    given = {name: str(folder / file) for name, file in files} if judged else {}
    of = Sources(data=str(folder), **{**given, **sources})
    made = StudyData(str(folder / ("judged" if judged else "items")), of, STUDY.needs(grid()))
    made._spaces["words"] = small_space(words=WORDS)
    return made


def at(kind: str, epsilon: float, **options: Any) -> Cell:
    return Cell(kind, {**options, "mechanism": "cmp", "parameters": {}, "epsilon": epsilon, "seed": 0})


@pytest.mark.parametrize("judged", [False, True])
def test_without_noise_variants_find_what_the_plain_query_finds(folder: Path, judged: bool) -> None:
    """And at an epsilon near 0 hardly anything, like random words."""
    of, name = ground(folder, judged=judged), JUDGED if judged else "blog_gender"
    STUDY.prepare(grid(), of)
    plain = STUDY.work(Cell("plain", {"collection": name, "seed": 0}), grid(), of)
    kept = STUDY.work(at("search", 1e6, collection=name), grid(), of)
    lost = STUDY.work(at("search", 0.001, collection=name), grid(), of)
    assert kept["jaccard"] == pytest.approx(1)
    for search in grid().searches:
        for measure in ("pool_recall", "ndcg", "reciprocal", "pool"):
            assert kept[f"{search}:{measure}"] == pytest.approx(plain[f"{search}:{measure}"])
    assert plain["bm25:ndcg"] > 0.6
    assert max(lost["bm25:ndcg"], plain["random:bm25:ndcg"]) < 0.3
    assert lost["jaccard"] < 0.1
    assert (kept["total_epsilon"], plain["known_words"]) == (3e6, 1)
    assert (plain["queries"], plain["missing"]) == ((10, 1) if judged else (12, 0))


def test_only_test_texts_are_private_and_training_ones_original(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = ground(folder)
    known = STUDY.work(Cell("baseline", {"task": "sst2", "seed": 0}), grid(), of)
    kept = STUDY.work(at("task", 1e6, task="sst2"), grid(), of)
    lost = STUDY.work(at("task", 0.001, task="sst2"), grid(), of)
    measure = "original-private:accuracy"
    assert kept[measure] == known[f"prepared:{measure}"] == known["original-original:accuracy"] > 0.85
    assert lost[measure] < lost["original-private:floor"] + 0.25
    task = of.task("sst2", 150, 60)
    seen = []
    monkeypatch.setattr(
        pypantera, "obfuscate", lambda texts, *_, **__: seen.append(texts) or Variants(tuple(texts), drawn, 1.0)
    )
    wanted = [task.labels[n] for n in task.train_and_test(0)[1]]
    drawn = tuple((text, text, "") for text in [task.texts[n] for n in task.train_and_test(0)[1]])
    found = STUDY.work(at("task", 1.0, task="sst2"), grid(), of)
    assert seen == [[texts[0] for texts in drawn]]
    constant = max(wanted.count(label) for label in set(wanted)) / len(wanted)
    assert found["voted:accuracy"] == kept[measure], "two of three variants are the text itself"
    assert found[measure] in (
        pytest.approx((2 * kept[measure] + constant) / 3), pytest.approx((2 * kept[measure] + 1 - constant) / 3),
    )  # fmt: skip


def test_every_mechanism_of_the_grid_can_be_made(folder: Path) -> None:
    """Also where a parameter is a whole number: a grid that made 10.0 of 10 lost CusText in every cell."""
    for one in read_grid(STUDY).mechanisms:  # type: ignore[attr-defined]
        assert ground(folder).mechanism(one.name, **one.parameters).name == one.name
