"""The formats of documents, one module each, recognized by file names."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from corpusveil.choices import CODECS
from corpusveil.errors import FormatError, not_a_choice

if TYPE_CHECKING:
    from corpusveil.storage.rows import Form

SUFFIXES = (
    *(f"{stem}{codec}" for codec in CODECS for stem in (".json", ".jsonl")),
    ".parquet",
    *(f".csv{codec}" for codec in CODECS),
    *(f".txt{codec}" for codec in CODECS),
)
FORMATS = ("same", *(suffix[1:] for suffix in SUFFIXES))
"""The possible formats of an output."""


@functools.cache
def _forms() -> dict[str, Form]:
    """Return the formats by suffix. Help needs only the names, so the modules are imported here."""
    from corpusveil.storage.delimited import Csv
    from corpusveil.storage.jsonlines import JsonLines
    from corpusveil.storage.parquet import Parquet
    from corpusveil.storage.plain import PlainText

    forms: list[Form] = [Parquet((".parquet",))]
    for codec in CODECS:
        forms += [
            JsonLines((f".json{codec}", f".jsonl{codec}"), codec),
            Csv((f".csv{codec}",), codec),
            PlainText((f".txt{codec}",), codec),
        ]
    return {suffix: form for form in forms for suffix in form.suffixes}


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


def find(suffix: str) -> Form:
    """Return the format of a suffix."""
    return _forms()[suffix]
