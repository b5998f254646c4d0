"""The transform that jobs and frames apply to documents: the word kernel or the passage kernel."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.budget.accounting import Readings
from corpusveil.storage.documents import Documents
from corpusveil.text.counts import Counts


class Transform(Protocol):
    """A function from documents to their output texts. It is cheap to pickle, and the same in every process."""

    def apply(self, documents: Documents) -> tuple[pa.LargeStringArray, Counts]:
        """Return the private texts, large_string [D], nulls staying null, and counts."""

    def account(self, documents: Documents, key: bytes) -> tuple[npt.NDArray[np.uint64], Readings]:
        """Return tags of the noise of D documents under a key, uint64 [D, 2], and their readings, without drawing."""
