"""Labeled texts for networks: padded rows of word ids of a space, with a premise if there is one.

Words that the space lacks have no vector, so they are left out, like other tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.spaces import Space
from corpusveil_evaluate.terms import terms_of, tokenizer_of
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts

PADDING = -1

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """N texts of at most L words, the part that an attack changes, with their labels.

    Attributes:
        texts: int32 [N, L], ids of words, then ``PADDING``.
        labels: int64 [N], numbers of classes.
        classes: the labels' names, in the order of their numbers.
        premises: int32 [N, M] likewise, which stay as they are; None where texts stand alone.
    """

    texts: Ids
    labels: npt.NDArray[np.int64]
    classes: tuple[str, ...]
    premises: Ids | None = None

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.texts)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of words of each text; int64 [N]."""
        return np.asarray((self.texts >= 0).sum(axis=1), dtype=np.int64)

    def take(self, rows: npt.NDArray[Any]) -> Examples:
        """Return some of them, without columns that are padding only."""
        premises = None if self.premises is None else trimmed(self.premises[rows])
        return Examples(trimmed(self.texts[rows]), self.labels[rows], self.classes, premises)

    def with_texts(self, texts: Ids) -> Examples:
        """Return the same with other texts, such as private ones."""
        return replace(self, texts=texts)

    def joined(self, others: Sequence[Examples]) -> Examples:
        """Return these and others of the same classes as one."""
        every = [self, *others]
        premises = (
            None
            if self.premises is None
            else stacked([examples.premises for examples in every if examples.premises is not None])
        )
        labels = np.concatenate([examples.labels for examples in every])
        return Examples(stacked([examples.texts for examples in every]), labels, self.classes, premises)


def trimmed(ids: Ids) -> Ids:
    """Return rows without the columns in which all are padding; one column is left at least."""
    used = int((ids >= 0).sum(axis=1).max(initial=1))
    return ids[:, : max(used, 1)]


def stacked(parts: Sequence[Ids]) -> Ids:
    """Return rows of several widths as one array, padded."""
    out = np.full((sum(map(len, parts)), max(part.shape[1] for part in parts)), PADDING, np.int32)
    at = 0
    for part in parts:
        out[at : at + len(part), : part.shape[1]] = part
        at += len(part)
    return out


def encode(task: LabelledTexts, space: Space, longest: int, classes: Sequence[str]) -> Examples:
    """Return a task as the first ``longest`` words of a space; of pairs the second text is the one that is attacked.

    ``classes`` are the names of the labels in the order of their numbers.
    """
    numbers = {name: number for number, name in enumerate(classes)}
    labels = np.array([numbers[label] for label in task.labels], dtype=np.int64)
    texts = ids_of(task.texts, space, longest)
    if task.pairs is None:
        return Examples(texts, labels, tuple(classes))
    return Examples(ids_of(task.pairs, space, longest), labels, tuple(classes), texts)


def ids_of(texts: Sequence[str], space: Space, longest: int) -> Ids:
    """Return the first ``longest`` known words of each text; int32 [N, L], padded."""
    words = terms_of(texts, tokenizer_of(space.vocabulary)).words()
    lengths = np.minimum(np.diff(words.offsets), longest)
    out = np.full((len(texts), max(1, int(lengths.max(initial=0)))), PADDING, np.int32)
    inside = np.arange(out.shape[1]) < lengths[:, None]
    out[inside] = words.ids[(words.offsets[:-1, None] + np.arange(out.shape[1]))[inside]]
    return out
