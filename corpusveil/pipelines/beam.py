"""The Beam engine: shard tasks as the elements of a pipeline, on any runner."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from corpusveil.errors import UserError, WorkError
from corpusveil.transforms.handshake import SameVersions

DEFAULT_RUNNER = "FnApiRunner"
_LOSES_OUTPUT = "DaskRunner"


@contextlib.contextmanager
def _quiet(runner: str) -> Iterator[None]:
    """Silence Beam's own log on the local runner; others report the state of their jobs there."""
    before = logging.root.manager.disable
    if runner == DEFAULT_RUNNER:
        logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@dataclass(frozen=True, slots=True)
class BeamEngine:
    """Runs tasks as a Beam pipeline; ``options`` go to the runner as they are, ``workers`` is for local runners."""

    runner: str = DEFAULT_RUNNER
    workers: int = 1
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.runner == _LOSES_OUTPUT:
            raise UserError("--runner DaskRunner: this runner loses output (Beam 2.77); choose another one.")

    def run(self, function: Callable[[Any], None], tasks: Sequence[Any]) -> None:
        """Run ``function`` on every task. Raises UserError without Beam, WorkError when the pipeline fails."""
        try:
            with _quiet(self.runner):
                import apache_beam as beam
                from apache_beam.options.pipeline_options import PipelineOptions
        except ImportError:
            raise UserError("--engine beam needs Apache Beam: pip install 'corpusveil[beam]'.") from None
        flags = [f"--runner={self.runner}", *self.options]
        if self.workers > 1:
            flags += [f"--direct_num_workers={self.workers}", "--direct_running_mode=multi_processing"]
        try:
            with _quiet(self.runner), beam.Pipeline(options=PipelineOptions(flags)) as pipeline:
                _ = (
                    pipeline
                    | "Shard tasks" >> beam.Create(list(tasks))
                    | "One a worker" >> beam.Reshuffle()
                    | "Privatize shards" >> beam.Map(SameVersions.of(function))
                )
        except Exception as error:  # noqa: BLE001 - engines raise what they like
            told = f"{type(error).__name__}: {error}".splitlines()
            known = [line.split("Error: ")[-1] for line in told if "WorkError: " in line or "UserError: " in line]
            sentence = known[-1].split(" [while running")[0] if known else f"{type(error).__name__}."
            raise WorkError(f"The Beam pipeline failed: {sentence} What was finished is kept; run again.") from None
