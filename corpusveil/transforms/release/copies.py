"""Copies: documents of equal bytes, recognized by keyed tags. They are counted or left out."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.sampling.draws import keyed_tags
from corpusveil.storage import disk, files
from corpusveil.storage.durable import stem
from corpusveil.storage.engine import Engine
from corpusveil.storage.records import Records
from corpusveil.storage.rows import Batch
from corpusveil.storage.shard_notes import Pass, look
from corpusveil.storage.tasks import ShardTask
from corpusveil.text.tokens import string_buffers

AT_ONCE = 1 << 22
"""The number of documents whose tags are in memory together."""
TAGS = ".tags"
"""The ending of files with the tags of a task's documents."""
_TAG = np.dtype([("low", "<u8"), ("high", "<u8"), ("row", "<i8")])
_PLACED = np.dtype([*_TAG.descr, ("shard", "<i4")])

Tags = npt.NDArray[np.void]


def content_tags(secret: bytes, texts: pa.Array, rows: Sequence[int]) -> Tags:
    """Return tag and row of every document that is not null: strings [D] and their rows [D]; ``_TAG`` [at most D]."""
    if texts.null_count:
        valid = texts.is_valid().to_numpy(zero_copy_only=False)
        texts, rows = texts.drop_null(), [row for row, there in zip(rows, valid, strict=True) if there]
    data, documents = string_buffers(texts)
    tags = keyed_tags(secret, "content", [b""] * len(texts), data[documents[0] :], documents - documents[0])
    packed = np.empty(len(texts), dtype=_TAG)
    packed["low"], packed["high"], packed["row"] = tags[:, 0], tags[:, 1], rows
    return packed


@dataclass(frozen=True, slots=True)
class CopiesPass(Pass):
    """Notes the tags of all documents."""

    name: ClassVar[str] = "copies"
    suffix: ClassVar[str] = TAGS

    secret: bytes = field(default=b"", repr=False)

    def write_note(self, task: ShardTask, batches: Iterator[Batch], address: str) -> None:  # noqa: ARG002 - equal wherever they lie
        tags = [content_tags(self.secret, batch.texts, batch.rows) for batch in batches]
        files.write_bytes(address, np.concatenate([np.empty(0, _TAG), *tags]).tobytes(), private=True)

    def decides(self) -> Mapping[str, Any]:
        return {"secret": self.secret.hex()}


@dataclass(frozen=True, slots=True)
class Drops:
    """Which rows are left out: all copies of a document but the first, by shard and row, in files among the records."""

    records: Records
    digests: Mapping[int, str]
    """The digest of the rows that a shard leaves out, by the shard's number."""

    def rows(self, task: ShardTask) -> npt.NDArray[np.int64]:
        """Return the rows that a task's shard leaves out, ascending."""
        return np.frombuffer(files.read_bytes(self.records.address(rows_name(task.shard))), dtype="<i8")


def rows_name(shard: int) -> str:
    """Return the name of the file with the rows that a shard leaves out."""
    return f"{shard:05d}.rows"


def find_drops(job: CopiesPass, tasks: Sequence[ShardTask], engine: Engine) -> tuple[Drops, dict[str, str]]:
    """Find all documents that have the bytes of an earlier one, by shard and row.

    Returns them, and the digest of each task's input. Tags are held in memory in portions of ``AT_ONCE`` documents
    (about 70 bytes each), and the rows that one shard leaves out (8 bytes each); the rest lies in a temporary folder.
    Raises BadShardsError if the input has faults.
    """
    inputs = {name: seen.input for name, seen in look(job, tasks, engine).items()}
    digests = {}
    with tempfile.TemporaryDirectory(prefix="corpusveil-copies-") as folder:
        for tags in _portions(job.records, tasks):
            again = tags[_later(tags)]
            for shard in np.unique(again["shard"]):
                _append(f"{folder}/{shard}", again["row"][again["shard"] == shard])
        for shard in {task.shard for task in tasks}:
            path = f"{folder}/{shard}"
            data = np.sort(np.fromfile(path, "<i8") if os.path.exists(path) else np.empty(0, "<i8")).tobytes()
            files.write_bytes(job.records.address(rows_name(shard)), data, private=True)
            digests[shard] = hashlib.blake2b(data, digest_size=16, key=job.record_key).hexdigest()
    for task in tasks:
        files.remove(job.note_of(task))
    return Drops(job.records, digests), inputs


def _portions(records: Records, tasks: Sequence[ShardTask]) -> Iterator[Tags]:
    """Yield the recorded tags of the tasks, with their shards, all at once if they are few.

    Otherwise yield portions of about ``AT_ONCE``. Each portion has all equal tags, in the order of the tasks.
    """
    size = sum(files.size(records.address(stem(task) + TAGS)) or 0 for task in tasks)
    portions = size // (_TAG.itemsize * AT_ONCE) + 1
    if portions == 1:
        yield np.concatenate([np.empty(0, _PLACED), *(_read(records, task) for task in tasks)])
        return
    with tempfile.TemporaryDirectory(prefix="corpusveil-copies-") as folder:
        paths = [f"{folder}/{portion}" for portion in range(portions)]
        for task in tasks:
            tags = _read(records, task)
            which = tags["high"] % np.uint64(portions)
            for portion, path in enumerate(paths):
                _append(path, tags[which == portion])
        for path in paths:
            yield np.fromfile(path, _PLACED)
            os.unlink(path)


def _append(path: str, values: npt.NDArray[Any]) -> None:
    with open(path, "ab", opener=disk.private_opener) as file:
        file.write(values.tobytes())


def _read(records: Records, task: ShardTask) -> Tags:
    tags = np.frombuffer(files.read_bytes(records.address(stem(task) + TAGS)), dtype=_TAG)
    placed = np.empty(tags.size, _PLACED)
    for name in _TAG.names or ():
        placed[name] = tags[name]
    placed["shard"] = task.shard
    return placed


def _later(tags: Tags) -> npt.NDArray[np.bool_]:
    """Say for each tag whether an equal tag precedes it."""
    order = np.lexsort((tags["low"], tags["high"]))  # stable: equal ones stay in their order
    low, high = tags["low"][order], tags["high"][order]
    later = np.zeros(tags.size, dtype=np.bool_)
    later[order[1:]] = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
    return later


@dataclass(frozen=True, slots=True)
class Copies:
    """Of ``documents``, ``copies`` repeat an earlier document; the most frequent text occurs ``most`` times."""

    documents: int
    copies: int
    most: int

    def sentence(self) -> str:
        """Return the counts in words."""
        return (
            f"{self.documents:,} documents, of which {self.copies:,} are copies of an earlier document; the most "
            f"frequent text occurs {self.most:,} times. With duplicates = independent, such a document spends "
            f"{self.most:,} times as much"
        )


def count(parts: Iterable[Tags]) -> Copies:
    """Count equal tags."""
    tags = np.concatenate([np.empty(0, _TAG), *parts])
    order = np.lexsort((tags["low"], tags["high"]))
    low, high = tags["low"][order], tags["high"][order]
    begins = np.flatnonzero(np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1]))[: tags.size])
    times = np.diff(np.append(begins, tags.size))
    return Copies(tags.size, tags.size - begins.size, int(times.max(initial=0)))
