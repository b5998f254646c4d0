"""Runs that are held at a moment and harmed there, and what must be true afterwards."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import corpusveil as cv
from tests.engines.corpora import COMMAND, Ground, data_files, release_files
from tests.engines.processes import Cluster, end_session, finished, start, wait_until

SITE = Path(__file__).with_name("site")
WHERE = {
    "begin": r"out\.records/run\.json$",
    "looking": r"/spending/seen/part-00001",
    "ledger": r"/ledger/entries/",
    "piece": r"/pieces/part-00000-of-00005\.piece-00001",
    "writing": r"/out/data/part-00001",
    "recording": r"/shards/part-00001-of-00005\.json$",
    "joining": r"/out/data/part-00000",
    "manifest": r"/out/manifest\.json$",
    "page": r"report\.html$",
}
OPTIONS = {
    "local": ("--workers", 2),
    "spark": ("--engine", "spark", "--workers", 2),
    "cluster": ("--engine", "spark"),
    "beam": ("--engine", "beam"),
}
COUNTED = ("--unit", "content", "--cap", 1e9, "--corpus", "c", "--rows-per-task", 8192)
"""Caps that refuse nothing: a run looks at the ledger before and after it enters its spending."""


def published(folder: Path) -> dict[str, str]:
    """Return every file of the release in a run's folder, and its public page beside it, with their SHA-256."""
    page = folder / "out.report.html"
    found = release_files(folder / "out")
    return {**found, page.name: hashlib.sha256(page.read_bytes()).hexdigest()} if page.exists() else found


def spent(folder: Path) -> Any:
    """Return what the ledger of a run says: the readings of each release, and the most that a unit has spent."""
    ledger = cv.Ledger(str(folder / "ledger")).spent()
    return [{**line, "date": ""} for line in ledger.releases], ledger.most


def held_environment(plan: Path) -> dict[str, str]:
    """Return what lets every Python of a run look at a plan of where to hold."""
    paths = [str(SITE), os.environ.get("PYTHONPATH", "")]
    return {"CORPUSVEIL_HOLD": str(plan), "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@dataclass
class Bench:
    """A corpus, a release of it that nothing disturbed, and how long that took on each engine."""

    ground: Ground
    plan: Path
    cluster: Callable[[], Cluster]
    files: dict[str, str] = field(default_factory=dict)
    spent: Any = None
    seconds: dict[str, float] = field(default_factory=dict)
    options: dict[str, tuple[object, ...]] = field(default_factory=OPTIONS.copy)
    """Of the command, by engine."""
    settings: tuple[str, ...] = ()
    """Of Spark, on the cluster."""
    network: str | None = None
    """Where processes are held: in this network namespace only."""

    def arguments(self, folder: Path, engine: str, *more: object) -> list[str]:
        """Return the command line of a run that writes into ``folder``."""
        arguments = ("--ledger", folder / "ledger", *COUNTED, *more, *self.options[engine])
        return self.ground.arguments(self.ground.corpus, folder / "out", *arguments)

    def start(self, folder: Path, engine: str, *more: object) -> subprocess.Popen[bytes]:
        """Start a run."""
        arguments = self.arguments(folder, engine, *more)
        log = folder / "said.log"
        if engine == "cluster":
            return self.cluster().submit(arguments, log, *self.settings)
        return start([*COMMAND, *arguments], folder, log)

    def complete(self, folder: Path, engine: str, *more: object) -> float:
        """Run to the end; return how long that took."""
        began = time.monotonic()
        status = finished(self.start(folder, engine, *more))
        assert status == 0, (folder / "said.log").read_text()[-2000:]
        return time.monotonic() - began

    def undisturbed(self, engine: str, folder: Path) -> float:
        """Return how long a run takes when nothing goes wrong; the first one is what others are held to."""
        if engine not in self.seconds:
            place = folder / "undisturbed"
            place.mkdir()
            if engine == "cluster":
                self.cluster()  # whose start is no part of a run
            self.seconds[engine] = self.complete(place, engine)
            if not self.files:
                self.files, self.spent = published(place), spent(place)
            assert (published(place), spent(place)) == (self.files, self.spent)
            shutil.rmtree(place)
        return self.seconds[engine]

    @contextlib.contextmanager
    def held(
        self, folder: Path, engine: str, moment: str, *more: object
    ) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
        """Start a run and yield it, and the process that waits at the moment; let go of it at the end of the block."""
        marker, hold = folder / "marker", folder / "hold"
        hold.touch()
        plan = {"where": WHERE.get(moment, moment), "marker": str(marker), "hold": str(hold), "network": self.network}
        self.plan.write_text(json.dumps(plan))
        job = self.start(folder, engine, *more)
        try:
            wait_until(lambda: marker.exists() or job.poll() is not None, every=0.02)
            assert marker.exists(), f"never came to {moment}: " + (folder / "said.log").read_text()[-2000:]
            yield job, int(marker.read_text())
        except BaseException:
            end_session(job)
            raise
        finally:
            self.plan.unlink()
            hold.unlink()

    def nothing_is_half_written(self, folder: Path) -> None:
        """Check what a release shows before it is finished."""
        output = folder / "out"
        if (output / "manifest.json").exists():  # nothing but its page may still be missing
            missing = self.files.keys() - published(folder).keys()
            assert missing <= {"out.report.html"}
        for path in data_files(output):
            data = path.read_bytes()
            gzip.decompress(data)
            assert hashlib.sha256(data).hexdigest() == self.files[f"data/{path.name}"]

    def all_is_well(self, folder: Path) -> None:
        """Check a finished release, its page, its records and its ledger."""
        found = published(folder)
        assert {name for name in found.keys() | self.files.keys() if found.get(name) != self.files.get(name)} == set()
        assert cv.Ledger(str(folder / "ledger")).verify(folder / "out.records").differences == ()
        assert spent(folder) == self.spent
        assert not list(folder.rglob(".*.part"))

    def goes_on(self, job: subprocess.Popen[bytes], folder: Path, engine: str, *more: object) -> str:
        """Wait for a harmed run; complete it when it gave up, which it has to say in a sentence. Return what it did."""
        status = finished(job)
        if status == 0:
            return "went on"
        said = (folder / "said.log").read_text()
        assert status == 1, (status, said[-2000:])
        assert any(line.startswith("corpusveil: ") for line in said.splitlines()), said[-2000:]
        assert "Traceback" not in said
        self.nothing_is_half_written(folder)
        self.complete(folder, engine, *more)
        return "again"
