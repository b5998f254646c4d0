"""Engines by name: the entry points of the group ``corpusveil.engines``, those of this package and of any other.

An engine is a dataclass with the two methods of ``storage.engine.Engine``, whose fields are those settings of
``[engine]`` that it takes. A package adds one by that file and a line of its metadata::

    [project.entry-points."corpusveil.engines"]
    threads = "my_package.threads:Threads"
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from importlib import metadata
from typing import Any

from corpusveil.errors import PackageError, UnknownError, nearest

if typing.TYPE_CHECKING:
    from corpusveil.storage.engine import Engine

GROUP = "corpusveil.engines"


@functools.cache
def _points() -> dict[str, dict[str, metadata.EntryPoint]]:
    """Return the entry points by name and by target; nothing is imported."""
    points: dict[str, dict[str, metadata.EntryPoint]] = {}
    for point in metadata.entry_points(group=GROUP):
        points.setdefault(point.name, {})[point.value] = point
    return points


def names() -> list[str]:
    """Return the names of all engines, sorted."""
    return sorted(_points())


def find(name: str) -> type[Engine]:
    """Return the class of an engine.

    Raises UserError for an unknown name, with the nearest known name; for a name in two packages; and for a class that
    cannot be imported.
    """
    points = _points().get(name)
    if points is None:
        hint = nearest(name, names()) or f"; there are: {', '.join(names())}."
        raise UnknownError(f"{name}: there is no engine of this name{hint}")
    if len(points) > 1:
        raise PackageError(f"Two packages provide an engine {name} ({', '.join(points)}); uninstall either.")
    ((value, point),) = points.items()
    try:
        engine: type[Engine] = point.load()
    except (ImportError, AttributeError) as error:
        raise PackageError(
            f"engine {name}: {value} could not be imported ({type(error).__name__}); install its package again."
        ) from None
    return engine


def settings_of(name: str) -> list[str]:
    return [field.name for field in dataclasses.fields(find(name)) if field.init]  # type: ignore[arg-type]


def make_engine(name: str, **settings: Any) -> Engine:
    """Return an engine with these settings, ready to run. Raises UserError for an unknown engine, and if it cannot."""
    from corpusveil.storage.engine import Checking

    made = find(name)(**{name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()})
    if isinstance(made, Checking):
        made.check()
    return made
