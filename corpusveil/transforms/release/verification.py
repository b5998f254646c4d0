"""Whether a release is the one that its manifest describes: every file is, none is missing, and none was added."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from corpusveil.display import Card, Shown, rounded_up, several
from corpusveil.errors import ChangedError, DataError, DiffersError, MissingError, SettingError
from corpusveil.storage import files
from corpusveil.storage.inputs import Address
from corpusveil.storage.records import record_at
from corpusveil.storage.tasks import plain_digest
from corpusveil.transforms.release.claims import FIELDS, NONE, claims_of, requirements, unmet
from corpusveil.transforms.release.manifest import INDEX, MANIFEST, Index, read_manifest
from corpusveil.waiting import reached, waiting

_SIGNATURES = r"asc|sig|minisig|sigstore(\.json)?"
_BESIDE = re.compile(
    rf"README\.md|croissant\.json|\.gitattributes|({'|'.join(map(re.escape, (MANIFEST, INDEX)))})\.({_SIGNATURES})"
)
"""Names of files that may be next to a manifest or an index: what the Hub shows or keeps, and signatures."""
_WORD = "the sender claims so: neither a digest nor a signature proves how texts were drawn"


@dataclass(frozen=True, slots=True, repr=False)
class Verification(Shown):
    """The result of ``cv.verify``: a sentence for each difference, and for each requirement that is not met.

    ``known`` says whether the caller had the digest of the manifest. ``unchecked`` are files that may be next to a
    manifest, such as its signature. ``require()`` raises WorkError unless all is well.

    >>> cv.verify("private").differences
    ()
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
        for sentences, what, advice in (
            (self.differences, "difference", "get the release again"),
            (self.unmet, "requirement", "do not use it"),
        ):
            if sentences:
                more = f" ({several(len(sentences) - 1, f'more {what}')})" if sentences[1:] else ""
                raise DiffersError(f"{self.url}: {sentences[0]}{more}; {advice}.")

    def card(self) -> Card:
        alone = "someone who can replace the files can also replace the manifest: compare this digest with the sender's"
        listed, claims = f"{several(self.files, 'file')}, {several(self.documents, 'document')}", self.claims
        cap = "no cap" if claims["cap"] == NONE else f"at most {claims['cap']} for a {claims['unit']}"
        nats = claims["nats"] if claims["nats"] == NONE else rounded_up(float(claims["nats"]))
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


def verify(release: Address, digest: str | None = None, require: str | Iterable[str] = ()) -> Verification:
    """Compare all files of a finished release with its manifest, byte by byte, and the manifest with a ``digest``.

    ``digest`` is the SHA-256 of ``manifest.json`` (of a schedule: ``index.json``) that the sender published elsewhere.
    ``require`` are claims that the manifest must make, such as ``nats<=14`` and ``per=document``. In the output of a
    schedule, all releases are compared. Raises UserError if there is no manifest, if it is damaged, and for a
    requirement that cannot be decided.

    >>> cv.verify("private", require=["mechanism=ring-geometric"]).unmet
    ()
    """
    url, wanted = files.absolute(files.as_text(release)), requirements(require)
    if digest is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", digest):
        raise SettingError("digest: give the SHA-256 of manifest.json, 64 hexadecimal digits.")
    is_schedule = not files.exists(files.join(url, MANIFEST)) and files.exists(files.join(url, INDEX))
    with waiting("verifying"):
        checked = _of_runs(url, wanted) if is_schedule else _of_release(url, wanted)
    actual = hashlib.sha256(files.read_bytes(files.join(url, checked.list_name))).hexdigest()
    wrong = []
    if digest is not None and digest.lower() != actual:
        wrong.append(f"{checked.list_name} has the SHA-256 {actual}, not that which you gave")
    differences = (*wrong, *checked.differences)
    return replace(checked, manifest_sha256=actual, known=digest is not None, differences=differences)


def _of_release(url: str, wanted: Sequence[tuple[str, str]]) -> Verification:
    """Compare the files of a release with its manifest."""
    manifest = manifest_of(url)
    names = [name for name in files.listing(url, folders=True) if name not in {MANIFEST, "data"}]
    beside = _beside(url, names)
    differences = [
        *_differences(url, manifest),
        *(f"the manifest does not list {name!r}" for name in names if name not in beside),
    ]
    claims = claims_of(manifest)
    return Verification(
        url, len(manifest["shards"]), manifest["documents"], "", False, tuple(differences), beside, claims=claims,
        unmet=tuple(unmet(wanted, claims)),
    )  # fmt: skip


def _of_runs(url: str, wanted: Sequence[tuple[str, str]]) -> Verification:
    """Compare the releases of a schedule with their index: no run or shard is missing, and none was added."""
    address = files.join(url, INDEX)
    index = record_at(address, Index, f"{address}: this index is damaged; get it again, or start the schedule again.")
    assert index is not None  # noqa: S101 - it exists
    names = files.listing(url, folders=True)
    there = [run for run in names if files.exists(files.join(url, run, MANIFEST))]
    listed, differences, missed, documents = set[str](), list[str](), list[str](), 0
    claims = dict.fromkeys(FIELDS, NONE)
    for run, digest in index.runs.items():
        if run not in there:
            differences.append(f"{run}, which {INDEX} lists, is missing")
            continue
        checked = verify(files.join(url, run), digest)
        differences += [f"{run}: {difference}" for difference in checked.differences]
        claims, documents = dict(checked.claims), documents + checked.documents
        missed += [f"{run}: {sentence}" for sentence in unmet(wanted, claims)]
        listed |= {f"{run}/{shard['name']}" for shard in read_manifest(files.join(url, run))["shards"]}
    places = {f"{released.run}/{released.shard}" for released in index.shards if released.run in names}
    if places != listed or not {released.replaced_by for released in index.shards} <= {"", *places}:
        differences.append(f"{INDEX} does not list the shards of its runs")
    begun = [name for name in names if re.fullmatch(r"run-\d{5,}", name) and name not in there]
    pages = [name for name in names if name not in index.runs and name.removesuffix(".report.html") in index.runs]
    unchecked = (*_beside(url, names), *pages, *begun)
    known = {INDEX, *index.runs, *unchecked}
    differences += [f"{INDEX} does not list {name!r}" for name in names if name not in known]
    return Verification(
        url, len(index.shards), documents, "", False, tuple(differences), unchecked, INDEX,
        sum(1 for released in index.shards if released.replaced_by), claims,
        tuple(missed if index.runs else unmet(wanted, claims)),
    )  # fmt: skip


def _beside(url: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of files that may be next to a manifest or an index."""
    return tuple(name for name in names if _BESIDE.fullmatch(name) and files.is_file(files.join(url, name)))


def manifest_of(release: str) -> dict[str, Any]:
    """Return the manifest of a finished release. Raises UserError if there is none."""
    if posixpath.basename(release) == MANIFEST and files.is_file(release):
        raise DataError(f"{release}: this is the manifest of a release; give its folder.")
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
