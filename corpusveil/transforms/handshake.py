"""A handshake of versions: a worker with other packages than the driver writes other bytes, so it refuses to work."""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from corpusveil.errors import WorkError

PACKAGES = ("corpusveil", "numpy", "numba", "pyarrow", "isal", "orjson", "gensim")
"""What output bytes may depend on."""


@functools.cache
def versions() -> Mapping[str, str]:
    """Return the versions of Python (major and minor) and of these packages in this process."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "none"
    return found


@dataclass(frozen=True, slots=True)
class SameVersions:
    """A function over tasks that a worker runs only where it has the driver's versions."""

    function: Callable[[Any], Any]
    driver: Mapping[str, str]

    @classmethod
    def of(cls, function: Callable[[Any], Any]) -> SameVersions:
        """Return the function with the versions of this process, the driver."""
        return cls(function, dict(versions()))

    def __call__(self, task: Any) -> Any:
        """Raise WorkError, with what differs, unless the versions agree; then do the task."""
        mine = versions()
        other = [
            f"{name} {mine.get(name)} for {value}" for name, value in self.driver.items() if mine.get(name) != value
        ]
        if other:
            raise WorkError(
                f"A worker has other versions than the driver ({', '.join(other)}); give both the same environment."
            )
        return self.function(task)
