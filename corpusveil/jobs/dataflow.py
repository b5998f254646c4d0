"""The Dataflow engine: Beam's, on Google's runner. docs/clusters.md has the image of its workers."""

from __future__ import annotations

from dataclasses import dataclass, field

from corpusveil.jobs.beam import DATAFLOW, Beam


@dataclass(frozen=True)
class Dataflow(Beam):
    """Runs tasks as a Dataflow job; ``options`` are those of its runner, such as ``--project=NAME``."""

    runner: str = field(default=DATAFLOW, init=False)
