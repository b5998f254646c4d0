"""A release, denoised: read its manifest, map over its shards, write a manifest that names it.

Only the release's folder and public artifacts are read. Records in ``OUTPUT.work`` show which tasks remain; they
contain nothing private, and are removed after the manifest is written.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import corpusveil
from corpusveil.budget import Budget
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.errors import BadRecordError, InUseError, MismatchError, NotMadeError, OverlapError, UnsetError
from corpusveil.language.choosing import OFFERED, SCHEMA, Choose, Chooser, Lister
from corpusveil.language.denoise import MARGIN, NO_FACTS, VERSION, Denoiser, Search
from corpusveil.language.model import LanguageModel
from corpusveil.mechanisms import Mechanism, make
from corpusveil.spaces import Space
from corpusveil.storage import files
from corpusveil.storage.durable import claimed, do_all, forget_failed, once
from corpusveil.storage.engine import Engine, Here
from corpusveil.storage.inputs import find_shards
from corpusveil.storage.nested import refuse_nested
from corpusveil.storage.reading import reading
from corpusveil.storage.records import Record, Records, Shard
from corpusveil.storage.rows import BLOCK_ROWS, Columns
from corpusveil.storage.tasks import CountingFile, ShardTask, largest_first, plain_digest, plan
from corpusveil.text.counts import Counts
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.release.corpus import finish_shards
from corpusveil.transforms.release.illustration import illustrate
from corpusveil.transforms.release.job import ShardJob
from corpusveil.transforms.release.manifest import OF_FILES, read_manifest
from corpusveil.transforms.release.pages import public_page, render_public
from corpusveil.transforms.release.risk import EpsilonAtRisk, risk_of
from corpusveil.transforms.release.verification import check_shard, manifest_of
from corpusveil.waiting import waiting

WORK = ".work"
AT_ONCE = 256
"""The documents that are denoised between two heartbeats."""
_RECORD_KEY = b"corpusveil denoise: what is digested is public"
_OF_SHARDS = ("documents", "tokens", "content_sha256", "checksums", "shards")
SPENDS = (
    "nothing, if the language model is public: then it was computed from a release and public data alone. It is in no "
    "ledger"
)


@dataclass(frozen=True, slots=True)
class DenoiseJob(ShardJob):
    """Denoises shards of the release in a folder, each of which must be the file that the manifest describes."""

    source_url: str = field(kw_only=True)
    source: Mapping[str, Any] = field(kw_only=True)

    def do(self, task: ShardTask) -> Shard:
        self.check(task)
        return super(DenoiseJob, self).do(task)

    def made(
        self, texts: pa.Array, ids: Sequence[Any], units: Sequence[str] | None, known: Any,  # noqa: ARG002
        beat: Callable[[float], None],
    ) -> tuple[pa.Array, Counts]:  # fmt: skip
        """Denoise some documents at a time, as a batch takes minutes."""
        parts, counts = [texts.slice(0, 0)], Counts()
        for first in range(0, len(texts), AT_ONCE):
            part, counted = self.kernel.privatize(texts.slice(first, AT_ONCE), ids[first : first + AT_ONCE], "", units)
            parts.append(part)
            counts += counted
            beat(min(1.0, (first + AT_ONCE) / len(texts)))
        return pa.concat_arrays([part.cast(pa.large_string()) for part in parts]), counts

    def check(self, task: ShardTask) -> None:
        """Raise UserError for a file that was changed. The first of its pieces checks it for all."""
        if not (task.piece or task.pieces):
            check_shard(self.source_url, self.source, task.shard)


@dataclass(frozen=True, slots=True)
class ListJob(DenoiseJob):
    """Lists the candidates of each shard, as a table."""

    kernel: Any

    def do(self, task: ShardTask) -> Shard:
        self.check(task)
        began, counts = time.monotonic(), Counts()
        with (
            reading(task, self.columns, self.record_key) as (batches, source),
            files.open_write(self.target(task)) as sink,
            pq.ParquetWriter(CountingFile(sink), SCHEMA, compression="zstd", write_statistics=["row"]) as writer,
        ):
            for batch in batches:
                for table in self.kernel.tables(batch.texts, batch.numbers, counts):
                    writer.write_table(table, row_group_size=max(1, len(table)))
                self._beat(task, counts, source.share(task.size))
            input_digest = source.digest()
        content = plain_digest(self.target(task))
        return self._record(task, counts, content, content, input_digest, time.monotonic() - began)


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
    release: str, output: str, *, space: Space, model: LanguageModel | None = None,
    collocations: Collocations | None = None, search: Search | None = None, candidates: int | None = None,
    chooser: str | Choose | None = None, engine: Engine | None = None,
    watch: Callable[[Records, Sequence[ShardTask], str], Any] | None = None,
) -> Denoised:  # fmt: skip
    """Denoise the release in the folder ``release`` into the folder ``output``, which becomes a release of its own.

    Pass the ``space`` and ``collocations`` that the release was made with, and a ``model`` of public text. Without a
    ``search``, words are the likeliest, and rare ones stay within a margin of ``MARGIN`` nats. Without an engine, this
    process does all of the work. A repeated call resumes after an interruption, and does nothing when all is done.

    Instead of a search, ``chooser`` may choose among the ``candidates`` likeliest originals of each word (default 16):
    a function of a list of ``corpusveil.language.choosing.ReleasedText``, which returns a list of indices for each, or
    its name MODULE:FUNCTION, as engines with further processes need it. With ``candidates`` alone, no text is written,
    but the table of candidates (``SCHEMA`` there) as Parquet. Neither needs a ``model``; without one, priors are the
    space's counts.

    Raises UserError if the release is incomplete, was made with another space or collocations, or has no law that a
    reader knows, if the output folder holds something else, or if the chooser fails.
    """
    began = time.monotonic()
    release, output = files.absolute(release), files.absolute(output)
    source = _source(release)
    function = None if chooser is None else Chooser.of(chooser, elsewhere=engine is not None)
    denoiser = denoiser_of(source, release, space, model, collocations, search, candidates, function)
    if files.join(release, "") in files.join(output, "") or files.join(output, "") in files.join(release, ""):
        raise OverlapError(f"{output}: the output and the release contain each other; choose another output.")
    read = source["configuration"]["columns"]
    refuse_nested(read["text"], "denoising reads")
    every = read["keep"] == ["*"]
    columns = Columns(
        read["text"], None, () if every else tuple(read["keep"]), others="keep" if every else "drop",
        separator=read.get("separator", "comma"),
    )  # fmt: skip
    if _is_listed(denoiser):
        columns = Columns(columns.text, separator=columns.separator)
    job = (ListJob if _is_listed(denoiser) else DenoiseJob)(
        denoiser,  # type: ignore[arg-type]
        columns, output, Records(output.rstrip("/") + WORK), digest_of(source, denoiser), source["key_fingerprint"],
        _RECORD_KEY, corpus="", source_url=release, source=source,
    )  # fmt: skip
    denoised = once(
        job.records.url,
        lambda: _claim(job, began),
        lambda _: _do(job, denoiser, source, release, engine or Here(), watch, began),
        lambda _: _write_page(output, denoiser, risk_of(source)),
    )
    files.remove_folder(job.records.url)
    return denoised


def _is_listed(denoiser: Any) -> bool:
    """Say whether candidates are listed, and no text is written."""
    return isinstance(denoiser, Lister) and denoiser.chooser is None


def _do(
    job: ShardJob, denoiser: Denoiser, source: Mapping[str, Any], release: str, engine: Engine,
    watch: Callable[[Records, Sequence[ShardTask], str], Any] | None, began: float,
) -> Denoised:  # fmt: skip
    names = [files.join(release, shard["name"]) for shard in source["shards"]]
    shards = find_shards(names, files.join(release, "data"))
    tasks = (
        plan(shards, ".parquet", None)
        if _is_listed(denoiser)
        else plan(shards, None, BLOCK_ROWS, separator=job.columns.separator)
    )
    left = largest_first(tasks)
    do_all(job, left, engine, waiting("denoising") if watch is None else watch(job.records, left, "denoising shards"))
    tokens = [shard["tokens"] for shard in source["shards"]]  # a reader splits masks, and would count more
    counts, content = finish_shards(job, tasks, engine, drafted(source, denoiser, job.release), tokens)
    seconds = time.monotonic() - began
    return Denoised(counts.documents, counts.tokens_written, counts.privatized, counts.unchanged, content, seconds)


def denoiser_of(
    source: Mapping[str, Any], where: str, space: Space, model: LanguageModel | None, collocations: Collocations | None,
    search: Search | None, count: int | None = None, chooser: Chooser | None = None,
) -> Denoiser:  # fmt: skip
    """Return what denoises a release by its manifest. Raises UserError if the artifacts are not those that it names."""
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
    marked = "spans" in configured
    common = (search or Search(margin=MARGIN), collocations, configured["tokenizer"])
    if count is not None or chooser is not None:
        if search is not None:
            raise MismatchError("search: candidates or a chooser replace the search; leave either out.")
        return Lister(
            mechanism, budget, policy, model, *common, OFFERED if count is None else count, chooser, spans=marked
        )
    if model is None:
        raise UnsetError("model: the search needs a language model of public text; give one.")
    return Denoiser(mechanism, budget, policy, model, *common, spans=marked)


def configuration(source: Mapping[str, Any], denoiser: Denoiser) -> dict[str, Any]:
    """Return everything that decides the output: the source release, and the settings of the search or choice."""
    common = {"version": VERSION, "release": source["release"], "content_sha256": source["content_sha256"]}
    if denoiser.model is not None:
        common["model"] = denoiser.model.digest
    if isinstance(denoiser, Lister):
        chooser = denoiser.chooser
        chosen = {"list": True} if chooser is None else {"chooser": chooser.name, "chooser_sha256": chooser.digest}
        return {**common, "candidates": denoiser.count, **chosen}
    search = denoiser.search
    return {
        **common,
        "aim": "words",  # as in the digests of earlier versions
        "candidates": search.breadth,  # by this name it is part of the digests of earlier versions
        "width": search.width,
        **({} if search.unknown_share is None else {"unknown_share": search.unknown_share}),
        **({"margin": search.margin} if search.margin else {}),
    }


def digest_of(source: Mapping[str, Any], denoiser: Denoiser) -> str:
    """Return the digest of a denoised release, hexadecimal."""
    text = json.dumps(configuration(source, denoiser), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def drafted(source: Mapping[str, Any], denoiser: Denoiser, digest: str) -> dict[str, Any]:
    """Return the part of the manifest that is independent of shards: the source's statements, and the denoising."""
    model, made = denoiser.model, f"from release {source['release'][:16]}… with "
    counts = None if model is None else model.info.get("counts")
    counted = f"counted on the text of the counts {counts[:16]}…" if isinstance(counts, str) else "of unknown counts"
    by = "the counts of its space" if model is None else f"the language model {model.digest[:16]}…, {counted}"
    public = "the model is public, that is, if it was not counted on the private text"
    public = "these counts were not made of the private text" if model is None else public
    if not isinstance(denoiser, Lister):
        how = "Denoised (words)"
    elif denoiser.chooser is None:
        how = f"Up to {denoiser.count} likely originals of each word, listed"
    else:
        how = f"Chosen by {denoiser.chooser.name} among up to {denoiser.count} originals of each word,"
        public = f"the chooser knows nothing of the private text, and {public}"
    said = (
        f"{how} {made}{by}. If {public}, that release's guarantee, stated below, also holds for this release, and "
        f"nothing more was spent. {NO_FACTS}"
    )
    kept = {name: value for name, value in source.items() if name not in _OF_SHARDS}
    return {
        **kept,
        "corpusveil": corpusveil.__version__,
        "release": digest,
        "denoised": configuration(source, denoiser),
        "guarantee_in_words": [said, *source["guarantee_in_words"]],
        "spends": {"name": source["spends"]["name"], "metric": SPENDS},
        **({"checksums": OF_FILES} if "list" in configuration(source, denoiser) else {}),
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
    if files.exists(files.join(job.output, "manifest.json")):
        there = read_manifest(job.output)
        if there["release"] != job.release:
            raise InUseError(f"{job.output}: this folder already has another release; choose another output.")
        seconds = time.monotonic() - began
        return Denoised(there["documents"], there["tokens"], 0, 0, there["content_sha256"], seconds)
    foreign = f"{job.output}: this folder already has other contents; choose another output."
    mine, written = DenoiseClaim(denoise=job.release), files.listing(files.join(job.output, "data"))
    if claimed(job.records, "call.json", mine, foreign if written else None) != mine:
        raise InUseError(
            f"{job.records.url}: these records are of an unfinished run with another release, model, chooser or "
            "setting; finish that run, or choose another output."
        )
    forget_failed(job.records)
    return None


def _write_page(output: str, denoiser: Denoiser, risk: EpsilonAtRisk | None) -> None:
    if not files.exists(public_page(output)):
        parts = denoiser.mechanism, denoiser.budget, denoiser.policy, denoiser.collocations, risk
        files.write_bytes(public_page(output), render_public(read_manifest(output), illustrate(*parts)).encode())
