"""The manifest: the public description of a release, equal for every engine, partitioning and worker count.

What it says of spending; and the index, which a schedule writes next to the manifests of its releases.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

import corpusveil
from corpusveil.choices import OverCap
from corpusveil.errors import ArtifactError, VersionError, WorkError
from corpusveil.ledger.caps import Spending
from corpusveil.storage import files, formats
from corpusveil.storage.corpus import CorpusIn
from corpusveil.storage.records import Line, Record, Records, Shard, Totals
from corpusveil.storage.tasks import ShardTask
from corpusveil.text.counts import Counts
from corpusveil.transforms.release.keyed_release import NOT_PRIVATE, AnyRelease
from corpusveil.transforms.release.risk import RiskField

MANIFEST, INDEX = "manifest.json", "index.json"
VERSION = 1
"""Increased when readers of this version would misread a manifest."""


class AnyVersion(Record):
    """The fields that identify a manifest of any version."""

    kind: Literal["release"]
    version: int = VERSION


class _Shard(Record):
    # a name leads nowhere but into the release's own folder
    name: Annotated[str, Field(pattern=r"^data/part-[0-9]{5,}-of-[0-9]{5,}(\.[a-z0-9]+){1,2}$")]
    documents: int
    tokens: int
    sha256: Line
    """Of what ``checksums`` says."""
    file_sha256: Line


class _Named(Record):
    name: Line


class _Budget(Record):
    epsilon: float
    per: Line
    allocation: Line | None = None


class _Columns(Record):
    keep: list[str]
    text: str = "text"


class _Configuration(Record):
    space: Line
    mechanism: _Named
    budget: _Budget
    columns: _Columns
    text: dict[str, Any]
    tokenizer: Line
    collocations: Line | None = None
    spans: dict[str, Any] | None = None


class _Guarantee(Record):
    disclosed: list[str]
    epsilon: float | None
    plain_ldp: float | None
    per: Line = "token"


class _Cap(Record):
    units: list[Line]
    nats: float
    over: OverCap


class Manifest(AnyVersion):
    """The part of a manifest that is read again."""

    release: Line
    key_fingerprint: Line
    documents: int
    tokens: int
    content_sha256: Line
    checksums: Line
    shards: list[_Shard]
    configuration: _Configuration
    guarantee: _Guarantee
    guarantee_in_words: list[str]
    spends: _Named
    risk: RiskField | None = None
    cap: _Cap | None = None
    warning: Line | None = None


def read_manifest(output: str) -> dict[str, Any]:
    """Return the manifest of a finished release. Raises UserError when it is damaged, or of a later version."""
    address = files.join(output, MANIFEST)
    data = files.read_bytes(address)
    if (header := AnyVersion.parse(data)) is not None and header.version > VERSION:
        raise VersionError(
            f"{address}: this manifest has version {header.version}, and this corpusveil reads version {VERSION}; "
            "install a later corpusveil."
        )
    if Manifest.parse(data) is not None:
        with contextlib.suppress(ValueError):  # also of a number of thousands of digits
            manifest: dict[str, Any] = json.loads(data, object_pairs_hook=_of_different_names)
            return manifest
    raise ArtifactError(f"{address}: this manifest is damaged; restore it from a copy of the release.")


def _of_different_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raises ValueError if it has a name twice: another parser would read the other value."""
    if len(named := dict(pairs)) < len(pairs):
        raise ValueError
    return named


def draft(release: AnyRelease, reads: CorpusIn, spending: Spending | None = None) -> dict[str, Any]:
    """Return the part of the manifest that is known before the work. Nothing in it is secret."""
    stated, columns = release.statement(), reads.columns
    return {
        **({"warning": NOT_PRIVATE} if release.key.test else {}),
        "kind": "release",
        "version": VERSION,
        "corpusveil": corpusveil.__version__,
        "release": release.digest,
        "key_fingerprint": release.key.fingerprint(),
        "configuration": {
            **release.configuration(),
            "columns": {name: value for name, value in columns.as_dict().items() if name not in ("id", "unit")},
        },
        **stated,
        "spends": {"name": release.name},
        **({} if spending is None else spending.stated()),
        **({"rows": "Rows that could not be read are missing."} if reads.on_bad_rows == "drop" else {}),
        "kept_columns": "Kept columns are in the clear, outside every guarantee." if columns.keep else "none",
    }


def write_manifest(
    drafted: Mapping[str, Any], output: str, records: Records, tasks: Sequence[ShardTask]
) -> tuple[Counts, str]:
    """Write ``totals.json`` to the records, and then ``manifest.json`` to the release.

    Returns the totals and the SHA-256 over all shards: of their SHA-256s, as hexadecimal text, in order, one a line.
    Raises WorkError when a shard has no record.
    """
    totals = Counts()
    shards: list[dict[str, Any]] = []
    overall = hashlib.sha256()
    seconds = 0.0
    mine = (drafted["release"], drafted["key_fingerprint"])
    for task in tasks:
        record = records.read(f"shards/{task.record_name}", Shard)
        if record is None or (record.release, record.task[0]) != mine:
            raise WorkError(
                f"{records.url}: shard {task.shard} was not done by this release; run the same command again."
            )
        counts = Counts.from_record(record.counts, records.url)
        totals += counts
        seconds += record.seconds
        overall.update(record.output.sha256.encode() + b"\n")
        digests = {"sha256": record.output.sha256, "file_sha256": record.output.file_sha256}
        shards.append({"name": f"data/{task.shard_name}", **counts.public(), **digests})
    records.write("totals.json", Totals(**totals.private().as_dict(), seconds=round(seconds, 3)))
    content = overall.hexdigest()
    manifest = {
        **drafted,
        **totals.public(),
        "content_sha256": content,
        "checksums": formats.find(tasks[0].suffix).checksum,
        "shards": shards,
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    files.write_bytes(files.join(output, MANIFEST), text.encode())
    return totals, content


def spends_of(url: str) -> str | None:
    """Return the name of a finished release in a ledger, in a sentence; None if there is none.

    Raises UserError for a damaged manifest.
    """
    if not files.exists(files.join(url, MANIFEST)):
        return None
    return f"{url}: a ledger shows what this release spends as {read_manifest(url)['spends']['name']}"


_Run = Annotated[str, Field(pattern=r"^run-[0-9]{5,9}$")]
_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Released(Record):
    """A shard of a run; ``replaced_by`` is ``RUN/SHARD`` of the same input after a change, empty without one."""

    run: Line
    shard: Line
    replaced_by: Line = ""


class Index(Record):
    """``index.json``: the SHA-256 of the manifest of each run, and all shards of all runs. It is public."""

    runs: dict[_Run, _Digest] = Field(default_factory=dict)
    shards: list[Released] = Field(default_factory=list)

    def after(self, run: str, manifest: str, shards: Mapping[str, str]) -> Index:
        """Return the index with a further run: its shards, as ``RUN/SHARD``, and those that they replace, or ``""``."""
        by = {earlier: place for place, earlier in shards.items()}
        before = [
            Released(run=at.run, shard=at.shard, replaced_by=by.get(f"{at.run}/{at.shard}", at.replaced_by))
            for at in self.shards
        ]
        added = [Released(run=run, shard=place.partition("/")[2], replaced_by="") for place in sorted(shards)]
        return Index(runs={**self.runs, run: manifest}, shards=before + added)
