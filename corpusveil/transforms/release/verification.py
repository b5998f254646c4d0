"""Whether a release is the one that its manifest describes: every file is, none is missing, and none was added."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corpusveil.display import Card, Shown, rounded_up, several
from corpusveil.errors import (
    ChangedError,
    DataError,
    DiffersError,
    MissingError,
    SettingError,
)
from corpusveil.storage import files
from corpusveil.storage.inputs import Address
from corpusveil.storage.records import record_at
from corpusveil.storage.tasks import plain_digest
from corpusveil.transforms.release.claims import (
    FIELDS,
    NONE,
    claims_of,
    number_of,
    requirements,
    unmet,
)
from corpusveil.transforms.release.manifest import INDEX, MANIFEST, Index, read_manifest
from corpusveil.waiting import reached, waiting

_SIGNATURES = r"asc|sig|minisig|sigstore(\.json)?"
_BESIDE = re.compile(
    rf"README\.md|croissant\.json|\.gitattributes|({'|'.join(map(re.escape, (MANIFEST, INDEX)))})\.({_SIGNATURES})"
)
"""Names of files that may lie next to a manifest or an index: what the Hub shows or keeps, and signatures."""
_WORD = "the sender's word: neither a digest nor a signature proves that texts were drawn so"


@dataclass(frozen=True, slots=True, repr=False)
class Verification(Shown):
    """What a check of the release at ``url`` found: a sentence for each difference.

    ``manifest_sha256`` is the digest of the manifest, and ``known`` whether the caller had that digest. ``unchecked``
    are files that may lie next to a manifest, such as its signature.
    """

    url: str
    files: int
    documents: int
    manifest_sha256: str
    known: bool
    differences: tuple[str, ...]
    unchecked: tuple[str, ...]
    list_name: str = MANIFEST
    replaced: int = 0
    """The files that later runs of a schedule replaced."""
    claims: Mapping[str, str] = field(default_factory=dict)
    """What the manifest says of itself, by the names that can be required; in a schedule, that of the last run."""
    unmet: tuple[str, ...] = ()
    """A sentence for each requirement that the claims miss."""

    def require(self) -> None:
        """Raise WorkError if there is a difference, or a requirement is not met."""
        for sentences, kind, what, advice in (
            (self.differences, DiffersError, "difference", "get the release again"),
            (self.unmet, DiffersError, "requirement", "do not use it"),
        ):
            if sentences:
                more = f" ({several(len(sentences) - 1, f'more {what}')})" if sentences[1:] else ""
                raise kind(f"{self.url}: {sentences[0]}{more}; {advice}.")

    def card(self) -> Card:
        alone = "compare this digest with the sender's: whoever can replace the files can replace the manifest"
        listed, claims = f"{several(self.files, 'file')}, {several(self.documents, 'document')}", self.claims
        cap = "no cap" if claims["cap"] == NONE else f"at most {claims['cap']} for a {claims['unit']}"
        nats = claims["nats"] if (number := number_of(claims["nats"])) is None else rounded_up(number)
        said = f"{nats} nats for a {claims['per']}; {cap}; kept columns: {claims['kept']}"
        return Card(
            f"Release {self.url}",
            [
                ("listed", listed),
                ("compared", "names, and the bytes of each file by SHA-256"),
                ("differences", self.differences or "none"),
                ("claims", [said, _WORD]),
                *([("not met", self.unmet)] if self.unmet else []),
                *([("replaced", f"{several(self.replaced, 'file')}, by later runs")] if self.replaced else []),
                (
                    self.list_name.removesuffix(".json"),
                    [f"SHA-256 {self.manifest_sha256}", *([] if self.known else [alone])],
                ),
                *([("not checked", ", ".join(self.unchecked))] if self.unchecked else []),
            ],
        )


def verify(release: Address, digest: str | None = None, require: Iterable[str] = ()) -> Verification:
    """Compare the files of a finished release with its manifest, byte by byte, and the manifest with a ``digest``.

    ``digest`` is the SHA-256 of ``manifest.json`` as the sender states it, by another way than the release. All files
    are read once. ``require`` are fields of the manifest's claims and their values, such as ``nats<=14`` and
    ``per=document``. In the output of a schedule, which has an ``index.json`` instead, all releases are compared, and
    the digest is that of the index. Raises UserError if there is no manifest, if it is damaged, and for a requirement
    that cannot be decided.
    """
    url = files.absolute(files.as_text(release))
    require = [require] if isinstance(require, str) else list(require)
    wanted, digest = requirements(require), None if digest is None else digest.lower()
    if digest is not None and not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise SettingError("digest: give the SHA-256 of manifest.json, 64 hexadecimal digits.")
    if not files.exists(files.join(url, MANIFEST)) and files.exists(files.join(url, INDEX)):
        return _verify_runs(url, digest, require)
    manifest = manifest_of(url)
    actual = hashlib.sha256(files.read_bytes(files.join(url, MANIFEST))).hexdigest()
    differences = []
    if digest is not None and digest != actual:
        differences.append(f"{MANIFEST} has the SHA-256 {actual}, not that which you gave")
    names = [name for name in files.listing(url, folders=True) if name not in {MANIFEST, "data"}]
    beside = [name for name in names if _BESIDE.fullmatch(name) and files.is_file(files.join(url, name))]
    with waiting("verifying"):
        differences += _differences(url, manifest)
    differences += [f"the manifest does not list {name!r}" for name in names if name not in beside]
    claims = claims_of(manifest)
    return Verification(
        url, len(manifest["shards"]), manifest["documents"], actual, digest is not None, tuple(differences),
        tuple(beside), claims=claims, unmet=tuple(unmet(wanted, claims)),
    )  # fmt: skip


def _verify_runs(url: str, digest: str | None, require: Sequence[str]) -> Verification:
    """Compare the releases of a schedule with their index: no run or shard is missing, and none was added."""
    address = files.join(url, INDEX)
    index = record_at(address, Index, f"{address}: this index is damaged; get it again, or start the schedule again.")
    assert index is not None  # noqa: S101 - it exists
    actual = hashlib.sha256(files.read_bytes(address)).hexdigest()
    differences = []
    if digest is not None and digest.lower() != actual:
        differences.append(f"{INDEX} has the SHA-256 {actual}, not that which you gave")
    beside = files.listing(url, folders=True)
    unchecked = tuple(name for name in beside if _BESIDE.fullmatch(name) and files.is_file(files.join(url, name)))
    pages, listed, documents = {f"{run}.report.html" for run in index.runs}, set[str](), 0
    claims = dict.fromkeys(FIELDS, NONE)
    missed = [] if index.runs else unmet(requirements(require), claims)
    for run, manifest in index.runs.items():
        if run not in beside or not files.exists(files.join(url, run, MANIFEST)):
            differences.append(f"{run}, which {INDEX} lists, is missing")
            continue
        checked = verify(files.join(url, run), manifest, require)
        differences += [f"{run}: {difference}" for difference in checked.differences]
        claims, missed = dict(checked.claims), [*missed, *(f"{run}: {sentence}" for sentence in checked.unmet)]
        documents += checked.documents
        listed |= {f"{run}/{shard['name']}" for shard in read_manifest(files.join(url, run))["shards"]}
    places = {f"{released.run}/{released.shard}" for released in index.shards if released.run in beside}
    if places != listed or not {released.replaced_by for released in index.shards} <= {"", *places}:
        differences.append(f"{INDEX} does not list the shards of its runs")
    others = [name for name in beside if name not in {INDEX, *index.runs, *pages, *unchecked}]
    runs = [name for name in others if re.fullmatch(r"run-\d{5,}", name)]
    begun = [name for name in runs if not files.exists(files.join(url, name, MANIFEST))]
    differences += [f"{INDEX} does not list {name!r}" for name in others if name not in begun]
    unchecked += (*sorted(pages.intersection(beside)), *begun)
    replaced = sum(1 for released in index.shards if released.replaced_by)
    return Verification(
        url, len(index.shards), documents, actual, digest is not None, tuple(differences), unchecked, INDEX, replaced,
        claims, tuple(missed),
    )  # fmt: skip


def manifest_of(release: str) -> dict[str, Any]:
    """Return the manifest of a finished release. Raises UserError if there is none."""
    if posixpath.basename(release) == MANIFEST and files.is_file(release):
        raise DataError(f"{release}: this is the manifest of a release; give the folder that it lies in.")
    if not files.is_file(files.join(release, MANIFEST)):
        raise MissingError(
            f"{release}: there is no finished release here (no {MANIFEST}); if you made it, finish the run, and "
            f"otherwise ask the sender for {MANIFEST}."
        )
    return read_manifest(release)


def check_shard(release: str, manifest: Mapping[str, Any], number: int) -> None:
    """Raise UserError if a file of a release is not the one that the manifest describes."""
    shard = manifest["shards"][number]
    url = files.join(release, shard["name"])
    if plain_digest(url) != shard["file_sha256"]:
        raise ChangedError(f"{url}: this file is not the one that {MANIFEST} describes; get the release again.")


def _differences(url: str, manifest: Mapping[str, Any]) -> Iterator[str]:
    shards = manifest["shards"]
    listed = [shard["name"] for shard in shards]
    there = {f"data/{name}" for name in files.listing(files.join(url, "data"), folders=True)}
    sums = "".join(f"{shard['sha256']}\n" for shard in shards)
    totals = [sum(shard[name] for shard in shards) for name in ("documents", "tokens")]
    if len(set(listed)) < len(listed) or totals != [manifest["documents"], manifest["tokens"]] or (
        hashlib.sha256(sums.encode()).hexdigest() != manifest["content_sha256"]
    ):  # fmt: skip
        yield f"{MANIFEST} contradicts itself: its totals are not those of the files that it lists"
    for number, name in enumerate(listed):
        reached(name, number / len(listed))
        if name not in there or not files.is_file(files.join(url, name)):
            yield f"{name} is {'no file' if name in there else 'missing'}"
            continue
        try:
            check_shard(url, manifest, number)
        except ChangedError:
            yield f"{name} has other bytes"
    yield from (f"the manifest does not list {name!r}" for name in sorted(there.difference(listed)))
