"""Recognizers by name: ``rules``, ``names``, ``presidio``, MODULE:FUNCTION, or a file of terms."""

from __future__ import annotations

import hashlib
import importlib
import os
import pkgutil
import re
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from corpusveil.errors import BadValueError, PackageError, UnknownError
from corpusveil.spaces import Space
from corpusveil.storage import files
from corpusveil.text.spans import Function, OfFunction, Recognizer

BUILT_IN = frozenset({"rules", "names"})
"""Recognizers that are the same for everyone."""
_FUNCTION = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")


def make(name: str | Function, space: Space) -> Recognizer:
    """Return the recognizer of a name or of a user's function.

    Raises UserError where a package is missing, a function cannot be imported, or a file of terms cannot be read.
    """
    match name:
        case "rules":
            rules: Recognizer = _module(name).rules
            return rules
        case "names":
            names: Recognizer = _module(name).Names(space)
            return names
        case "presidio":
            return OfFunction(name, _module(name).presidio())
        case str() if not _FUNCTION.fullmatch(name):
            return OfFunction(name, _module("terms").ListedTerms.of_bytes(files.read_bytes(name), name))
    return OfFunction(name_of(name), _imported(name) if isinstance(name, str) else name)


def identity(name: str | Function) -> str:
    """Return what a release says of a recognizer; of a file of terms only that it is one (``content``)."""
    match name:
        case "rules":
            packages = ("phonenumbers", "python-stdnum")
            return _with_versions(f"rules/{_module(name).VERSION}", "'corpusveil[spans]'", *packages)
        case "names":
            return f"names/{_module(name).VERSION}"
        case "presidio":
            return _with_versions(name, "presidio-analyzer", "presidio-analyzer", "spacy")
        case str() if not _FUNCTION.fullmatch(name):
            return "terms/1"
    function = _imported(name) if isinstance(name, str) else name
    version = getattr(function, "version", None)
    if version is None and "<" in getattr(function, "__qualname__", "<"):  # two of one name would be one release
        raise BadValueError(
            f"{name_of(name)}: this recognizer has no name of its own; give it an attribute version, and change that "
            "with what it finds."
        )
    return name_of(name) if version is None else f"{name_of(name)}/{version}"


def kinds(find: Sequence[str | Function]) -> set[str] | None:
    """Return the kinds that built-in recognizers find; None if others, which may find any, are among them."""
    if not BUILT_IN.issuperset(find):
        return None
    return {*(_module("rules").NAMES if "rules" in find else ()), *(["name"] if "names" in find else [])}


def is_terms(name: str | Function) -> bool:
    """Say whether a name is that of a file of terms, which is private."""
    return isinstance(name, str) and name not in ("rules", "names", "presidio") and not _FUNCTION.fullmatch(name)


def content(name: str | Function) -> bytes | None:
    """Return the bytes of a file of terms; None for any other recognizer."""
    return files.read_bytes(str(name)) if is_terms(name) else None


def mark(name: str | Function) -> str:
    """Return what every process has to have alike: the identity of a recognizer, and a digest of a file of terms."""
    own = content(name)
    return identity(name) if own is None else hashlib.sha256(own).hexdigest()


def name_of(recognizer: str | Function) -> str:
    """Return the name of a recognizer, MODULE:FUNCTION of a function."""
    kind = type(recognizer)
    named = recognizer if hasattr(recognizer, "__qualname__") else kind
    return recognizer if isinstance(recognizer, str) else f"{named.__module__}:{named.__qualname__}"


def _module(name: str) -> Any:
    """Return the module of a recognizer here: who asks for none loads none."""
    return importlib.import_module(f"{__package__}.{name}")


def _with_versions(name: str, install: str, *packages: str) -> str:
    try:
        return ", ".join([name, *(f"{package} {metadata.version(package)}" for package in packages)])
    except metadata.PackageNotFoundError:
        raise PackageError(f"The recognizer {name.partition('/')[0]} needs a package: pip install {install}.") from None


def imported(name: str) -> Any:
    """Return the object of MODULE:NAME; the working folder is searched last. Raises what its module raises."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return pkgutil.resolve_name(name)


def _imported(name: str) -> Any:
    """Return the function of MODULE:FUNCTION."""
    try:
        function = imported(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module of the user's, which raises anything
        raise UnknownError(
            f"{name}: this recognizer cannot be imported here ({type(error).__name__}); install its module, or put it "
            "into the working folder."
        ) from None
    if not callable(function):
        raise UnknownError(f"{name}: this is no function; name one that takes a list of texts.")
    return function
