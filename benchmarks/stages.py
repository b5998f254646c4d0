"""The time of the whole job by stage: its functions, each with a clock that excludes callees."""

import functools
import time
from collections.abc import Callable
from typing import Any

from isal import igzip

from corpusveil.kernel import kernel
from corpusveil.mechanisms.ring_geometric import RingGeometric
from corpusveil.sampling.draws import Draws
from corpusveil.sampling.weights import WeightTable
from corpusveil.storage import compression, forms, tasks
from corpusveil.storage.forms import jsonlines
from corpusveil.text.tokens import Tokenizer
from corpusveil.transforms.release import job

REST = "lines, records, the rest"
STAGES: dict[str, list[tuple[Any, str]]] = {
    "gunzip": [(igzip.IGzipFile, "read")],
    "parse JSON to Arrow": [(jsonlines.JsonLines, "parsed")],
    "tokenise, look up": [(Tokenizer, "tokens")],
    "document tags (BLAKE2b)": [(kernel, "keyed_tags")],
    "roles, choice of tokens": [(kernel, "assign_roles"), (kernel, "picked")],
    "draws (AES)": [(Draws, "uint64"), (Draws, "pair")],
    "sample": [(RingGeometric, "privatize"), (WeightTable, "cells")],
    "write text": [(kernel, "write_text"), (kernel, "output_bound"), (kernel, "enter")],
    "serialise JSON, SHA-256": [(forms.ByteWriter, "write")],
    "gzip": [(compression.Blocks, "write"), (compression.Blocks, "end")],
    "file digests (BLAKE2b)": [(tasks.KeyedReader, "read"), (tasks.CountingFile, "write")],
    REST: [(job.ShardJob, "__call__")],
}


class Profiler:
    """CPU seconds by stage: steadier than wall time on a busy machine."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._inner = [0.0]

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self._inner.append(0.0)
            began = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.process_time() - began
                self.seconds[stage] += took - self._inner.pop()
                self._inner[-1] += took

        return call


def install() -> Profiler:
    """Put a clock on every stage, in this process and for good."""
    profiler = Profiler()
    for stage, places in STAGES.items():
        for owner, name in places:
            setattr(owner, name, profiler.timed(stage, getattr(owner, name)))
    return profiler
