"""Mechanisms by name: those of this package, and those of other packages by entry points.

Every module of this package is imported, so there is no list to edit. Another package adds a registered class by a line
of its metadata, which is read only for a name that is not ours, and for lists of all names::

    [project.entry-points."corpusveil.mechanisms"]
    my-mechanism = "my_package.my_mechanism:MyMechanism"
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Iterable
from importlib import metadata
from typing import Any, TypeVar

import corpusveil.mechanisms as package
from corpusveil.errors import MismatchError, PackageError, UnknownError, nearest, of_other_type
from corpusveil.mechanisms.base import Mechanism
from corpusveil.spaces import Space

GROUP = "corpusveil.mechanisms"
EVALUATE = (
    "custext-per-word", "santext-as-run", "syntf-as-run", "tight-exponential", "truncated-gumbel",
    "truncated-gumbel-as-run", "vickrey-cmp-as-run", "vickrey-cmp-excluding", "vickrey-mahalanobis-excluding",
)  # fmt: skip
"""The mechanisms of ``corpusveil-evaluate``: those whose published theorems are false, and others for comparison."""
OF_PASSAGES = "passage-exchange"
"""The mechanism on a store; it takes pieces of text, where all others take words of a space."""
_BY_NAME: dict[str, type[Mechanism]] = {}

M = TypeVar("M", bound=type[Mechanism])


def register(cls: M) -> M:
    """Enter a mechanism class under its ``name``; a class decorator."""
    if _BY_NAME.setdefault(cls.name, cls) is not cls:
        message = f"two mechanisms are named {cls.name}"
        raise ValueError(message)
    return cls


@functools.cache
def _load_all() -> None:
    # Importing a module registers its mechanisms.
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")


@functools.cache
def _points() -> dict[str, metadata.EntryPoint]:
    """Return the entry points of other packages by name; nothing is imported."""
    return {point.name: point for point in metadata.entry_points(group=GROUP)}


def names() -> list[str]:
    """Return the names of all mechanisms, sorted."""
    _load_all()
    return sorted(_BY_NAME.keys() | _points().keys())


def classes() -> dict[str, type[Mechanism]]:
    """Return the classes of all mechanisms by their own names, which the package has as its attributes."""
    return {cls.__name__: cls for cls in map(find, names())}


def find(name: str) -> type[Mechanism]:
    """Return the class of a mechanism.

    Raises UserError for an unknown name, with the nearest known one, and if the package that has it cannot be imported.
    """
    _load_all()
    if not isinstance(name, str):
        raise of_other_type("mechanism", name, "a name first, then the space")
    if name not in _BY_NAME and name in _points():
        _import(name)
    elif name == OF_PASSAGES:
        raise MismatchError(
            f"{name}: this replaces passages by those of a store, not words of a space; give a store, in Python "
            "cv.PassageExchange(store)."
        )
    elif name not in _BY_NAME and name in EVALUATE:
        raise PackageError(
            f"{name}: this mechanism is for comparison, in a package of its own; "
            "in a clone pip install . ./evaluate, and from an index pip install 'corpusveil[evaluate]'."
        )
    elif name not in _BY_NAME:
        hint = nearest(name, names()) or "; 'corpusveil mechanisms' lists all names."
        raise UnknownError(f"{name}: there is no mechanism of this name{hint}")
    return _BY_NAME[name]


def _import(name: str) -> None:
    point = _points()[name]
    try:
        register(point.load())
    except (ImportError, AttributeError) as error:
        raise PackageError(
            f"mechanism {name}: {point.value} could not be imported ({type(error).__name__}); install its package "
            "again."
        ) from None


def make(name: str, space: Space, /, **parameters: Any) -> Mechanism:
    """Return a mechanism over a space. Raises UserError for an unknown name or parameter."""
    check(name, parameters)
    return find(name)(space=space, **parameters)


def check(name: str, given: Iterable[str]) -> None:
    """Raise UserError for an unknown mechanism, and for parameters that it does not have."""
    known = parameters(name)
    for parameter in given:
        if parameter not in known:
            hint = nearest(parameter, known) or f"; its parameters are: {', '.join(known) or 'none'}."
            raise UnknownError(f"{parameter}: {name} has no such parameter{hint}")


def parameters(name: str) -> list[str]:
    """Return the names of a mechanism's parameters."""
    return [field.name for field in dataclasses.fields(find(name)) if field.name != "space"]
