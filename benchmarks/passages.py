"""Which store is best for conversations of customers: of the web, openly licensed, ``en``, or of their own kind.

    python -m benchmarks passages [--keys 3] [--epsilon 4 6 8 10 12] [--risk .5]

6,736 conversations of multiDoGO, customers' turns as they were typed, of five services. Some thousand of them are
public, the others private; those that are near to a public one are left out. A classifier (TF-IDF, logistic regression)
learns the service from 0.7 of the release, and tells it of the other original texts. *Back* is beside its floor, a
random piece of the store.
"""

import argparse
import functools
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

import corpusveil as cv
from benchmarks import inputs, stores
from benchmarks.report import Skipped, Table
from benchmarks.sets import content_words, interval
from benchmarks.units import by_words, epsilon_of
from benchmarks.utility import key_of
from corpusveil.passages.encoder import LENGTH
from corpusveil.passages.figures import NEAR_TWIN
from corpusveil.search.inner_products import ProductSearch
from corpusveil_evaluate.statistics.words_back import words_back
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts
from corpusveil_evaluate.utility.text_classifiers import model_of
from corpusveil_evaluate.utility.training_modes import BASELINE, scores_in

EPSILONS = (4.0, 6.0, 8.0, 10.0, 12.0)
PUBLIC, TRAINED, CHANCE = 3736, 0.7, 1e-9
NEIGHBORS = (1, 3, 10, 30, 100, 200)
BEST_AT = (8.0, 10.0)
"""Epsilons at which every K is tried, too, which a release may not: it would read the private labels."""


@functools.cache
def split() -> tuple[list[str], LabelledTexts, str]:
    """Return public conversations, and the private ones with their services; and a sentence about them."""
    rows = stores.conversations()
    order = np.random.default_rng(0).permutation(len(rows))
    public, private = ([rows[at] for at in some] for some in (order[:PUBLIC], order[PUBLIC:]))
    encode = cv.load_store("en").encoder.encode
    vectors, points = (encode(pa.array([row["text"] for row in some], pa.large_string())) for some in (public, private))
    near = ProductSearch(vectors).several(points, 1)[1][:, 0] * 100 > NEAR_TWIN * LENGTH**2
    kept = [row for row, twin in zip(private, near, strict=True) if not twin]
    parts = np.where(np.random.default_rng(1).random(len(kept)) < TRAINED, "train", "test").tolist()
    texts = [row["text"] for row in kept]
    task = LabelledTexts(texts, [row["service"] for row in kept], None, "service", parts)
    words = int(np.median([len(text.split()) for text in texts]))
    about = (
        f"{len(kept):,} private conversations, {words} words in the median; {int(near.sum()):,} near to a public one."
    )
    return [row["text"] for row in public], task, about


def domains() -> dict[str, Callable[[], cv.Store]]:
    """Return what makes each store; those of their own kind by Python, since the command would refuse their pieces."""
    own = split()[0]

    def both() -> cv.Store:
        return stores.mixed([*own, *stores.opened("open-en 30,000", "document").texts.to_pylist()])

    return {
        "c4-like 100,000": lambda: stores.opened("c4-like 100,000", "document"),
        "open-en 100,000": lambda: stores.opened("open-en 100,000", "document"),
        "en": lambda: stores.opened("en", "document"),
        **{f"own {size:,}": functools.partial(stores.mixed, own[:size]) for size in (500, 1000, PUBLIC)},
        f"own {PUBLIC:,}, open-en 30,000": both,
        f"own {PUBLIC:,}, en": lambda: stores.mixed([*own, *cv.load_store("en").texts.to_pylist()]),
    }


def told(texts: list[str]) -> float:
    """Return how often the service of original texts is told by a classifier of released ones."""
    task = split()[1]
    train, test = task.train_and_test(0)
    guesses = model_of("tfidf", None).fit(task.with_texts(texts).take(train), 0)(task.take(test))
    return float(np.mean([a == b for a, b in zip(guesses, task.take(test).labels, strict=True)]))


def run(arguments: Sequence[str] = ()) -> list[Table]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks passages")
    parser.add_argument("--keys", type=int, default=3)
    parser.add_argument("--epsilon", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--risk", type=float, nargs="*", default=[0.5])
    parser.add_argument("--best", type=float, nargs="*", default=BEST_AT, help="where every K is tried")
    parser.add_argument("--store", nargs="*", help="of those in the table")
    asked = parser.parse_args(list(arguments))
    if (shared := inputs.data()) is None or not (shared / "open-en").is_dir():
        raise Skipped("the shared data and its conversations are not on this machine.")
    _, task, about = split()
    words = content_words(cv.load_space("en"))
    shown = Table(
        "The service of conversations, by store: told of originals; half of the 95 % interval",
        ("store", "ε", "K", "told", "best K", "told by it", "back", "back by chance"),
    )
    for name, made in domains().items():
        if asked.store is not None and name not in asked.store:
            continue
        store = made()

        def texts_at(epsilon: float, key: int, size: int | None = None, store: cv.Store = store) -> list[str]:
            law = cv.PassageExchange(store, size)
            return stores.released(cv.PassageRelease(law, epsilon, key=key_of(str(key))), task.texts)

        floor = words_back(task.texts, texts_at(CHANCE, 0), words)[0]
        for epsilon in asked.epsilon:
            out = [texts_at(epsilon, key) for key in range(asked.keys)]
            back = float(np.mean([words_back(task.texts, texts, words)[0] for texts in out]))
            best = (
                max((told(texts_at(epsilon, 0, size)), size) for size in NEIGHBORS if size <= len(store))
                if epsilon in asked.best else (float("nan"), "")
            )  # fmt: skip
            size = cv.PassageExchange(store).exchange(epsilon).neighbors
            shown.rows.append((name, epsilon, size, interval([told(each) for each in out]), *best[::-1], back, floor))
            print(f"  {shown.rows[-1]}", flush=True)
    for risk in asked.risk:
        epsilon = epsilon_of(risk)
        each = [by_words(task.texts, "conversations", epsilon, key_of(str(key))) for key in range(asked.keys)]
        for text, some in zip(("drawn", "denoised"), zip(*each, strict=True), strict=True):
            back = float(np.mean([words_back(task.texts, texts, words)[0] for texts in some]))
            row = (f"words, risk {risk:g}, {text}", epsilon, "", interval([told(texts) for texts in some]))
            shown.rows.append((*row, "", "", back, ""))
    whole = scores_in(BASELINE, task, task, model_of("tfidf"), 0)
    shown.notes += [about, f"Told from originals: {whole.accuracy:.3f}; the most frequent: {whole.floor_accuracy:.3f}."]
    return [shown]


__all__ = ["run"]
