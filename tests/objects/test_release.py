"""A release with everything at a store has the bytes of one on a disk; whatever was done to a release is noticed."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest

import corpusveil as cv
from corpusveil.jobs.local import Local
from corpusveil.storage.records import WARNING
from tests.calls import fails, privatize_corpus, succeeds
from tests.engines.corpora import Ground, release_files, write_large_corpus
from tests.engines.processes import Cluster, end_session, finished, kill_tree, start_command, wait_until
from tests.objects.conftest import Place, Reference, data_of, everywhere
from tests.objects.proxy import Proxy
from tests.objects.store import Store


@everywhere
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.nightly)])
@pytest.mark.nightly
def test_with_its_ledger_and_once_more(place: Place, reference: Reference, proxy: Proxy, workers: int) -> None:
    """A finished release is recognized, and left as it is; its records say that they are private."""
    more = ("--records", f"{place.root}/records", "--workers", workers)
    counted = ("--ledger", f"{place.root}/ledger", "--unit", "content", "--cap", "1e6")
    ended = succeeds(*place.arguments(*more, *counted))
    assert reference.outcome.content_sha256 in ended.out
    assert data_of(place.store.objects(place.output)) == reference.data
    ledger = cv.Ledger(f"{place.root}/ledger")
    (line,) = ledger.spent().releases
    assert line["documents"] == reference.outcome.counts.documents
    assert ledger.verify(f"{place.root}/records").differences == ()
    for name in place.store.client.find(f"{place.bucket}/records"):
        assert WARNING.split(":")[0].encode() in place.store.client.cat_file(name)[:60]
    held = place.store.objects(f"{place.root}/ledger")
    proxy.clear()
    assert reference.outcome.content_sha256 in succeeds(*place.arguments(*more, *counted)).out
    assert data_of(place.store.objects(place.output)) == reference.data
    assert place.store.objects(f"{place.root}/ledger") == held
    assert proxy.seen(place.store.write_method, ".") == proxy.seen(place.store.write_method, r"/lease")


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.usefixtures("s3")
def test_a_schedule_that_is_submitted_to_spark_has_the_bytes_of_a_run(
    place: Place, reference: Reference, tmp_path: Path
) -> None:
    """As docs/clusters.md says: options of Spark belong to spark-submit, and the file names no master."""
    settings = tmp_path / "release.toml"
    settings.write_text(
        f'corpus = {{input = ["{place.corpus}"], name = "c4"}}\nspace = {{path = "{place.root}/space"}}\n'
        f'mechanism = {{name = "ring-geometric"}}\nbudget = {{epsilon = 1.0}}\nkey = {{path = "{place.ground.key}"}}\n'
        f'engine = {{name = "spark"}}\noutput = {{path = "{place.output}", records = "{place.root}/records"}}\n'
    )
    machine = Cluster(tmp_path)
    machine.url = "local[2]"
    refused = tmp_path / "refused.toml"
    refused.write_text(settings.read_text().replace('"spark"}', '"spark", master = "local[1]"}'))
    assert finished(machine.submit(["schedule", str(refused)], tmp_path / "refused.log")) == 2
    for turn in ("first", "second"):
        log = tmp_path / f"{turn}.log"
        assert finished(machine.submit(["schedule", str(settings)], log)) == 0, log.read_text()
    assert "there is nothing new" in log.read_text()
    assert data_of(place.store.objects(f"{place.output}/run-00001")) == reference.data


@pytest.mark.nightly
@everywhere
def test_killed_in_the_middle_and_run_again(
    store: Store, ground: Ground, proxy: Proxy, tmp_path: Path, reference: Reference
) -> None:
    """A machine that loses its power leaves whole shards only, and the next run ends with the right bytes."""
    large = write_large_corpus(tmp_path / "large", shards=5, copies=1)
    expected = privatize_corpus(reference.release, [str(large)], str(tmp_path / "disk"), Local(), corpus="c4")
    place = Place(store, store.bucket(), ground)
    store.upload(large, place.corpus)
    store.upload(ground.space_folder, f"{place.root}/space")
    process = start_command(place.arguments("--workers", 2), tmp_path, tmp_path / "killed.log")
    try:
        wait_until(lambda: proxy.seen(store.write_method, "records/shards/part") > 0 or process.poll() is not None)
        kill_tree(process)
    finally:
        end_session(process)
    assert process.returncode == -9, (tmp_path / "killed.log").read_text()
    left, whole = store.objects(place.output), release_files(tmp_path / "disk")
    assert "manifest.json" not in left
    assert left.items() <= whole.items()
    outcome = privatize_corpus(reference.release, [place.corpus], place.output, Local(), corpus="c4")
    assert outcome.content_sha256 == expected.content_sha256
    assert store.objects(place.output) == whole


NAMES = [f"data/part-{number:05d}-of-00005.json.gz" for number in range(5)]


class Copy:
    """A copy of a finished release, and what can be done to its files."""

    def __init__(self, url: str, files: dict[str, bytes]) -> None:
        self.url = url
        self.fs, self.root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        for name, data in files.items():
            self.write(name, data)

    def write(self, name: str, data: bytes) -> None:
        self.fs.makedirs(f"{self.root}/{name}".rsplit("/", 1)[0], exist_ok=True)
        self.fs.pipe_file(f"{self.root}/{name}", data)

    def read(self, name: str) -> bytes:
        return bytes(self.fs.cat_file(f"{self.root}/{name}"))

    def remove(self, name: str) -> None:
        self.fs.rm_file(f"{self.root}/{name}")

    def rename(self, name: str, other: str) -> None:
        self.write(other, self.read(name))
        self.fs.rm_file(f"{self.root}/{name}")

    def swap(self, name: str, other: str) -> None:
        first, second = self.read(name), self.read(other)
        self.write(name, second)
        self.write(other, first)

    def edit(self, name: str, old: bytes, new: bytes) -> None:
        """Change one line, and compress it again."""
        lines = gzip.decompress(self.read(name))
        assert old in lines
        self.write(name, gzip.compress(lines.replace(old, new, 1)))

    def state(self, **values: Any) -> None:
        manifest = json.loads(self.read("manifest.json"))
        self.write("manifest.json", json.dumps(manifest | values).encode())


HARMS: dict[str, tuple[Callable[[Copy], object], list[str]]] = {
    "a changed line": (lambda copy: copy.edit(NAMES[1], b'"text":"', b'"text":"x'), [f"{NAMES[1]} has other bytes"]),
    "a file cut short": (
        lambda copy: copy.write(NAMES[0], copy.read(NAMES[0])[:-20]), [f"{NAMES[0]} has other bytes"],
    ),
    "an added shard": (lambda copy: copy.write("data/more.json.gz", b"x"), ["list 'data/more.json.gz'"]),
    "a hidden file": (lambda copy: copy.write("data/.part-00000", b"x"), ["list 'data/.part-00000'"]),
    "a folder in the data": (lambda copy: copy.write("data/more/part.json", b"{}"), ["list 'data/more'"]),
    "a file next to the data": (lambda copy: copy.write("other.json", b"{}"), ["list 'other.json'"]),
    "a signature of no tool": (lambda copy: copy.write("manifest.json.exe", b"x"), ["list 'manifest.json.exe'"]),
    "a folder as a signature": (lambda copy: copy.write("manifest.json.asc/x", b"x"), ["list 'manifest.json.asc'"]),
    "a folder as a page": (lambda copy: copy.write("README.md/x", b"x"), ["list 'README.md'"]),
    "a shard that is a folder": (
        lambda copy: (copy.remove(NAMES[1]), copy.write(f"{NAMES[1]}/x", b"x")), [f"{NAMES[1]} is no file"]
    ),
    "a shard that was compressed again": (
        lambda copy: copy.write(NAMES[1], gzip.compress(gzip.decompress(copy.read(NAMES[1])), 1)),
        [f"{NAMES[1]} has other bytes"],
    ),
    "bytes behind a shard": (
        lambda copy: copy.write(NAMES[1], copy.read(NAMES[1]) + gzip.compress(b"")), [f"{NAMES[1]} has other bytes"]
    ),
    "a renamed file": (
        lambda copy: copy.rename(NAMES[1], NAMES[1].replace("00005", "00009")),
        [f"{NAMES[1]} is missing", "part-00001-of-00009.json.gz"],
    ),
    "two files swapped": (lambda copy: copy.swap(NAMES[1], NAMES[3]), [NAMES[1], NAMES[3]]),
    "a statement of nothing": (lambda copy: copy.write("statement.intoto.json", b"{}"), ["statement.intoto.json"]),
    "another number of documents": (lambda copy: copy.state(documents=7), ["manifest.json contradicts itself"]),
}  # fmt: skip


@pytest.mark.usefixtures("s3")
@pytest.mark.parametrize("where", ["disk", "s3"])
def test_every_harm_is_named_and_a_sound_release_passes(
    where: str, url: str, reference: Reference, ground: Ground, tmp_path: Path
) -> None:
    root = str(tmp_path) if where == "disk" else url
    files = {name: (ground.folder / "reference" / name).read_bytes() for name in reference.files}
    sound = Copy(f"{root}/sound", files)
    digest = hashlib.sha256(sound.read("manifest.json")).hexdigest()
    assert digest in succeeds("verify", sound.url).out
    sound.write("manifest.json.minisig", b"signed")
    out = succeeds("verify", sound.url, "--digest", digest.upper()).out
    assert "manifest.json.minisig" in out
    assert "compare this digest" not in out
    harms = list(HARMS.items())
    for number, (harm, (do, sentences)) in enumerate(harms if where == "disk" else harms[:: len(harms) // 3]):
        copy = Copy(f"{root}/harmed-{number}", files)
        do(copy)
        differences = cv.verify(copy.url).differences
        assert len(differences) == len(sentences), (harm, differences)
        for sentence in sentences:
            assert any(sentence in difference for difference in differences), (harm, differences)
        fails(["verify", copy.url], "differs", *sentences[:1])
