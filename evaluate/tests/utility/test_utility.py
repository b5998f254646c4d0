"""Utility: tasks from files, scores against scikit-learn's, floors, modes of training, and paired differences."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics
from sklearn.dummy import DummyClassifier

from corpusveil.errors import (
    DataError,
    SettingError,
    UserError,
)
from corpusveil.spaces import Space
from corpusveil_evaluate.attacks.attribute_inference import relative_gain
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts, read_task, split_rows
from corpusveil_evaluate.utility.text_classifiers import (
    Averaged,
    Model,
    Predictor,
    Tfidf,
    model_of,
)
from corpusveil_evaluate.utility.training_modes import (
    BASELINE,
    MODES,
    paired_difference,
    score,
    scores_in,
    train_and_test,
)
from tests.calls import refused
from tests.contracts.spaces import small_space, words_of

ROWS = [
    {"text": "good, film", "other": "b", "label": 1, "part": "train"},
    {"text": 'a "bad" one', "other": "d", "label": 0, "part": "validation"},
    {"text": "naïve", "other": "f", "label": 1, "part": "test"},
]


def write(folder: Path, form: str) -> str:
    path = folder / f"reviews{form}"
    if form == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        path.write_text(
            'text,other,label,part\n"good, film",b,1,train\n"a ""bad"" one",d,0,validation\nnaïve,f,1,test\n'
        )
    return str(path)


@pytest.mark.parametrize("form", [".jsonl", ".csv"])
def test_every_form_gives_the_same_task(tmp_path: Path, form: str) -> None:
    """Labels are text whatever they were; a split may call development validation."""
    task = read_task(write(tmp_path, form), "reviews", second="other", split="part")
    assert task.texts == ("good, film", 'a "bad" one', "naïve")
    assert task.labels == ("1", "0", "1")
    assert task.pairs == ("b", "d", "f")
    assert task.split == ("train", "dev", "test")
    assert task.name == "reviews"
    assert task.classes == ("0", "1")
    train, test = task.train_and_test(7)
    assert (train.tolist(), test.tolist()) == ([0], [2])


def test_without_a_test_part_development_is_tested() -> None:
    task = LabelledTexts(["a", "b", "c"], ["x", "y", "x"], split=["train", "dev", "train"])
    assert [rows.tolist() for rows in task.train_and_test(0)] == [[0, 2], [1]]
    with pytest.raises(DataError):
        LabelledTexts(["a", "b"], ["x", "y"], split=["train", "train"]).train_and_test(0)


def test_a_split_by_seed_is_complete_and_pinned() -> None:
    """Another NumPy, or another order of parts, would test on what an earlier run trained on."""
    parts = split_rows(100, 3, (0.8, 0.1, 0.1))
    assert [part.size for part in parts] == [80, 10, 10]
    assert sorted(np.concatenate(parts)) == list(range(100))
    assert split_rows(12, 0, (0.75, 0.25))[-1].tolist() == [1, 8, 10]


def test_what_is_wrong_is_refused() -> None:
    two = {"texts": ["a", "b"], "labels": ["x", "y"]}
    wrong: list[tuple[dict[str, object], type[UserError]]] = [
        ({"texts": ["a"]}, SettingError),
        ({"labels": ["x", None]}, DataError),
        ({"labels": [0.5, 1.0]}, DataError),
        ({"texts": ["a", None]}, DataError),
        ({"pairs": ["c"]}, SettingError),
        ({"split": ["train", "other"]}, DataError),
        ({"texts": "ab"}, SettingError),
    ]
    for arguments, error in wrong:
        with pytest.raises(error):
            LabelledTexts(**{**two, **arguments})  # type: ignore[arg-type]


def test_files_that_hold_no_task_are_refused(tmp_path: Path) -> None:
    for name, content in {"plain.txt": "a\n", "same.csv": "text,label\na,x\nb,x\n", "none.jsonl": ""}.items():
        (tmp_path / name).write_text(content)
    for path, error in {
        write(tmp_path, ".jsonl"): DataError,
        str(tmp_path / "plain.txt"): DataError,
        str(tmp_path / "same.csv"): DataError,
        str(tmp_path / "none.jsonl"): DataError,
    }.items():
        with pytest.raises(error):
            read_task(path, "task", second="gone" if "reviews" in path else None)
    with pytest.raises(SettingError):
        split_rows(10, 0, (0.5, 0.6))
    with pytest.raises(DataError):
        split_rows(3, 0)


WORDS = words_of(60)


@pytest.fixture(scope="module")
def space() -> Space:
    return small_space(words=WORDS)


def made(rows: int = 300, seed: int = 0, *, pairs: bool = False) -> LabelledTexts:
    """Return texts of 12 words whose half of the vocabulary tells the label, or pairs of equal or other words."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < 0.7).astype(int)

    def text(words: slice) -> str:
        return " ".join(rng.choice(WORDS[words], 12))

    if not pairs:
        return LabelledTexts(
            [text(slice(30 * label, 30 * label + 30)) for label in labels], labels.tolist(), name="made"
        )
    first = [text(slice(None)) for _ in labels]
    same = [" ".join(sorted(one.split())) for one in first]
    second = [one if label else text(slice(None)) for one, label in zip(same, labels, strict=True)]
    return LabelledTexts(first, labels.tolist(), second, "pairs")


def noise(task: LabelledTexts, seed: int) -> list[str]:
    rng = np.random.default_rng(1000 + seed)
    return [" ".join(rng.choice(WORDS, 12)) for _ in task.texts]


def test_scores_are_those_of_scikit_learn() -> None:
    """Also where a label is never predicted; the floor is its classifier of the majority."""
    rng = np.random.default_rng(2)
    for classes in (2, 3, 7):
        for _ in range(20):
            trained = rng.integers(0, classes, 60).astype(str).tolist()
            labels = rng.integers(0, classes, 15).astype(str).tolist()
            told = score(labels[::-1], labels, trained)
            assert told.accuracy == pytest.approx(metrics.accuracy_score(labels, labels[::-1]))
            constant = DummyClassifier(strategy="most_frequent").fit(np.zeros((60, 1)), trained)
            same = constant.predict(np.zeros((15, 1))).tolist()
            assert told.floor_accuracy == pytest.approx(metrics.accuracy_score(labels, same))


@pytest.mark.parametrize(("name", "pairs"), [("tfidf", False), ("vectors", True)])
def test_models_learn_what_is_there(space: Space, name: str, pairs: bool) -> None:
    """And nothing from texts that have nothing to do with the labels."""
    train, test = made(400, 1, pairs=pairs), made(200, 2, pairs=pairs)
    model = model_of(name, space)
    learnt = train_and_test(train, test, model)
    assert learnt.accuracy > max(0.9, learnt.floor_accuracy + 0.1)
    without = train_and_test(train.with_texts(noise(train, 1)), test.with_texts(noise(test, 2)), model)
    assert without.accuracy < without.floor_accuracy + 0.08


def test_modes_train_and_test_on_what_they_say() -> None:
    """A model that only remembers its inputs shows which texts it was fitted and tested on."""
    task = LabelledTexts([f"o{n}" for n in range(20)], ["x", "y"] * 10, split=(["train"] * 15 + ["test"] * 5))
    private = task.with_texts([f"p{n}" for n in range(20)])
    seen: list[tuple[str, str]] = []

    class Remembering:
        name, seeded = "remembering", True

        def fit(self, train: LabelledTexts, seed: int) -> Predictor:
            assert len(train) == 15
            trained = train.texts[0][0]

            def predict(test: LabelledTexts) -> list[str]:
                assert [int(text[1:]) for text in test.texts] == list(range(15, 20))
                seen.append((trained, test.texts[0][0]))
                return ["x"] * len(test)

            return predict

    for mode in (*MODES, BASELINE):
        scores_in(mode, task, private, Remembering(), 0)
    assert seen == [("p", "p"), ("p", "o"), ("o", "p"), ("o", "o")]


def test_a_paired_interval_is_students() -> None:
    a, b = np.array([0.81, 0.79, 0.84, 0.80, 0.83]), np.array([0.80, 0.75, 0.80, 0.79, 0.77])
    low, high = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert paired_difference(a, b) == pytest.approx((np.mean(a - b), low, high))


def test_models_say_what_they_lack(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    task = LabelledTexts(["a", "b"], ["x", "y"])
    for call, error in [
        (lambda: model_of("vectors"), SettingError),
        (lambda: Tfidf().fit(task.with_labels(["x", "x"]), 0), DataError),
        (lambda: model_of("bert"), SettingError),
        (lambda: Tfidf().fit(task.with_texts(["...", "?"]), 0), DataError),
        (lambda: Tfidf().fit(task, 0)(LabelledTexts(["a", "b"], ["x", "y"], ["c", "d"])), SettingError),
    ]:
        with pytest.raises(error):
            call()
    model: Model = Averaged(space)
    assert model.fit(made(50), 0)(made(50))[0] in {"0", "1"}
    for name in [name for name in sys.modules if name.startswith("sklearn")]:
        monkeypatch.setitem(sys.modules, name, None)
    with refused("missing-package", "pip install scikit-learn"):
        Tfidf().fit(task, 0)


def test_a_classifier_is_trained_to_its_optimum_where_the_signal_is_weak() -> None:
    """Long texts of many words have small gradients: training that stops at 0.001 here has not begun."""
    rng = np.random.default_rng(0)
    words, tilt, labels = np.array([f"w{number}" for number in range(2000)]), np.linspace(0.8, 1.2, 2000), ["a", "b"]
    laws = [share / share.sum() for share in (tilt, tilt[::-1])]
    texts = [" ".join(rng.choice(words, 150, p=laws[number % 2])) for number in range(600)]
    train, test = LabelledTexts(texts[:400], labels * 200), LabelledTexts(texts[400:], labels * 100)
    assert train_and_test(train, test, Tfidf()).accuracy > 0.7


def test_relative_gain_is_of_figures_above_zero() -> None:
    with pytest.raises(SettingError):
        relative_gain(0.5, 0, 0.5, 0.5)
