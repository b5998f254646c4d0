"""The interface to Beam runners: options checked before anything starts, errors as one sentence."""

from __future__ import annotations

import contextlib
import io
import re
import socket
from collections.abc import Sequence
from typing import Any

from corpusveil.errors import (
    GO_ON,
    KILLED,
    AddressError,
    BadValueError,
    CorpusveilError,
    EngineError,
    UnknownError,
    UnsetError,
    UserError,
    sentences_in,
    worker_killed,
)

CONNECT_SECONDS = 10.0
_LOSES_OUTPUT = "DaskRunner"
_FETCHED = {
    "PrismRunner": "--prism_location",
    "FlinkRunner": "--flink_job_server_jar",
    "SparkRunner": "--spark_job_server_jar",
}
"""Runners that download a program, and the option that names a copy of it."""
_OTHER_OPTIONS = {*_FETCHED, "KafkaStreamsRunner"}
"""Runners with options that only their own job servers know."""


def refuse(runner: str) -> None:
    """Raise UserError for a runner that is not reliable."""
    if runner == _LOSES_OUTPUT:
        raise BadValueError("runner = DaskRunner: this runner loses output (Beam 2.77); choose another runner.")


def goes_on_alone(options: Sequence[str]) -> bool:
    """Say whether a job continues after the call has returned: for a template, and for a job that is not waited for."""
    return any(_name(option) in ("--template_location", "--no_wait_until_finish") for option in options)


def options_of(runner: str, flags: Sequence[str]) -> Any:
    """Return Beam's options. Raises UserError for unknown ones, bad values and a job endpoint that does not answer."""
    from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

    options = PipelineOptions([f"--runner={runner}", *flags])
    left = _left_over(options, flags)
    if runner == "PortableRunner":
        endpoint = options.view_as(PortableOptions).job_endpoint
        if not endpoint:
            raise UnsetError(
                "runner = PortableRunner: the address of a job server is missing; add --job_endpoint=HOST:PORT."
            )
        if endpoint != "embed":
            _reach(endpoint)
            known = _options_of_server(endpoint) if left else set()
            left = [word for word in left if _name(word) not in known]
    if left and runner not in _OTHER_OPTIONS:
        raise UnknownError(
            f"{_name(left[0])}: this is not an option of Beam or of {runner}; correct it, or leave it out."
        )
    return options


def parted(runner: str, flags: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split options, each ``--name=value``, into those that Beam knows and those that it would discard."""
    from apache_beam.options.pipeline_options import PipelineOptions

    left = _left_over(PipelineOptions([f"--runner={runner}", *flags]), flags)
    return [flag for flag in flags if flag not in left], left


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
        raise BadValueError(f"Beam does not accept these options of the runner: {why}.") from None
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


def _options_of_server(endpoint: str) -> set[str]:
    """Return the names of the options that a job server accepts itself; none if it does not report them."""
    import grpc
    from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc

    with grpc.insecure_channel(endpoint) as channel:
        service = beam_job_api_pb2_grpc.JobServiceStub(channel)
        try:
            told = service.DescribePipelineOptions(
                beam_job_api_pb2.DescribePipelineOptionsRequest(), timeout=CONNECT_SECONDS
            )
        except grpc.RpcError:
            return set()
        return {f"--{option.name}" for option in told.options}


def failure(error: BaseException, runner: str) -> CorpusveilError:
    """Return the failure as an error that quotes no document: only our own sentences, and Beam's about a call."""
    if KILLED in str(error):
        return worker_killed()
    known = str(error).splitlines() if isinstance(error, CorpusveilError) else sentences_in(str(error))
    if known:
        sentence = known[-1].split(" [while running")[0]
        return EngineError(f"The Beam pipeline failed: {sentence} {GO_ON}")
    if (
        fetched := re.search(r"Unable to fetch remote (?:prism binary|job server jar) at (\S+?):? ", f"{error} ")
    ) is not None:
        give = f", or fetch it elsewhere and give its path with {_FETCHED[runner]}=PATH" if runner in _FETCHED else ""
        return EngineError(
            f"runner = {runner}: {fetched[1]} could not be fetched, and this runner needs it; run online{give}."
        )
    return EngineError(f"The Beam pipeline failed: {type(error).__name__}. {GO_ON}")


def wrong_call(error: BaseException, runner: str) -> UserError:
    """Return Beam's objection to the runner's name or options."""
    text = str(error)
    if text.startswith("Unexpected pipeline runner"):
        names = text.partition("Valid values are ")[2].partition(" or the fully")[0]
        return UnknownError(f"runner = {runner}: Beam has no such runner; choose one of {names}.")
    if "." in runner and isinstance(error, (ImportError, AttributeError)):
        return UnknownError(
            f"runner = {runner}: this class could not be found; install its package or correct the name."
        )
    lines = [line.strip(" .") for line in text.splitlines() if line.strip() and "validations errors" not in line]
    return BadValueError(
        f"runner = {runner}: {'; '.join(lines) or type(error).__name__}; add it to the runner's options."
    )
