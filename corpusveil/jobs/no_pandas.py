"""Importing this lets Arrow do without pandas in this process: for processes in which only corpusveil works.

Arrow imports pandas, a quarter of a second, when it makes its first array of a list, of NumPy's or for NumPy, to know
pandas' objects. It tries once in each of these places. Pandas is hidden for these first times: afterwards it can be
imported, and Arrow takes its objects for those of a stranger.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa


class _Hidden:
    """A finder that has no pandas."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:  # noqa: ARG004 - the protocol's own
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)


if "pandas" not in sys.modules:
    sys.meta_path.insert(0, _Hidden)
    try:
        pa.array([0]).to_numpy()
        pa.array(np.zeros(0))
    finally:
        sys.meta_path.remove(_Hidden)
