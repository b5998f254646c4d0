"""The Beam engine: shard tasks as the elements of a pipeline, on any runner."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from corpusveil.errors import UserError, WorkError
from corpusveil.transforms.handshake import SameVersions
from corpusveil.transforms.metrics import NAMES, NAMESPACE

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
class _Counted:
    """A function over tasks whose measures are added to Beam's counters."""

    function: Callable[[Any], Any]

    def __call__(self, task: Any) -> None:
        from apache_beam.metrics import Metrics

        for name, number in (self.function(task) or {}).items():
            Metrics.counter(NAMESPACE, name).inc(number)


def _sums(result: Any) -> dict[str, int]:
    """Return the counters of a finished pipeline; a runner that does not tell them gives none."""
    try:
        counters = result.metrics().query()["counters"]
    except NotImplementedError:
        return {}
    mine = [one for one in counters if one.key.metric.namespace == NAMESPACE and one.key.metric.name in NAMES]
    return {one.key.metric.name: int(one.result) for one in mine}


@dataclass(frozen=True, slots=True)
class BeamEngine:
    """Runs tasks as a Beam pipeline; ``options`` go to the runner as they are, ``workers`` is for local runners."""

    runner: str = DEFAULT_RUNNER
    workers: int = 1
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.runner == _LOSES_OUTPUT:
            raise UserError("--runner DaskRunner: this runner loses output (Beam 2.77); choose another one.")

    def slots(self) -> int:
        """Return how many tasks can be done at once, as far as it is known here."""
        return self.workers

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> dict[str, int]:
        """Run ``function`` on every task; return the sums of what it measured, which are the pipeline's counters.

        Raises UserError without Beam, WorkError when the pipeline fails.
        """
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
            with _quiet(self.runner):
                pipeline = beam.Pipeline(options=PipelineOptions(flags))
                _ = (
                    pipeline
                    | "Shard tasks" >> beam.Create(list(tasks))
                    | "One a worker" >> beam.Reshuffle()
                    | "Privatize shards" >> beam.Map(_Counted(SameVersions.of(function)))
                )
                result = pipeline.run()
                result.wait_until_finish()
                return _sums(result)
        except Exception as error:  # noqa: BLE001 - engines raise what they like
            told = f"{type(error).__name__}: {error}".splitlines()
            known = [line.split("Error: ")[-1] for line in told if "WorkError: " in line or "UserError: " in line]
            sentence = known[-1].split(" [while running")[0] if known else f"{type(error).__name__}."
            raise WorkError(f"The Beam pipeline failed: {sentence} What was finished is kept; run again.") from None
