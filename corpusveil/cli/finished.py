"""Artefacts that a command made before: the same call again does nothing, and says so."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from corpusveil.collocations.artifact import is_artifact
from corpusveil.storage import files


@contextlib.contextmanager
def said_when_made(output: str) -> Iterator[None]:
    """Say at the end of the block that nothing was done, where the artefact was complete before it."""
    made = is_artifact(files.absolute(output))
    yield
    if made:
        print(f"{output}: this call has made it before; nothing was done.", file=sys.stderr)
