"""A handshake of versions: with other packages than the driver's, a worker would write other bytes, so it refuses."""

from __future__ import annotations

import functools
import hashlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata, resources
from typing import Any

from corpusveil.errors import WorkError

PACKAGES = ("corpusveil", "numpy", "numba", "pyarrow", "isal", "orjson", "gensim")
"""The packages on which output bytes may depend."""


_SOURCES = (".py", ".json", ".gz")
"""Endings of files that decide an output; not those that Python and numba compile."""


@functools.cache
def versions() -> Mapping[str, str]:
    """Return the versions of Python (major and minor) and of these packages in this process."""
    installed = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in PACKAGES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed[name] = "none"
    installed["corpusveil"] += f" (code {code()})"
    return installed


@functools.cache
def code() -> str:
    """Return a digest of the package's code and data, equal wherever it is installed from the same sources.

    A version is that of many commits.
    """
    digest, waiting = hashlib.sha256(), [("corpusveil", resources.files("corpusveil"))]
    while waiting:  # a folder's files in order, then those of its folders
        place, folder = waiting.pop()
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.is_dir():
                waiting.append((f"{place}/{entry.name}", entry))
            elif entry.name.endswith(_SOURCES):
                digest.update(f"{place}/{entry.name}\0{hashlib.sha256(entry.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class SameVersions:
    """A function over tasks that a worker runs only if it has the driver's versions."""

    function: Callable[[Any], Any]
    driver: Mapping[str, str]

    @classmethod
    def for_function(cls, function: Callable[[Any], Any]) -> SameVersions:
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
                f"The versions of a worker differ from those of the driver ({', '.join(other)}); give both the "
                "same environment."
            )
        return self.function(task)
