"""Text that the dependencies ship, as labeled tasks for runs without a data set.

The labels are properties of the text: the article of a passage (in place of an author), whether it is news, whether one
passage continues another. ``topics`` makes another label from vectors, which is constructed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from corpusveil.collocations.public_texts import encyclopedia, news
from corpusveil.errors import DataError
from corpusveil.spaces import Space
from corpusveil_evaluate.statistics.encoders import AveragedVectors
from corpusveil_evaluate.utility.labelled_texts import TEST, TRAIN, LabelledTexts

PASSAGE_WORDS = 40
"""The words of a passage, which continues until its sentence ends."""
LONGEST = 10
"""The number of articles to distinguish."""
TEST_SHARE = 0.25
TOPICS = 10
"""Clusters, as in the studies' substitute for a second label."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def passages(text: str, words: int = PASSAGE_WORDS) -> list[str]:
    """Cut a text into passages of whole sentences, each of this many words or a few more; the rest is left out."""
    made: list[str] = []
    pending: list[str] = []
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith(("=", "*", "#", "|", ":", "!", "{")):
            continue  # headings, lists and tables are not prose
        for sentence in _SENTENCE.split(line.strip()):
            pending += sentence.split()
            if len(pending) >= words:
                made.append(" ".join(pending))
                pending = []
    return made


def articles() -> LabelledTexts:
    """Passages of the longest articles of the encyclopedia, labeled by article, in place of authors."""
    long = sorted(encyclopedia(), key=lambda text: (-len(text), text))[:LONGEST]
    rows = [(passage, f"article {number}") for number, text in enumerate(long) for passage in passages(text)]
    return _task("bundled-articles", rows)


def sources() -> LabelledTexts:
    """Passages of news and as many of the encyclopedia, labeled by which they are."""
    of_news = [passage for text in news() for passage in passages(text)]
    other = [passage for text in encyclopedia() for passage in passages(text)]
    few = np.sort(np.random.default_rng(0).permutation(len(other))[: len(of_news)]).tolist()
    return _task("bundled-sources", [(text, "news") for text in of_news] + [(other[at], "encyclopedia") for at in few])


def pairs() -> LabelledTexts:
    """Two passages of one article, labeled by whether the second continues the first."""
    rng = np.random.default_rng(0)
    rows, second = [], []
    for text in encyclopedia():
        cut = passages(text, PASSAGE_WORDS // 2)
        for at in range(0, len(cut) - 3, 4):
            goes_on = bool(rng.integers(2))
            far = int(rng.choice([n for n in range(len(cut)) if abs(n - at) > 1]))
            rows.append((cut[at], "goes on" if goes_on else "does not"))
            second.append(cut[at + 1 if goes_on else far])
    return _task("bundled-pairs", rows, second)


TASKS: Mapping[str, Callable[[], LabelledTexts]] = {
    "bundled-articles": articles,
    "bundled-sources": sources,
    "bundled-pairs": pairs,
}


@functools.cache
def bundled_task(name: str) -> LabelledTexts:
    """Return a task by its name, with a split that is always the same."""
    return TASKS[name]()


def topics(texts: Sequence[str], space: Space) -> list[str]:
    """Label texts by k-means over their averaged vectors: a constructed label, the same for the same texts and space.

    Raises UserError for fewer texts than clusters.
    """
    if len(texts) < TOPICS:
        raise DataError(f"{len(texts)} texts are too few for {TOPICS} topics; give more texts.")
    from scipy.cluster.vq import kmeans2

    points = AveragedVectors(space).encode(texts)
    deviation = points.std(axis=0)
    points = (points - points.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    _, labels = kmeans2(points, TOPICS, minit="++", rng=np.random.default_rng(0))
    return [f"topic {number}" for number in labels.tolist()]


def _task(name: str, rows: Sequence[tuple[str, str]], second: Sequence[str] | None = None) -> LabelledTexts:
    test = np.random.default_rng(0).permutation(len(rows)) < TEST_SHARE * len(rows)
    split = [TEST if tests else TRAIN for tests in test.tolist()]
    return LabelledTexts([text for text, _ in rows], [label for _, label in rows], second, name, split)
