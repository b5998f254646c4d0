"""Recognizers by name: ``rules``, ``names``, ``presidio``, ``gliner``, MODULE:FUNCTION, or a file of terms."""

from __future__ import annotations

import os
import pkgutil
import re
import sys
from importlib import metadata
from typing import Any

from corpusveil.errors import PackageError, UnknownError
from corpusveil.recognizers import rules
from corpusveil.recognizers.recipes import gliner, presidio
from corpusveil.recognizers.terms import Terms
from corpusveil.spaces import Space
from corpusveil.storage import files
from corpusveil.text.spans import Function, OfFunction, Recognizer

_RECIPES = {"presidio": (presidio, ("presidio-analyzer", "spacy")), "gliner": (gliner, ("gliner",))}
_FUNCTION = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")


def make(name: str | Function, space: Space) -> Recognizer:
    """Return the recognizer of a name or of a user's function.

    Raises UserError where a package is missing, a function cannot be imported, or a file of terms is none.
    """
    if not isinstance(name, str):
        return OfFunction(name_of(name), name)
    if name == "rules":
        return rules.rules
    if name in _RECIPES:
        return OfFunction(name, _RECIPES[name][0]())
    if _FUNCTION.fullmatch(name):
        return OfFunction(name, _imported(name))
    return Terms.of_bytes(files.read_bytes(name), name)


def identity(name: str | Function) -> str:
    """Return what a release says of a recognizer: equal ones find equal spans, as far as a name can tell.

    Of a file of terms it says only that it is one: ``content`` has what it must be told apart by.
    """
    if name == "rules":
        return _versions(f"rules/{rules.VERSION}", "phonenumbers", "python-stdnum")
    if name in _RECIPES:
        return _versions(str(name), *_RECIPES[name][1])
    if isinstance(name, str) and not _FUNCTION.fullmatch(name):
        return "terms/1"
    version = getattr(_imported(name) if isinstance(name, str) else name, "version", None)
    return name_of(name) if version is None else f"{name_of(name)}/{version}"


def content(name: str | Function) -> bytes | None:
    """Return the bytes of a file of terms, which are private; None of any other recognizer."""
    return files.read_bytes(name) if isinstance(name, str) and identity(name) == "terms/1" else None


def name_of(recognizer: str | Function) -> str:
    """Return the name of a recognizer, MODULE:FUNCTION of a function."""
    if isinstance(recognizer, str):
        return recognizer
    return f"{recognizer.__module__}:{getattr(recognizer, '__qualname__', type(recognizer).__qualname__)}"


def _versions(name: str, *packages: str) -> str:
    try:
        return ", ".join([name, *(f"{package} {metadata.version(package)}" for package in packages)])
    except metadata.PackageNotFoundError as error:
        extra = name if name in _RECIPES else "spans"
        raise PackageError(f"The recognizer {name} needs {error.name}: pip install 'corpusveil[{extra}]'.") from None


def _imported(name: str) -> Any:
    """Return the function of MODULE:FUNCTION; the working folder is searched last."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        function = pkgutil.resolve_name(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module of the user's, which raises anything
        raise UnknownError(
            f"spans {name}: this function cannot be imported here ({type(error).__name__}); install its module, or put "
            "it into the working folder."
        ) from None
    if not callable(function):
        raise UnknownError(f"spans {name}: this is no function; name one that takes a list of texts.")
    return function
