"""The formats of documents by file name: the files of ``storage/forms``, whose first lines say the suffixes.

No form is imported for its suffixes: help names them, and has to start at once.
"""

from __future__ import annotations

import functools
import importlib
import re
from importlib import resources
from typing import TYPE_CHECKING

from corpusveil.choices import CODECS, Codec
from corpusveil.errors import FormatError, not_a_choice

if TYPE_CHECKING:
    from corpusveil.storage.forms import Form

_PACKAGE = "corpusveil.storage.forms"
_SUFFIX = re.compile(r"``(\.[a-z]+)(\[.*?\])?``")
"""A suffix in a first line; behind it, in brackets, the compressions that can follow."""


@functools.cache
def _declared() -> dict[str, tuple[str, Codec]]:
    """Return the module and the compression of each suffix."""
    declared: dict[str, tuple[str, Codec]] = {}
    for file in sorted(resources.files("corpusveil.storage").joinpath("forms").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".py"):
            first = file.read_text(encoding="utf-8").split("\n", 1)[0]
            for suffix, compressed in _SUFFIX.findall(first):
                for codec in CODECS if compressed else CODECS[:1]:
                    declared[suffix + codec] = f"{_PACKAGE}.{file.name.removesuffix('.py')}", codec
    return declared


SUFFIXES = tuple(_declared())
FORMATS = ("same", *(suffix[1:] for suffix in SUFFIXES))
"""The possible formats of an output."""


def form_of(name: str) -> str:
    """Return the suffix that identifies a file's format. Raises UserError for an unknown suffix."""
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix
    raise FormatError(
        f"{name}: the name does not say the format of this file; use one of the endings {', '.join(SUFFIXES)}."
    )


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
