"""Two hundred pairs of opposites (``opposites.tsv``, CC0): how often a release turns one into the other.

    python -m benchmarks opposites [--encoder NAME]

*Denials flipped*: of the pairs in which one sentence denies and the other does not, the share that lose or gain
the denial, a word or ending of ``DENIES``; a release that knows nothing of it has 50 %. *Mistaken*: how often the best
reader, who knows both sentences of a pair, the store and the law, takes one for the other: ``(1 - TV) / 2``. *Judged
opposite*: how often what is released is nearer to the opposite by the vectors of an ``encoder``. *Similarity* is that
of public texts by the built-in vectors. Passages by their exact laws, words by ``DRAWN`` releases; errors over pairs.
Coordinates are added to vectors of length one at a weight.
"""

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import corpusveil as cv
from benchmarks import inputs
from benchmarks.report import Table
from corpusveil.passages.encoder import LENGTH
from corpusveil.passages.law import Exchange, usual_neighbors
from corpusveil.search.inner_products import ProductSearch
from corpusveil.transforms.release.risk import epsilon_at
from corpusveil_evaluate.readers.ngrams.denoise import MARGIN, Denoiser, Search
from corpusveil_evaluate.readers.ngrams.modelling import load_model

FILE = inputs.ROOT / "benchmarks" / "opposites.tsv"
EPSILONS, RISK, DRAWN, RANKS = (6, 8, 10, 12, 14), 0.5, 1 if inputs.SMALLEST else 5, 250
DENIES = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|nor|neither|nowhere|without|hardly|cannot|unable|den(?:y|ies|ied))\b|n't\b"
)
COORDINATES: tuple[Callable[[str], float], ...] = (
    lambda text: 1.0 if DENIES.search(text.lower()) else -1.0,
    lambda text: 1.0 if "?" in text else -1.0,
    lambda text: 1.0 if re.search(r"\b(?:i|me|my|we|us|our)\b", text.lower()) else -1.0,
)
"""Negation, question, first person."""


def pairs() -> list[tuple[str, str, str]]:
    """Return kind, sentence and opposite."""
    lines = FILE.read_text(encoding="utf-8").splitlines()[:: 20 if inputs.SMALLEST else 1]
    return [(kind, first, second) for kind, first, second in (line.split("\t") for line in lines)]


def denies(texts: Sequence[str]) -> npt.NDArray[np.bool_]:
    return np.array([bool(DENIES.search(text.lower())) for text in texts])


def with_coordinates(vectors: Any, texts: Sequence[str], marks: int, weight: float) -> Any:
    """Return int8 vectors with the first coordinates at a weight, of length 127 again."""
    more = np.array([[mark(text) for mark in COORDINATES[:marks]] for text in texts]) * weight
    whole = np.hstack([vectors / LENGTH, more])
    whole *= LENGTH / np.maximum(np.linalg.norm(whole, axis=1, keepdims=True), 1e-9)
    return np.rint(whole).astype(np.int8)


def products(first: Any, second: Any) -> Any:
    return first.astype(np.float32) @ second.astype(np.float32).T / LENGTH**2


class Passages:
    """The store ``en``, the pairs, and a table of what becomes of these."""

    def __init__(self, table: Table, encoder: str | None) -> None:
        self.table, self.store = table, cv.load_store("en")
        self.texts, self.given = self.store.texts.to_pylist(), [text for _, *both in pairs() for text in both]
        self.points = self.encoded(self.store)
        self.own = len(self.texts) - len(self.texts) // 10
        self.topic = products(self.store.vectors[self.own :], self.store.vectors[: self.own])
        self.other = None if encoder is None else cv.Store.of(self.store.texts, self.store.space, encoder=encoder)

    def encoded(self, store: cv.Store) -> Any:
        return store.encoder.encode(pa.array(self.given, pa.large_string()))

    def add(self, name: str, rows: Any, points: Any) -> None:
        """Add rows for these vectors; K by the rule."""
        ranked, _ = ProductSearch(rows[: self.own]).several(rows[self.own :], RANKS)
        nearest, _ = ProductSearch(rows).several(points, RANKS)
        topic = np.take_along_axis(self.topic, ranked.astype(int), 1).mean(axis=0)
        denied, denying = denies(self.texts), denies(self.given).reshape(-1, 2)
        counted = denying[:, 0] != denying[:, 1]
        wrong = denied[nearest].reshape(len(denying), 2, RANKS) != denying[..., None]
        lost = np.where(denying, 1 - denied.mean(), denied.mean())
        judged, floor = (None, 0.0) if self.other is None else self.judged(nearest)
        figures: dict[str, list[str]] = {}
        for epsilon in EPSILONS:
            k = usual_neighbors(epsilon, len(rows))
            exchange = Exchange.at(epsilon, len(rows), k)
            h = exchange.near
            shared = np.array([np.isin(a, b).mean() for a, b in nearest[:, :k].reshape(-1, 2, k)])
            flipped = (h * wrong[..., :k].mean(axis=2) + (1 - h) * lost).mean(axis=1)[counted]
            for what, shares in (
                ("denials flipped", flipped),
                ("mistaken", (1 - h * (1 - shared)) / 2),
                ("similarity", np.array([exchange.mean(topic, float(self.topic.mean()))])),
                *([] if judged is None else [("judged opposite", h * judged[:, :k].mean(axis=1) + (1 - h) * floor)]),
            ):
                figures.setdefault(what, []).append(shown(shares))
        self.table.rows.extend((name, what, *cells) for what, cells in figures.items())

    def judged(self, nearest: Any) -> tuple[Any, float]:
        """Return which of the nearest pieces the other encoder takes for the opposite, [P, K], and a mean over all."""
        assert self.other is not None
        near = products(self.encoded(self.other), self.other.vectors)
        opposite = near.reshape(-1, 2, near.shape[1])[:, ::-1].reshape(near.shape)
        nearer = (opposite > near) + 0.5 * (opposite == near)
        return np.take_along_axis(nearer, nearest.astype(int), 1), float(nearer.mean())


def shown(shares: Any) -> str:
    """Write a mean, with its standard error."""
    error = shares.std(ddof=1) / len(shares) ** 0.5 if len(shares) > 1 else 0
    return f"{shares.mean():.3f}" + (f" ± {error:.3f}" if error else "")


def by_words(table: Table) -> None:
    """Add rows of words, drawn and denoised."""
    model, law = load_model("en"), cv.RingGeometric(cv.load_space("en"))
    at = epsilon_at(law, RISK, cv.TextPolicy())
    denoiser = Denoiser(law, cv.Budget(at.epsilon), cv.TextPolicy(), model, Search(margin=MARGIN))
    texts = [text for _, *both in pairs() for text in both]
    before = denies(texts).reshape(-1, 2)
    flipped = []
    for _ in range(DRAWN):
        release = cv.Release(law, cv.Budget(at.epsilon), key=cv.Key.generate())
        drawn = cv.privatize(texts, release, ids=range(len(texts)))
        flipped.append([denies(out).reshape(-1, 2) != before for out in (drawn, denoiser.readable(drawn))])
    means = np.mean(flipped, axis=0).mean(axis=2)[:, before[:, 0] != before[:, 1]]
    for name, shares in zip(("words, drawn", "words, denoised"), means, strict=True):
        table.rows.append((f"{name}, risk {RISK:g}", "denials flipped", shown(shares), *[""] * (len(EPSILONS) - 1)))


def run(arguments: Sequence[str] = ()) -> list[Table]:
    """Print what flips, of the store ``en`` and of words."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks opposites")
    parser.add_argument("--encoder", help="an encoder that is installed, which judges, and makes vectors of its own")
    table = Table(f"{len(pairs())} pairs of opposites", ("release", "figure", *(f"{one} nats" for one in EPSILONS)))
    passages = Passages(table, parser.parse_args(list(arguments)).encoder)
    texts, given = passages.texts, passages.given
    kinds = [("passages of en", passages.store.vectors, passages.points)]
    if passages.other is not None:
        kinds.append((f"by {passages.other.encoder.name}", passages.other.vectors, passages.encoded(passages.other)))
    for name, rows, points in kinds:
        passages.add(name, rows, points)
        for marks, weight in ((1, 0.2), (len(COORDINATES), 0.35)):
            more = (
                with_coordinates(vectors, some, marks, weight) for vectors, some in ((rows, texts), (points, given))
            )
            passages.add(f"{name}, {marks} coordinates at {weight:g}", *more)
    by_words(table)
    return [table]
