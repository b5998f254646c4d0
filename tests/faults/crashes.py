"""Runs that are killed in the middle, and what must be true then."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.engines.corpora import TEST_KEY, Ground, data_files, release_files
from tests.engines.corpora import run as run_command
from tests.engines.processes import end_session, kill_tree, start_command, wait_until

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


def kill_in_the_middle(undisturbed: Undisturbed, output: Path, *more: object) -> int:
    """Start a run, kill all its processes once a first task is recorded; return how many tasks were done."""
    process = begin(undisturbed, output, *more)
    try:
        wait_until(lambda: done(output) > 0 or process.poll() is not None)
        kill_tree(process)
    finally:
        end_session(process)
    assert process.returncode == -9, (output.parent / "killed.log").read_text()
    return done(output)


def assert_nothing_is_half_written(undisturbed: Undisturbed, output: Path) -> None:
    """Check that a release that was not finished holds no manifest, and no visible file that is not whole and right."""
    assert not (output / "manifest.json").exists()
    for path in data_files(output):
        gzip.decompress(path.read_bytes())
        assert hashlib.sha256(path.read_bytes()).hexdigest() == undisturbed.files[f"data/{path.name}"]
    assert {path.name for path in output.glob("*")} <= {"data"}


def run_again(undisturbed: Undisturbed, output: Path, *more: object) -> None:
    """Run to the end, and check that the release is that of an undisturbed run, to the last byte and file."""
    arguments = undisturbed.ground.arguments(undisturbed.ground.corpus, output, *more)
    told = run_command(*arguments, home=output.parent)
    assert told.returncode == 0, told.stderr
    assert undisturbed.content in told.stdout
    assert_undisturbed(undisturbed, output)


def assert_undisturbed(undisturbed: Undisturbed, output: Path) -> None:
    """Check that a release is that of an undisturbed run, and that nothing of the work is left."""
    there = release_files(output)
    differ = sorted(name for name in there.keys() | undisturbed.files if there.get(name) != undisturbed.files.get(name))
    assert not differ, differ
    assert not list(records_of(output).rglob("*.part"))
    assert not list((records_of(output) / "progress").glob("*"))
