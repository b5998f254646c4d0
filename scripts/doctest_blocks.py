"""An extension of griffe for the documentation: examples of docstrings, from ``>>>`` on, are blocks of code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?:^|(?<=\n\n))>>> (?:.+\n?)+")


def blocks(text: str) -> str:
    """Return a text with fences around its examples."""
    return _EXAMPLE.sub(lambda example: f"```pycon\n{example[0].rstrip()}\n```\n", text)


class DoctestBlocks(griffe.Extension):
    """Rewrites each docstring before it is read as Markdown."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = blocks(obj.docstring.value)
