"""Runs that are killed in the middle, and what must be true then."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.engines.corpora import TEST_KEY, Ground, release_files
from tests.engines.processes import start_command

KEY = TEST_KEY


@dataclass(frozen=True)
class Undisturbed:
    """A corpus, and the files of its release when nothing went wrong."""

    ground: Ground
    content: str
    files: dict[str, str]

    @property
    def shards(self) -> int:
        """How many shards there are."""
        return len(list(self.ground.corpus.iterdir()))


def records_of(output: Path) -> Path:
    """Return the folder of the records of an output."""
    return output.with_name(output.name + ".records")


def done(output: Path) -> int:
    """Return how many shard tasks are recorded as done."""
    folder = records_of(output) / "shards"
    return len(list(folder.glob("part-*.json"))) if folder.exists() else 0


def begin(undisturbed: Undisturbed, output: Path, *more: object) -> subprocess.Popen[bytes]:
    """Start a run in processes of its own."""
    arguments = undisturbed.ground.arguments(undisturbed.ground.corpus, output, *more)
    return start_command(arguments, output.parent, output.parent / "killed.log")


def assert_undisturbed(undisturbed: Undisturbed, output: Path) -> None:
    """Check that a release is that of an undisturbed run, and that nothing of the work is left."""
    there = release_files(output)
    differ = sorted(name for name in there.keys() | undisturbed.files if there.get(name) != undisturbed.files.get(name))
    assert not differ, differ
    assert not list(records_of(output).rglob("*.part"))
    assert not list((records_of(output) / "progress").glob("*"))
