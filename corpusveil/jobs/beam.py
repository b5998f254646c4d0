"""The Beam engine: shard tasks as the elements of a pipeline, on any runner.

Options are checked before anything starts, and an error of a runner becomes one sentence.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from corpusveil.errors import (
    GO_ON,
    KILLED,
    AddressError,
    CorpusveilError,
    DataError,
    PackageError,
    SettingError,
    UserError,
    WorkError,
    sentences_in,
    user_error_in,
    worker_killed,
)
from corpusveil.transforms.handshake import SameVersions

DEFAULT_RUNNER = "FnApiRunner"
PRISM = "PrismRunner"
DATAFLOW = "DataflowRunner"
_SLOTS_ELSEWHERE = 64
MOST_BYTES = 8 << 20
"""Dataflow accepts requests of 10 MB. A graph has 27 KB and some 40 bytes per input shard: 420 KB for 10,000."""
CONNECT_SECONDS = 10.0
_FETCHED = {PRISM: "--prism_location", "FlinkRunner": "--flink_job_server_jar", "SparkRunner": "--spark_job_server_jar"}
"""Runners that download a program, and the option that names a copy of it."""
_NOT_WANTED = ("--no_wait_until_finish", "--template_location", "--runner", "--help", "-h")
"""Options by which a call would return before the job is done, or go to another runner."""
_OTHER_OPTIONS = {*_FETCHED, "KafkaStreamsRunner", "PortableRunner"}
"""Runners with options that only their own job servers know."""


@contextlib.contextmanager
def _quiet(runner: str) -> Iterator[None]:
    """Silence Beam's and gRPC's logs on a local runner, whose tracebacks would be shown."""
    if runner not in (DEFAULT_RUNNER, PRISM):
        yield
        return
    disabled, shown = logging.root.manager.disable, threading.excepthook
    if runner == PRISM:  # whose end is logged after this block, by Beam and by the runner's own process
        for logger in ("apache_beam", PRISM):
            logging.getLogger(logger).setLevel(logging.CRITICAL)

    def hook(raised: threading.ExceptHookArgs) -> None:
        if not raised.exc_type.__module__.startswith("grpc"):
            shown(raised)

    logging.disable(logging.CRITICAL)
    threading.excepthook = hook
    try:
        yield
        threading.excepthook = shown  # not after an error: threads of a runner that is gone end a moment later
    finally:
        logging.disable(disabled)


def build(pipeline: Any, function: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
    """Add the work to a pipeline, one element per task."""
    import apache_beam as beam

    _ = (
        pipeline
        | "Shard tasks" >> beam.Create(list(tasks), reshuffle=False)
        | "One a worker" >> beam.Reshuffle()
        | "Privatize shards" >> beam.Map(SameVersions.for_function(function))
    )


@dataclass(frozen=True, slots=True)
class Beam:
    """The engine that runs tasks as a Beam pipeline; ``options`` are passed to the runner unchanged.

    Raises UserError without Beam, and for a runner or options that Beam does not accept, when it runs.

    >>> engine = cv.Beam("DataflowRunner", ("--project=mine", "--region=europe-west1"))
    """

    runner: str = DEFAULT_RUNNER
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.runner == "DaskRunner":
            raise SettingError("runner = DaskRunner: this runner loses output (Beam 2.77); choose another runner.")

    def check(self) -> None:
        """Raise UserError without Beam, and for a runner or options that Beam does not accept."""
        self.pipeline()

    def slots(self) -> int:
        """Return how many tasks run in parallel; a remote runner is assumed to have many workers."""
        return 1 if self.runner == DEFAULT_RUNNER else _SLOTS_ELSEWHERE

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
        """Run ``function`` on every task. Raises WorkError if the pipeline fails."""
        pipeline = self.pipeline()
        build(pipeline, function, tasks)
        if self.runner == DATAFLOW and (size := pipeline.to_runner_api().ByteSize()) > MOST_BYTES:
            raise DataError(
                f"The graph of this Dataflow job has {size >> 20:,} MiB, and {MOST_BYTES >> 20} MiB is the most; use "
                "fewer inputs, and a saved space."
            )
        try:
            with _quiet(self.runner), pipeline:
                pass
        except Exception as error:  # noqa: BLE001 - engines raise what they like
            raise _failure(error, self.runner) from None

    def pipeline(self) -> Any:
        """Return an empty pipeline. Raises UserError without Beam, and for options that it does not accept."""
        try:
            with _quiet(self.runner):
                import apache_beam as beam
        except ImportError:  # it is missing, or, for example, there is too little memory for its libraries
            raise PackageError("the engine beam needs Apache Beam: pip install 'corpusveil[beam]'.") from None
        with _quiet(self.runner):
            options = _options_of(self.runner, self.options)
            try:
                return beam.Pipeline(options=options)
            except (ValueError, ImportError, AttributeError) as error:
                raise _wrong_call(error, self.runner) from None
            except Exception as error:  # noqa: BLE001 - Dataflow's asks Google for a bucket
                raise WorkError(
                    f"runner = {self.runner}: its options could not be checked ({type(error).__name__}); check the "
                    "network, and name a bucket with temp_location."
                ) from None


def _options_of(runner: str, flags: Sequence[str]) -> Any:
    """Return Beam's options. Raises UserError for unknown ones, bad values and a job endpoint that does not answer."""
    from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

    for word in flags:
        if _name(word) in _NOT_WANTED:
            raise SettingError(
                f"{_name(word)}: a job runs on the runner of the settings, and corpusveil waits for it; leave this "
                "option out."
            )
    options = PipelineOptions([f"--runner={runner}", *flags])
    left = _left_over(options, flags)
    if runner == "PortableRunner":
        endpoint = options.view_as(PortableOptions).job_endpoint
        if not endpoint:
            raise SettingError(
                "runner = PortableRunner: the address of a job server is missing; add --job_endpoint=HOST:PORT."
            )
        if endpoint != "embed":
            _reach(endpoint)
    if left and runner not in _OTHER_OPTIONS:
        raise SettingError(
            f"{_name(left[0])}: this is not an option of Beam or of {runner}; correct it, or leave it out."
        )
    return options


def _left_over(options: Any, flags: Sequence[str]) -> list[str]:
    """Return the words that Beam would discard with a warning. Raises UserError for a value of the wrong kind."""
    parsers: list[Any] = []
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            options.get_all_options(add_extra_args_fn=parsers.append)
            left: list[str] = parsers[0].parse_known_args(list(flags))[1]
    except SystemExit:  # from argparse, whose last line has the reason
        why = (said.getvalue().strip().splitlines() or [""])[-1].partition("error: ")[2]
        raise SettingError(f"Beam does not accept these options of the runner: {why}.") from None
    return left


def _name(word: str) -> str:
    return word.partition("=")[0]


def _reach(endpoint: str) -> None:
    host, _, port = endpoint.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, ValueError):
        raise AddressError(
            f"--job_endpoint={endpoint}: no job server answers at this address; start it, or correct the address "
            "(HOST:PORT)."
        ) from None


def _failure(error: BaseException, runner: str) -> CorpusveilError:
    """Return the failure as an error that quotes no document: only our own sentences, and Beam's about a call."""
    text = str(error)
    if KILLED in text or "SDK worker disconnected" in text:  # as Prism says that a worker is gone
        return worker_killed()
    if isinstance(error, CorpusveilError):
        text = f"{type(error).__module__}.{type(error).__name__}: {text}"
    text = text.replace(" [while running", "\n")
    if (wrong := user_error_in(text)) is not None:
        return wrong
    if known := sentences_in(text):
        return WorkError(f"The Beam pipeline failed: {known[-1]} {GO_ON}")
    if (
        fetched := re.search(r"Unable to fetch remote (?:prism binary|job server jar) at (\S+?):? ", f"{error} ")
    ) is not None:
        give = f", or fetch it elsewhere and give its path with {_FETCHED[runner]}=PATH" if runner in _FETCHED else ""
        return WorkError(
            f"runner = {runner}: {fetched[1]} could not be fetched, and this runner needs it; run online{give}."
        )
    return WorkError(f"The Beam pipeline failed: {type(error).__name__}. {GO_ON}")


def _wrong_call(error: BaseException, runner: str) -> UserError:
    """Return Beam's objection to the runner's name or options."""
    text = str(error)
    if text.startswith("Unexpected pipeline runner"):
        names = text.partition("Valid values are ")[2].partition(" or the fully")[0]
        return SettingError(f"runner = {runner}: Beam has no such runner; choose one of {names}.")
    if "." in runner and isinstance(error, (ImportError, AttributeError)):
        return SettingError(
            f"runner = {runner}: this class could not be found; install its package or correct the name."
        )
    lines = [line.strip(" .") for line in text.splitlines() if line.strip() and "validations errors" not in line]
    return SettingError(
        f"runner = {runner}: {'; '.join(lines) or type(error).__name__}; add it to the runner's options."
    )
