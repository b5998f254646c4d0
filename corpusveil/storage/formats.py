"""The formats of documents by file name: each file of ``storage/forms`` declares its ``SUFFIXES``."""

from __future__ import annotations

import functools
import importlib
from importlib import resources
from typing import TYPE_CHECKING

from corpusveil.choices import CODECS, Codec
from corpusveil.errors import DataError, not_a_choice, without_queries
from corpusveil.registry import declared

if TYPE_CHECKING:
    from corpusveil.storage.forms import Form

_PACKAGE = "corpusveil.storage.forms"


@functools.cache
def _declared() -> dict[str, tuple[str, Codec]]:
    """Return the module and the compression of each suffix; ``CODECS`` of a form are its compressions, if not all."""
    folder = resources.files("corpusveil.storage").joinpath("forms")  # which is not imported
    codecs = declared(folder, "CODECS")
    return {
        suffix + codec: (f"{_PACKAGE}.{module}", codec)
        for module, suffixes in declared(folder, "SUFFIXES").items()
        for suffix in suffixes
        for codec in codecs.get(module, CODECS)
    }


SUFFIXES = tuple(_declared())
FORMATS = ("same", *(suffix[1:] for suffix in SUFFIXES))
"""The possible formats of an output."""


def suffix_of_file(name: str) -> str:
    """Return the suffix that identifies a file's format. Raises UserError for an unknown suffix."""
    plain = without_queries(name)
    for suffix in SUFFIXES:
        if plain.endswith(suffix):
            return suffix
    raise DataError(
        f"{name}: the name does not say the format of this file; use one of the endings {', '.join(SUFFIXES)}."
    )


def form_of(name: str) -> Form:
    """Return the form of a file. Raises UserError for an unknown suffix."""
    return find(suffix_of_file(name))


def suffix_of(format: str) -> str | None:
    """Return the suffix of an output format, None for that of the input. Raises UserError for an unknown one."""
    if format not in FORMATS:
        raise not_a_choice("format", format, FORMATS)
    return None if format == "same" else f".{format}"


@functools.cache
def find(suffix: str) -> Form:
    """Return the form of a suffix: the only one that its module defines."""
    from corpusveil.storage.forms import Form

    name, codec = _declared()[suffix]
    kinds = [kind for kind in vars(importlib.import_module(name)).values() if isinstance(kind, type)]
    (form,) = (kind for kind in kinds if issubclass(kind, Form) and kind.__module__ == name)
    return form(codec)
