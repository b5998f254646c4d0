"""Labeled texts for models and attackers: read from Parquet, CSV or JSON lines, and split by a seed."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.errors import DataError, SettingError
from corpusveil.storage import files, formats
from corpusveil.storage.rows import Columns
from corpusveil.storage.values import as_strings

TRAIN, DEV, TEST = "train", "dev", "test"
_PARTS = {
    **dict.fromkeys(("train", "training"), TRAIN),
    **dict.fromkeys(("dev", "development", "valid", "validation", "val", "validation_matched"), DEV),
    **dict.fromkeys(("test", "testing"), TEST),
}
HIDDEN = {"-1", "-1.0"}
"""The labels of test rows that only a leaderboard knows."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
SHARES = (0.8, 0.1, 0.1)
"""Of training, development and test, where no split is given (Meisenbacher, Chevli, Matthes 2024); (0.9, 0.1) is
training and test."""


@dataclass(frozen=True, slots=True)
class LabelledTexts:
    """N labeled texts, or pairs of texts.

    ``labels`` are text, whatever they were in the file; ``pairs`` are the second texts, or None; ``split`` is the part
    of each row, ``train``, ``dev`` or ``test``, or None; ``graded`` labels are numbers on a scale, as those of STS-B.
    Raises UserError unless each has N entries, for a value that is not text, and for an empty label.
    """

    texts: Sequence[str]
    labels: Sequence[str]
    pairs: Sequence[str] | None = None
    name: str = "task"
    split: Sequence[str] | None = None
    graded: bool = False

    def __post_init__(self) -> None:
        for field in ("texts", "labels", "pairs", "split"):
            column = getattr(self, field)
            if column is None:
                continue
            if isinstance(column, (str, bytes)):
                raise SettingError(f"{self.name}: {field} are a single text; give a list with an entry for each row.")
            column = tuple(column)
            if len(column) != len(self.texts):
                raise SettingError(
                    f"{self.name}: {len(column):,} {field} for {len(self.texts):,} texts; give an entry for each row."
                )
            object.__setattr__(self, field, column)
        for field in ("texts", "pairs"):
            for number, text in enumerate(getattr(self, field) or ()):
                if not isinstance(text, str):
                    raise DataError(
                        f"{self.name}, row {number + 1}: a value of the {field} is not a text; leave the row out."
                    )
        object.__setattr__(self, "labels", tuple(_label(value, self.name, n) for n, value in enumerate(self.labels)))
        for number, label in enumerate(self.labels if self.graded else ()):
            if not (_NUMBER.fullmatch(label) and math.isfinite(float(label))):
                raise DataError(f"{self.name}, row {number + 1}: the label is not a number; correct it.")
        if self.split is not None:
            object.__setattr__(self, "split", tuple(_part(value, self.name, n) for n, value in enumerate(self.split)))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.texts)

    @property
    def classes(self) -> tuple[str, ...]:
        """The different labels, in alphabetical order."""
        return tuple(sorted(set(self.labels)))

    def require_classes(self) -> None:
        """Raise UserError unless there are two different labels."""
        if len(self.classes) < 2:
            raise DataError(
                f"{self.name}: {len(self.classes)} label among {len(self):,} rows; at least two labels are needed."
            )

    def take(self, rows: npt.NDArray[np.int64]) -> LabelledTexts:
        """Return some rows, by number, in this order."""
        at = rows.tolist()
        return LabelledTexts(
            [self.texts[n] for n in at],
            [self.labels[n] for n in at],
            None if self.pairs is None else [self.pairs[n] for n in at],
            self.name,
            None if self.split is None else [self.split[n] for n in at],
            self.graded,
        )

    def with_texts(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> LabelledTexts:
        """Return the task over other texts, such as their release; second texts are unchanged unless they are given."""
        return replace(self, texts=texts, pairs=self.pairs if pairs is None else pairs)

    def with_labels(self, labels: Sequence[Any]) -> LabelledTexts:
        """Return other labels of the same texts, such as a sensitive attribute."""
        return replace(self, labels=labels, graded=False)

    def part_rows(self, part: str) -> npt.NDArray[np.int64]:
        """Return the numbers of the rows of one part of the split; int64."""
        return np.array([n for n, value in enumerate(self.split or ()) if value == part], dtype=np.int64)

    def train_and_test(
        self, seed: int, shares: Sequence[float] = SHARES
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the rows to train on and those to test on, int64: the given split, or one drawn by the seed.

        A given split without a test part, or with hidden labels there as in GLUE, is tested on its development part.
        """
        if self.split is None:
            parts = split_rows(len(self), seed, shares)
            return parts[0], parts[-1]
        train, test = self.part_rows(TRAIN), self.part_rows(TEST)
        if {self.labels[row] for row in test.tolist()} <= HIDDEN:
            test = self.part_rows(DEV)
        if not train.size or not test.size:
            raise DataError(f"{self.name}: the split has no {'test' if train.size else 'train'} rows; both are needed.")
        return train, test


def split_rows(rows: int, seed: int, shares: Sequence[float] = SHARES) -> list[npt.NDArray[np.int64]]:
    """Return the row numbers of each part, ascending, int64: the same for the same seed, shares and number of rows."""
    if not 2 <= len(shares) <= 3 or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
        raise SettingError(f"shares = {tuple(shares)}: give two or three numbers above 0 that add up to 1.")
    ends = [round(rows * float(end)) for end in np.cumsum(shares)]
    parts = np.split(np.random.default_rng(seed).permutation(rows), ends[:-1])
    if min(part.size for part in parts) == 0:
        raise DataError(f"{rows:,} rows are too few to split into shares {tuple(shares)}; give more rows.")
    return [np.sort(part).astype(np.int64) for part in parts]


def read_task(
    url: str, name: str, *, second: str | None = None, split: str | None = None, graded: bool = False
) -> LabelledTexts:
    """Read a task from the columns ``text`` and ``label`` of one file of Parquet, CSV or JSON lines.

    ``second`` names the second text of pairs, ``split`` the column with ``train``, ``dev`` (or ``validation``) or
    ``test``. Raises UserError for a missing column and for the first unreadable row.
    """
    form = formats.form_of(url)
    if not form.has_columns:
        raise DataError(f"{url}: plain text has no labels; give Parquet, CSV or JSON lines.")
    keep = [each for each in ("label", second, split) if each is not None]
    columns = Columns("text", None, tuple(keep))
    texts: list[str] = []
    values: dict[str, list[str]] = {key: [] for key in keep}
    with files.open_read(url) as file:
        for batch in form.batches(file, url, columns):
            for bad in batch.bad:
                raise DataError(f"{url}, row {bad.number + 1}: {bad.why}")
            texts += batch.texts.to_pylist()
            for column_name, column in zip(keep, batch.kept, strict=True):
                values[column_name] += as_strings(column).to_pylist()
    if not texts:
        raise DataError(f"{url}: there are no rows; give a file with rows.")
    pairs, parts = (None if named is None else values[named] for named in (second, split))
    task = LabelledTexts(texts, values["label"], pairs, name, parts, graded)
    task.require_classes()
    return task


def _label(value: Any, name: str, number: int) -> str:
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        return str(value)
    if isinstance(value, float) and value.is_integer():  # a whole number that passed through pandas
        return str(int(value))
    if not isinstance(value, str) or not value.strip():
        raise DataError(
            f"{name}, row {number + 1}: the label is missing, or is neither text nor a whole number; correct it or "
            "leave the row out."
        )
    return value


def _part(value: Any, name: str, number: int) -> str:
    part = _PARTS.get(value.lower()) if isinstance(value, str) else None
    if part is None:
        raise DataError(f"{name}, row {number + 1}: the split is not train, dev (or validation) or test; correct it.")
    return part
