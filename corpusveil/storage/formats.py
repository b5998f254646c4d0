"""The forms that documents come in, one module each, known by the names of files."""

from __future__ import annotations

from corpusveil.errors import UserError
from corpusveil.storage.compression import CODECS
from corpusveil.storage.delimited import Csv
from corpusveil.storage.jsonlines import JsonLines
from corpusveil.storage.parquet import Parquet
from corpusveil.storage.plain import PlainText
from corpusveil.storage.rows import Form

_FORMS: tuple[Form, ...] = (
    *(JsonLines((f".json{codec}", f".jsonl{codec}"), codec) for codec in CODECS),
    Parquet((".parquet",)),
    *(Csv((f".csv{codec}",), codec) for codec in CODECS),
    *(PlainText((f".txt{codec}",), codec) for codec in CODECS),
)
SUFFIXES = tuple(suffix for form in _FORMS for suffix in form.suffixes)
FORMATS = ("same", *(suffix[1:] for suffix in SUFFIXES))
"""What ``--format`` may be."""


def form_of(name: str) -> str:
    """Return the suffix by which a file's form is known. Raises UserError for an unknown one."""
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix
    raise UserError(f"{name}: the form of this file is not known by its name; known are {', '.join(SUFFIXES)}.")


def suffix_of(format: str) -> str | None:
    """Return the suffix of an output format, None for that of the input. Raises UserError for an unknown one."""
    if format not in FORMATS:
        raise UserError(f"--format {format}: it may be {', '.join(FORMATS)}.")
    return None if format == "same" else f".{format}"


def find(suffix: str) -> Form:
    """Return the form that a suffix stands for."""
    return next(form for form in _FORMS if suffix in form.suffixes)
