"""Worker processes of Beam's local runner that end before the run does.

Beam does not keep the processes that it starts, waits forever for the answer of a killed process, and at exit joins the
others, which may wait for input that never comes. Here each process is kept. If one dies, the others are ended, and all
answer with an error. On any exception, the processes are killed before anything is waited for. A worker whose run is
killed would wait two minutes for it: here a shell beside each, which holds a pipe to the run, kills it at once.
"""

# A module of its own: its class derives from one of Beam's, which is imported only where several processes work.

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import weakref
from typing import Any

from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_fn_api_pb2, endpoints_pb2
from apache_beam.runners.portability.fn_api_runner.worker_handlers import SubprocessSdkWorkerHandler, WorkerHandler
from google.protobuf import json_format, text_format

from corpusveil.errors import KILLED

_ANSWER_SECONDS = 0.1
_WATCHED = "exec 3<&0; (read -r _ <&3 || kill -9 $$) & exec {} </dev/null 3<&-"
"""The pipe is watched from before the worker's first instruction. A line says that the worker has ended by itself."""
_FELLOWS: weakref.WeakKeyDictionary[Any, list[KeptWorkerHandler]] = weakref.WeakKeyDictionary()
"""The workers of a pipeline, by the server that they talk to."""


def register() -> None:
    """Let Beam start the worker processes of this process's pipelines in this way, from now on."""
    WorkerHandler.register_environment(python_urns.SUBPROCESS_SDK, bytes)(KeptWorkerHandler)


class KeptWorkerHandler(SubprocessSdkWorkerHandler):
    """The object that Beam starts, uses and closes as one worker."""

    def start_worker(self) -> None:
        """Start the process, and the thread that waits for its end."""
        self._ended, self._closed = threading.Event(), threading.Event()
        control = endpoints_pb2.ApiServiceDescriptor(url=self.control_address)
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHED.format(self._worker_command_line.decode())],
            stdin=subprocess.PIPE,
            env={
                **os.environ,
                "CONTROL_API_SERVICE_DESCRIPTOR": text_format.MessageToString(control),
                "LOGGING_API_SERVICE_DESCRIPTOR": text_format.MessageToString(self.logging_api_service_descriptor()),
                "PIPELINE_OPTIONS": json_format.MessageToJson(self.provision_info.provision_info.pipeline_options),
                "WORKER_ID": self.worker_id,
            },
            start_new_session=True,  # Ctrl+C is for the run, which ends its workers
        )
        _FELLOWS.setdefault(self._grpc_server, []).append(self)
        self.worker_thread = threading.Thread(name="run_worker", target=self._wait, daemon=True)
        self.worker_thread.start()

    def close(self) -> None:
        """End the process: by a message after success, otherwise by force, after the other workers."""
        if sys.exc_info()[0] is not None or self._ended.is_set():
            self._end_all()
        self._ended.set()
        self._closed.set()
        try:
            super().close()
        finally:
            _FELLOWS[self._grpc_server].remove(self)

    def end(self) -> None:
        self._ended.set()
        self._process.kill()

    def _end_all(self) -> None:
        for fellow in [*_FELLOWS[self._grpc_server]]:
            fellow.end()

    def _wait(self) -> None:
        self._process.wait()
        with contextlib.suppress(OSError):
            self._process.communicate(b"\n")
        if self._ended.is_set():
            return
        self._end_all()
        answer = beam_fn_api_pb2.InstructionResponse(error=KILLED)
        while not self._closed.wait(_ANSWER_SECONDS):  # further requests may come before the run has noticed
            for fellow in [*_FELLOWS[self._grpc_server]]:
                for future in list(fellow.control_conn._futures_by_id.values()):  # noqa: SLF001 - Beam's abort() leaves waiting whoever waits for data
                    future.set(answer)
