"""A release, denoised: read its manifest, map over its shards, write a manifest that names it.

Only the release's folder and public artifacts are read. Records in ``OUTPUT.work`` show which tasks remain; they
contain nothing private, and are removed after the manifest is written.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import corpusveil
from corpusveil.budget import Budget
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.errors import BadRecordError, InUseError, MismatchError, NotMadeError, OverlapError
from corpusveil.language.candidates import Lister
from corpusveil.language.denoise import MARGIN, NO_FACTS, VERSION, Denoiser, Search
from corpusveil.language.model import LanguageModel
from corpusveil.mechanisms import Mechanism, make
from corpusveil.spaces import Space
from corpusveil.storage import files
from corpusveil.storage.corpus import CorpusIn, CorpusOut
from corpusveil.storage.documents import Documents
from corpusveil.storage.durable import claimed, do_all, forget_failed, once
from corpusveil.storage.engine import Engine, Here
from corpusveil.storage.inputs import InputShard, find_shards
from corpusveil.storage.reading import reading
from corpusveil.storage.records import Record, Records, Shard
from corpusveil.storage.rows import BLOCK_ROWS, Columns
from corpusveil.storage.tasks import ShardTask, largest_first, plan
from corpusveil.text.counts import Counts
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.release.corpus import finish_shards
from corpusveil.transforms.release.job import ShardJob
from corpusveil.transforms.release.manifest import read_manifest
from corpusveil.transforms.release.pages import write_page
from corpusveil.transforms.release.verification import check_shard, manifest_of
from corpusveil.waiting import waiting

WORK = ".work"
AT_ONCE = 256
"""The documents that are denoised between two heartbeats."""
_RECORD_KEY = b"corpusveil denoise: what is digested is public"
_OF_SHARDS = ("documents", "tokens", "content_sha256", "checksums", "shards")


@dataclass(frozen=True, slots=True)
class DenoiseJob(ShardJob):
    """Denoises shards of the release in a folder, each of which must be the file that the manifest describes."""

    source_url: str = field(kw_only=True)
    source: Mapping[str, Any] = field(kw_only=True)

    def do(self, task: ShardTask) -> Shard:
        if not (task.piece or task.pieces):  # the first piece of a file checks it for all
            check_shard(self.source_url, self.source, task.shard)
        return super(DenoiseJob, self).do(task)

    def made(self, documents: Documents, beat: Callable[[float], None]) -> tuple[pa.Array, Counts]:
        """Denoise some documents at a time, as a batch takes minutes."""
        parts, counts = [documents.texts.slice(0, 0)], Counts()
        for first in range(0, len(documents), AT_ONCE):
            last = min(first + AT_ONCE, len(documents))
            part, counted = self.kernel.privatize(documents.part(first, last))
            parts.append(part)
            counts += counted
            beat(last / len(documents))
        return pa.concat_arrays([part.cast(pa.large_string()) for part in parts]), counts


class DenoiseClaim(Record):
    """``call.json``: the digest of the denoised release to which a folder of records belongs."""

    denoise: str


@dataclass(frozen=True, slots=True)
class Denoised:
    """The result of a run: the release's documents and tokens, released words, those that stayed, and the digest."""

    documents: int
    tokens: int
    words: int
    unchanged: int
    content_sha256: str
    seconds: float


def denoise(
    release: str, output: str, *, space: Space, model: LanguageModel, collocations: Collocations | None = None,
    search: Search | None = None, engine: Engine | None = None,
    watch: Callable[[Records, Sequence[ShardTask], str], Any] | None = None,
) -> Denoised:  # fmt: skip
    """Denoise the release in the folder ``release`` into the folder ``output``, which becomes a release of its own.

    Pass the ``space`` and ``collocations`` that the release was made with, and a ``model`` of public text. Without a
    ``search``, words are the likeliest, and rare ones stay within a margin of ``MARGIN`` nats. Without an engine, this
    process does all of the work. A repeated call resumes after an interruption, and does nothing when all is done.

    Raises UserError if the release is incomplete, was made with another space or collocations, or has no law that a
    reader knows, or if the output folder holds something else.
    """
    began = time.monotonic()
    release, output = files.absolute(release), files.absolute(output)
    source = _source(release)
    read_as = _reading_of(source, release, space, collocations)
    denoiser = Denoiser(**read_as, model=model, search=search or Search(margin=MARGIN))
    if files.join(release, "") in files.join(output, "") or files.join(output, "") in files.join(release, ""):
        raise OverlapError(f"{output}: the output and the release contain each other; choose another output.")
    job = DenoiseJob(
        denoiser, CorpusIn([release], _columns_of(source)), CorpusOut(output, output.rstrip("/") + WORK),
        _digest(source, denoiser), source["key_fingerprint"], _RECORD_KEY, source_url=release, source=source,
    )  # fmt: skip
    denoised = once(
        job.records.url,
        lambda: _claim(job, began),
        lambda _: _do(job, denoiser, source, release, engine or Here(), watch, began),
        lambda _: write_page(output),
    )
    files.remove_folder(job.records.url)
    return denoised


def candidates(
    release: str, *, space: Space, model: LanguageModel | None = None, collocations: Collocations | None = None,
    count: int = 16,
) -> Iterator[tuple[str, pa.Table]]:  # fmt: skip
    """Return the ``count`` likeliest originals of each word of a release, for a model of your own to choose among.

    Pass the ``space`` and ``collocations`` that the release was made with. Without a ``model``, priors are the space's
    counts. Yields the name of a shard and the table (``corpusveil.language.candidates.SCHEMA``) of some of its rows, in
    their order, so that any number of rows fits the memory.

    Raises UserError as ``denoise`` does, before the first table if settings are wrong, and before a shard's if its file
    was changed.
    """
    release = files.absolute(release)
    source = _source(release)
    lister = Lister(**_reading_of(source, release, space, collocations), model=model, count=count)
    return _tables(release, source, lister, dataclasses.replace(_columns_of(source), keep=(), others="drop"))


def _tables(
    release: str, source: Mapping[str, Any], lister: Lister, columns: Columns
) -> Iterator[tuple[str, pa.Table]]:
    for task in plan(_shards_of(source, release), None, None):
        check_shard(release, source, task.shard)
        with reading(task, columns) as shard:
            for batch in shard.batches:
                for table in lister.tables(batch.texts, batch.numbers):
                    yield source["shards"][task.shard]["name"], table


def _columns_of(source: Mapping[str, Any]) -> Columns:
    read = source["configuration"]["columns"]
    every = read["keep"] == ["*"]
    return Columns(
        read["text"], None, () if every else tuple(read["keep"]), others="keep" if every else "drop",
        separator=read.get("separator", "comma"),
    )  # fmt: skip


def _shards_of(source: Mapping[str, Any], release: str) -> list[InputShard]:
    return find_shards([files.join(release, shard["name"]) for shard in source["shards"]], files.join(release, "data"))


def _do(
    job: ShardJob, denoiser: Denoiser, source: Mapping[str, Any], release: str, engine: Engine,
    watch: Callable[[Records, Sequence[ShardTask], str], Any] | None, began: float,
) -> Denoised:  # fmt: skip
    tasks = plan(_shards_of(source, release), None, BLOCK_ROWS, separator=job.reads.columns.separator)
    left = largest_first(tasks)
    do_all(job, left, engine, waiting("denoising") if watch is None else watch(job.records, left, "denoising shards"))
    tokens = [shard["tokens"] for shard in source["shards"]]  # a reader splits masks, and would count more
    counts, content = finish_shards(job, tasks, engine, drafted(source, denoiser, job.release), tokens)
    seconds = time.monotonic() - began
    return Denoised(counts.documents, counts.tokens_written, counts.privatized, counts.unchanged, content, seconds)


def _reading_of(
    source: Mapping[str, Any], where: str, space: Space, collocations: Collocations | None
) -> dict[str, Any]:
    """Return the fields of a ``Denoiser`` that a release decides. Raises UserError for other artifacts than its own."""
    configured = source["configuration"]
    if space.digest != configured["space"]:
        raise MismatchError(
            f"{where}: this release was made with another space ({configured['space'][:16]}…); give that space."
        )
    joined = configured.get("collocations")
    if joined != (None if collocations is None else collocations.digest):
        need = (
            "without collocations; leave them out"
            if joined is None
            else f"with the collocations {joined[:16]}…; give these"
        )
        raise MismatchError(f"{where}: this release was made {need}.")
    named = dict(configured["mechanism"])
    try:
        mechanism: Mechanism = make(named.pop("name"), space, **named)
        budget, policy = Budget(**configured["budget"]), TextPolicy(**configured["text"])
    except (TypeError, ValueError):
        raise BadRecordError(
            f"{where}: the manifest is damaged or was written by another version of corpusveil; restore it."
        ) from None
    return {
        "mechanism": mechanism, "budget": budget, "policy": policy, "collocations": collocations,
        "tokenizer_version": configured["tokenizer"], "spans": "spans" in configured,
    }  # fmt: skip


def configuration(source: Mapping[str, Any], denoiser: Denoiser) -> dict[str, Any]:
    """Return everything that decides the output: the source release, and the settings of the search."""
    search = denoiser.search
    return {
        "version": VERSION, "release": source["release"], "content_sha256": source["content_sha256"],
        "model": denoiser.model.digest, "breadth": search.breadth, "width": search.width,
        "unknown_share": search.unknown_share, "margin": search.margin,
    }  # fmt: skip


def _digest(source: Mapping[str, Any], denoiser: Denoiser) -> str:
    text = json.dumps(configuration(source, denoiser), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def drafted(source: Mapping[str, Any], denoiser: Denoiser, digest: str) -> dict[str, Any]:
    """Return the part of the manifest that is independent of shards: the source's statements, and the denoising."""
    counts = denoiser.model.info.get("counts")
    counted = f"counted on the text of the counts {counts[:16]}…" if isinstance(counts, str) else "of unknown counts"
    said = (
        f"Denoised (words) from release {source['release'][:16]}… with the language model "
        f"{denoiser.model.digest[:16]}…, {counted}. If the model is public, that is, if it was not counted on the "
        "private text, that release's guarantee, stated below, also holds for this release, and nothing more was "
        f"spent. {NO_FACTS}"
    )
    kept = {name: value for name, value in source.items() if name not in _OF_SHARDS}
    return {
        **kept,
        "corpusveil": corpusveil.__version__,
        "release": digest,
        "denoised": configuration(source, denoiser),
        "guarantee_in_words": [said, *source["guarantee_in_words"]],
        "spends": {"name": source["spends"]["name"]},
    }


def _source(release: str) -> dict[str, Any]:
    """Return the manifest of a complete release."""
    source = manifest_of(release)
    if "denoised" in source:
        raise MismatchError(f"{release}: this release is already denoised; name the release that it was made from.")
    for shard in source["shards"]:
        if not files.exists(files.join(release, shard["name"])):
            raise NotMadeError(f"{release}: {shard['name']} is missing; copy the whole release again.")
    return source


def _claim(job: ShardJob, began: float) -> Denoised | None:
    """Claim the output, or return the result if it is finished; remove records of earlier failures."""
    if files.exists(files.join(job.writes.url, "manifest.json")):
        there = read_manifest(job.writes.url)
        if there["release"] != job.release:
            raise InUseError(f"{job.writes.url}: this folder already has another release; choose another output.")
        seconds = time.monotonic() - began
        return Denoised(there["documents"], there["tokens"], 0, 0, there["content_sha256"], seconds)
    foreign = f"{job.writes.url}: this folder already has other contents; choose another output."
    mine, written = DenoiseClaim(denoise=job.release), files.listing(files.join(job.writes.url, "data"))
    if claimed(job.records, "call.json", mine, foreign if written else None) != mine:
        raise InUseError(
            f"{job.records.url}: these records are of an unfinished run with another release, model or "
            "setting; finish that run, or choose another output."
        )
    forget_failed(job.records)
    return None
