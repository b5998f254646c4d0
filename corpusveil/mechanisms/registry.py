"""Mechanisms by name: each module of this package enters its own; those of other packages are entry points."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, TypeVar

from corpusveil.errors import SettingError, nearest, of_other_type
from corpusveil.mechanisms.base import Mechanism
from corpusveil.registry import Registry
from corpusveil.spaces import Space

OF_PASSAGES = "passage-exchange"
"""The mechanism on a store; it takes pieces of text, where all others take words of a space."""
MECHANISMS: Registry[type[Mechanism]] = Registry("mechanism", ("corpusveil.mechanisms",))

M = TypeVar("M", bound=type[Mechanism])


def register(cls: M) -> M:
    """Enter a mechanism class under its ``name``; a class decorator."""
    MECHANISMS.enter(cls.name, cls)
    return cls


def names() -> list[str]:
    """Return the names of all mechanisms, sorted.

    >>> "ring-geometric" in cv.mechanism_names()
    True
    """
    return MECHANISMS.names()


def classes() -> dict[str, type[Mechanism]]:
    """Return the classes of all mechanisms by their own names, which the package has as its attributes."""
    return {cls.__name__: cls for cls in map(find, names())}


def find(name: str) -> type[Mechanism]:
    """Return the class of a mechanism. Raises UserError for an unknown name, and if its package cannot be imported."""
    if not isinstance(name, str):
        raise of_other_type("mechanism", name, "a name first, then the space")
    if name == OF_PASSAGES:
        raise SettingError(
            f"{name}: this replaces passages by those of a store, not words of a space; give a store, in Python "
            "cv.PassageExchange(store)."
        )
    return MECHANISMS.find(name)


def make_mechanism(name: str, space: Space, /, **parameters: Any) -> Mechanism:
    """Return the mechanism ``name`` over a space. Raises UserError for an unknown name or parameter.

    >>> cv.mechanism("tem", space, beta=0.01) == cv.Tem(space, beta=0.01)
    True
    """
    check(name, parameters)
    return find(name)(space=space, **parameters)


def check(name: str, given: Iterable[str]) -> None:
    """Raise UserError for an unknown mechanism, and for parameters that it does not have."""
    known = parameters(name)
    for parameter in given:
        if parameter not in known:
            hint = nearest(parameter, known) or f"; its parameters are: {', '.join(known) or 'none'}."
            raise SettingError(f"{parameter}: {name} has no such parameter{hint}")


def parameters(name: str) -> list[str]:
    return [field.name for field in dataclasses.fields(find(name)) if field.name != "space"]
