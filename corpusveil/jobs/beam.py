"""The Beam engine: shard tasks as the elements of a pipeline, on any runner."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from corpusveil.errors import InstallationError, PackageError, SizeError
from corpusveil.jobs import beam_runners
from corpusveil.jobs.local import Local
from corpusveil.storage.engine import NAMES, NAMESPACE
from corpusveil.transforms.handshake import SameVersions

DEFAULT_RUNNER = "FnApiRunner"
DATAFLOW = "DataflowRunner"
_SLOTS_ELSEWHERE = 64
MOST_BYTES = 8 << 20
"""Dataflow accepts requests of 10 MB. A graph has 27 KB and some 40 bytes per input shard: 420 KB for 10,000."""


@contextlib.contextmanager
def _quiet(runner: str) -> Iterator[None]:
    """Silence Beam's own log on the local runner; other runners report the state of their jobs there."""
    before = logging.root.manager.disable
    if runner == DEFAULT_RUNNER:
        logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def _hushed_threads(runner: str) -> Iterator[None]:
    """Hide messages of gRPC's threads about broken connections to workers of the local runner."""
    if runner != DEFAULT_RUNNER:
        yield
        return
    shown = threading.excepthook

    def hook(told: threading.ExceptHookArgs) -> None:
        if not told.exc_type.__module__.startswith("grpc"):
            shown(told)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = shown


def build(
    pipeline: Any,
    function: Callable[[Any], Any],
    tasks: Sequence[Any],
    then: Callable[[Any], Any] | None = None,
    *,
    hushed: bool = False,
) -> None:
    """Add the work to a pipeline: one element per task, distributed among workers, and ``then`` once when all are done.

    The function, including its subkeys, is part of the job's graph; the space is sent as its URL. ``hushed`` is for
    workers that are processes of this machine: the launcher reports their errors once.
    """
    import apache_beam as beam

    done = (
        pipeline
        | "Shard tasks" >> beam.Create(list(tasks), reshuffle=False)
        | "One a worker" >> beam.Reshuffle()
        | "Privatize shards" >> beam.Map(_Counted(SameVersions.of(function), hushed))
    )
    if then is not None:
        waited = done | "Done" >> beam.Map(_one_key) | "All of them" >> beam.GroupByKey()
        _ = waited | "Finish the release" >> beam.Map(SameVersions.of(then))


def _one_key(_: Any) -> tuple[int, int]:
    return 0, 0


@dataclass(frozen=True, slots=True)
class _Counted:
    """A function over tasks whose measures are added to Beam's counters."""

    function: Callable[[Any], Any]
    hushed: bool = False

    def __call__(self, task: Any) -> None:
        from apache_beam.metrics import Metrics

        try:
            measured = self.function(task)
        except BaseException:
            if self.hushed:  # Beam's worker prints the traceback of an error, and also sends it to the launcher
                sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for what is left of this process
            raise
        for name, number in (measured or {}).items():
            Metrics.counter(NAMESPACE, name).inc(number)


def _sums(result: Any) -> dict[str, int]:
    """Return the counters of a finished pipeline; none from a runner that does not report them."""
    try:
        counters = result.metrics().query()["counters"]
    except Exception:  # noqa: BLE001 - a job that has ended well is none the worse for what its runner can't tell
        return {}
    mine = [one for one in counters if one.key.metric.namespace == NAMESPACE and one.key.metric.name in NAMES]
    return {one.key.metric.name: int(one.result) for one in mine if one.result is not None}


@dataclass(frozen=True, slots=True)
class Beam:
    """Runs tasks as a Beam pipeline.

    ``options`` are passed to the runner unchanged, ``workers`` is for local runners.
    """

    runner: str = DEFAULT_RUNNER
    workers: int = 1
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        beam_runners.refuse(self.runner)

    @property
    def detached(self) -> bool:
        """Say whether the job continues after the call has returned."""
        return beam_runners.goes_on_alone(self.options)

    def check(self) -> None:
        """Raise UserError without Beam, and for a runner or options that Beam does not accept."""
        self.pipeline()

    def slots(self) -> int:
        """Return how many tasks run in parallel; a remote runner is assumed to have many workers."""
        return self.workers if self.runner == DEFAULT_RUNNER else _SLOTS_ELSEWHERE

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> dict[str, int]:
        """Run ``function`` on every task; return the sums of its measures, which are the pipeline's counters.

        Raises UserError without Beam, WorkError if the pipeline fails. If the job would continue after the call, work
        that must be finished at the return is done on this machine.
        """
        if self.detached:
            return Local(os.cpu_count() or 1).run(function, tasks)
        return self.launch(function, tasks)

    def launch(
        self, function: Callable[[Any], Any], tasks: Sequence[Any], then: Callable[[Any], Any] | None = None
    ) -> dict[str, int]:
        """Run a pipeline that does the tasks and then calls ``then``; return when it ends, or when it has begun."""
        pipeline = self.pipeline()
        build(pipeline, function, tasks, then, hushed=self.runner == DEFAULT_RUNNER and self.workers > 1)
        if self.runner == DATAFLOW and (size := pipeline.to_runner_api().ByteSize()) > MOST_BYTES:
            raise SizeError(
                f"The graph of this Dataflow job has {size >> 20:,} MiB, and {MOST_BYTES >> 20} MiB is the most; use "
                "fewer inputs, and a saved space."
            )
        try:
            with _quiet(self.runner), _hushed_threads(self.runner), pipeline:
                pass
            return {} if self.detached else _sums(pipeline.result)
        except Exception as error:  # noqa: BLE001 - engines raise what they like
            raise beam_runners.failure(error, self.runner) from None

    def pipeline(self) -> Any:
        """Return an empty pipeline with the options.

        Raises UserError without Beam, and for options that it does not accept.
        """
        try:
            with _quiet(self.runner):
                import apache_beam as beam
        except ModuleNotFoundError:
            raise PackageError("the engine beam needs Apache Beam: pip install 'corpusveil[beam]'.") from None
        except ImportError as error:  # for example, with too little memory for its libraries
            raise InstallationError(
                f"Apache Beam is installed but could not be loaded ({type(error).__name__}); install it again."
            ) from None
        flags = list(self.options)
        if self.workers > 1:
            from corpusveil.jobs import beam_workers

            beam_workers.register()
            flags += [f"--direct_num_workers={self.workers}", "--direct_running_mode=multi_processing"]
        with _quiet(self.runner):
            options = beam_runners.options_of(self.runner, flags)
            try:
                return beam.Pipeline(options=options)
            except (ValueError, ImportError, AttributeError) as error:
                raise beam_runners.wrong_call(error, self.runner) from None
