"""Public texts of which the tests make stores."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

from corpusveil.passages.build import SALT_BYTES
from corpusveil.passages.store import TEXTS, VECTORS
from tests.engines.corpora import release_files

SALT, OTHER = "00" * SALT_BYTES, "5a" * SALT_BYTES
WORDS = """\
old new cold warm small large quiet busy clean dirty early late cheap strange
river house train letter garden kitchen bridge market window doctor teacher driver bottle ticket
found opened closed moved cleaned painted watched missed
"""
ADJECTIVES, NOUNS, VERBS = (line.split() for line in WORDS.splitlines())
SENTENCES = [
    f"The {one} {two} {verb} a {three}."
    for one, two, verb, three in itertools.product(ADJECTIVES, NOUNS, VERBS, NOUNS)
    if two != three
]


def write(folder: Path, texts: Sequence[str], shards: int = 1) -> str:
    folder.mkdir(parents=True)
    for shard in range(shards):
        lines = (json.dumps({"text": text}) + "\n" for text in texts[shard::shards])
        (folder / f"{shard}.jsonl").write_text("".join(lines))
    return str(folder)


def content(folder: Path) -> dict[str, str]:
    return {name: digest for name, digest in release_files(folder).items() if name in (TEXTS, VECTORS)}
