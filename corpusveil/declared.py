"""Constants that files declare, such as the endings of a form, read without importing the files.

Help names every form and command, and has to start at once.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from corpusveil.errors import InstallationError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def declared(folder: Traversable, name: str, *, by_all: bool = False) -> dict[str, Any]:
    """Return the value that each Python file of a folder assigns to ``name``, by module, sorted.

    With ``by_all``, every file but ``__init__`` has to declare one. Raises UserError if one does not, or if a value is
    not a literal on one line.
    """
    assignment = re.compile(rf"^{name}(?:: [^=\n]+)? = (.+)$", re.MULTILINE)
    values: dict[str, Any] = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        stem, _, ending = file.name.partition(".")
        if ending != "py" or stem == "__init__":
            continue
        try:
            declaration = assignment.search(file.read_text(encoding="utf-8"))
            if declaration:
                values[stem] = ast.literal_eval(declaration[1])
        except (SyntaxError, ValueError):
            raise InstallationError(f"{file}: {name} has to be a literal on one line.") from None
        if by_all and stem not in values:
            raise InstallationError(f"{file}: this file declares no {name}; add a line such as those of its neighbors.")
    return values
