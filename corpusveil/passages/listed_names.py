"""Words that public lists know as given or family names (``scripts/name_lists.py``)."""

from __future__ import annotations

import functools
import gzip
from importlib import resources


@functools.cache
def listed_names() -> tuple[frozenset[str], frozenset[str]]:
    """Return the words that are names and nothing else (*sarah*), and those that are also others (*mark*, *london*)."""
    raw = gzip.decompress(resources.files(__package__).joinpath("names.txt.gz").read_bytes()).decode()
    only, also = (frozenset(line.split(" ")) for line in raw.split("\n"))
    return only, also
