"""Recognizers by name: the entry points of ``corpusveil.recognizers``, MODULE:FUNCTION, or a file of terms.

A recognizer is a ``Declared`` or a user's function. This package and others add one by that and an entry point.
A file of terms is named ``terms:PATH``, or by a path with a slash or a dot.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pkgutil
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from corpusveil.errors import PackageError, SettingError
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
    if _FUNCTION.fullmatch(name) and name not in RECOGNIZERS.names():
        return _imported(name)
    try:
        return RECOGNIZERS.find(name)
    except SettingError as error:
        raise SettingError(f"{error} A file of terms is {_TERMS}PATH.") from None


def make(name: str | Function, space: Space) -> Recognizer:
    """Return the recognizer of a name or a user's function. Raises UserError where it cannot be imported or read."""
    if (path := terms_path(name)) is not None:
        from corpusveil.recognizers.terms import ListedTerms

        return OfFunction(path, ListedTerms.of_bytes(files.read_bytes(path), path))
    recognizer = _loaded(name) if isinstance(name, str) else name
    if not isinstance(recognizer, Declared):
        return OfFunction(name_of(name), recognizer)
    made, kinds = recognizer.make(space), recognizer.kinds
    return made if kinds is None else _OfKinds(name_of(name), made, kinds)


@dataclass(frozen=True, slots=True)
class _OfKinds:
    """A recognizer that is held to the kinds that it declares: by these, treatments are checked before a text is."""

    name: str
    find: Recognizer
    kinds: tuple[str, ...]

    def __call__(self, tokens: Tokens) -> Spans:
        spans = self.find(tokens)
        if not {spans.names[kind] for kind in np.unique(spans.kinds).tolist()} <= {*self.kinds}:
            raise SettingError(  # without the kind, which could be made of a text
                f"{self.name}: this recognizer found a span of a kind that it does not declare, and it declares "
                f"{', '.join(self.kinds)}; correct its declaration."
            )
        return spans


def identity(name: str | Function) -> str:
    """Return what a release says of a recognizer; of a file of terms only that it is one (``content``)."""
    if terms_path(name) is not None:
        return "terms/1"
    recognizer = _loaded(name) if isinstance(name, str) else name
    if isinstance(recognizer, Declared):
        return f"{name}/{recognizer.version}"
    version = getattr(recognizer, "version", None)
    if version is None and "<" in getattr(recognizer, "__qualname__", "<"):  # two of one name would be one release
        raise SettingError(
            f"{name_of(name)}: this recognizer has no name of its own; give it an attribute version, and change that "
            "with what it finds."
        )
    return name_of(name) if version is None else f"{name_of(name)}/{version}"


def kinds(find: Sequence[str | Function]) -> set[str] | None:
    """Return the kinds that recognizers find; None if one that may find any is among them."""
    named: set[str] = set()
    for name in find:
        declared = _loaded(name) if isinstance(name, str) and terms_path(name) is None else None
        if not isinstance(declared, Declared) or declared.kinds is None:
            return None
        named |= {*declared.kinds}
    return named


def terms_path(name: str | Function) -> str | None:
    """Return the path of a file of terms, which is private; None for any other recognizer."""
    if not isinstance(name, str) or name in RECOGNIZERS.names():
        return None
    is_path = any(mark in name for mark in "/.\\") and not _FUNCTION.fullmatch(name)
    return name.removeprefix(_TERMS) if name.startswith(_TERMS) or is_path else None


def lists(find: Sequence[str | Function]) -> list[str]:
    """Return a sentence about each file of terms: how many it has, and the kinds that a release shows."""
    from corpusveil.recognizers.terms import ListedTerms

    paths = [path for name in find if (path := terms_path(name)) is not None]
    return [f"{path}: {ListedTerms.of_bytes(files.read_bytes(path), path).summary}." for path in paths]


def content(name: str | Function) -> bytes | None:
    """Return the bytes of a file of terms; None for any other recognizer."""
    return None if (path := terms_path(name)) is None else files.read_bytes(path)


def mark(name: str | Function) -> str:
    """Return what every process has to have alike: the identity of a recognizer, and a digest of a file of terms."""
    own = content(name)
    return identity(name) if own is None else hashlib.sha256(own).hexdigest()


def name_of(recognizer: str | Function) -> str:
    """Return the name of a recognizer, MODULE:FUNCTION of a function."""
    kind = type(recognizer)
    named = recognizer if hasattr(recognizer, "__qualname__") else kind
    return recognizer if isinstance(recognizer, str) else f"{named.__module__}:{named.__qualname__}"


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
