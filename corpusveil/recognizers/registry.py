"""Recognizers by name: the entry points of ``corpusveil.recognizers``, MODULE:FUNCTION, or a file of terms.

A recognizer is a ``Declared`` or a user's function. This package and others add one by that and an entry point.
A file of terms is named ``terms:PATH``, or by a path with a slash or a dot.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from corpusveil.errors import PackageError, SettingError
from corpusveil.recognizers.terms import ListedTerms
from corpusveil.registry import Registry
from corpusveil.spaces import Space
from corpusveil.storage import files
from corpusveil.text.spans import Declared, Function, OfFunction, Recognizer, Spans
from corpusveil.text.tokens import Tokens

RECOGNIZERS: Registry[Declared | Function] = Registry("recognizer")
_TERMS = "terms:"
_FUNCTION = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")


def _loaded(name: str) -> Declared | Function:
    """Return what an entry point or MODULE:FUNCTION names. Raises UserError for a name that says nothing."""
    if _FUNCTION.fullmatch(name):
        return _imported(name)
    try:
        return RECOGNIZERS.find(name)
    except SettingError as error:
        raise SettingError(f"{error} A file of terms is {_TERMS}PATH.") from None


@dataclass(frozen=True, slots=True)
class Named:
    """A recognizer by its name.

    ``identity`` is what a release says of it, of a file of terms only that it is one; ``mark`` is what every process
    has to have alike. ``kinds`` are all that it finds, None if it may find any. Of a file of terms, ``said`` is how
    many it has, and the kinds that a release shows.
    """

    name: str
    identity: str
    mark: str
    kinds: tuple[str, ...] | None
    make: Callable[[Space], Recognizer]
    said: str = ""


def named(recognizer: str | Function) -> Named:
    """Return the recognizer of a name, or a user's function with its name.

    Raises UserError where a package is missing, a function cannot be imported, or a file of terms cannot be read.
    """
    if (path := terms_path(recognizer)) is not None:
        data = files.read_bytes(path)
        terms = ListedTerms.of_bytes(data, path)
        mark = hashlib.sha256(data).hexdigest()
        return Named(path, "terms/2", mark, None, lambda _: OfFunction(path, terms), f"{path}: {terms.summary}.")
    loaded = _loaded(recognizer) if isinstance(recognizer, str) else recognizer
    of = recognizer if hasattr(recognizer, "__qualname__") else type(recognizer)
    name = recognizer if isinstance(recognizer, str) else f"{of.__module__}:{of.__qualname__}"
    if isinstance(loaded, Declared):
        identity, kinds = f"{name}/{loaded.version}", loaded.kinds
        return Named(name, identity, identity, kinds, lambda space: _OfKinds(name, loaded.make(space), kinds))
    version = getattr(loaded, "version", None)
    if version is None and "<" in getattr(loaded, "__qualname__", "<"):  # two of one name would be one release
        raise SettingError(
            f"{name}: this recognizer has no name of its own; give it an attribute version, and change that with what "
            "it finds."
        )
    identity = name if version is None else f"{name}/{version}"
    return Named(name, identity, identity, None, lambda _: OfFunction(name, loaded))


@dataclass(frozen=True, slots=True)
class _OfKinds:
    """A recognizer that is held to the kinds that it declares: by these, treatments are checked before a text is."""

    name: str
    find: Recognizer
    kinds: tuple[str, ...] | None

    def __call__(self, tokens: Tokens) -> Spans:
        spans = self.find(tokens)
        if self.kinds is not None and not {spans.names[at] for at in np.unique(spans.kinds).tolist()} <= {*self.kinds}:
            raise SettingError(  # without the kind, which could be made of a text
                f"{self.name}: this recognizer found a span of a kind that it does not declare, and it declares "
                f"{', '.join(self.kinds)}; correct its declaration."
            )
        return spans


def kinds(find: Sequence[str | Function]) -> set[str] | None:
    """Return the kinds that recognizers find; None if one that may find any is among them."""
    several = [named(name).kinds for name in find]
    return None if None in several else {*itertools.chain.from_iterable(kinds or () for kinds in several)}


def terms_path(name: str | Function) -> str | None:
    """Return the path of a file of terms, which is private; None for any other recognizer."""
    if not isinstance(name, str) or name in RECOGNIZERS.names():
        return None
    is_path = any(mark in name for mark in "/.\\") and not _FUNCTION.fullmatch(name)
    return name.removeprefix(_TERMS) if name.startswith(_TERMS) or is_path else None


@functools.cache
def _imported(name: str) -> Declared | Function:
    """Return the recognizer at MODULE:OBJECT; the working folder is searched last."""
    sys.path.append(os.getcwd())
    try:
        named = pkgutil.resolve_name(name)
    except PackageError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module of the user's, which raises anything
        raise SettingError(
            f"{name}: this recognizer cannot be imported here ({type(error).__name__}); install its module, or put it "
            "into the working folder."
        ) from None
    finally:
        sys.path.remove(os.getcwd())
    if not callable(named) and not isinstance(named, Declared):
        raise SettingError(f"{name}: this is no function; name one that takes a list of texts.")
    recognizer: Declared | Function = named
    return recognizer
