"""Engines by their names."""

from __future__ import annotations

from corpusveil.errors import UserError
from corpusveil.transforms.corpus import Engine


def make_engine(
    name: str, workers: int | None, master: str | None, runner: str = "FnApiRunner", options: tuple[str, ...] = ()
) -> Engine:
    """Return the engine that the options name. Raises UserError for options of another engine."""
    if name == "spark":
        from corpusveil.jobs.spark import SparkEngine

        return SparkEngine(master, workers)
    if master is not None:
        raise UserError("--master is for --engine spark; add that or leave it out.")
    if name == "beam":
        from corpusveil.pipelines.beam import BeamEngine

        made = BeamEngine(runner, workers or 1, options)
        made.pipeline()  # refuses what Beam does not take, before anything is written
        return made
    from corpusveil.pipelines.local import LocalEngine

    return LocalEngine(workers or 1)
