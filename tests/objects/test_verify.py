"""A recipient notices whatever was done to a release, in a folder and at a store."""

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
from tests.calls import fails, succeeds
from tests.engines.corpora import Ground
from tests.objects.conftest import Reference

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


HARMS: dict[str, tuple[Callable[[Copy], None], list[str]]] = {
    "a changed line": (lambda copy: copy.edit(NAMES[1], b'"text":"', b'"text":"x'), [f"{NAMES[1]} has other contents"]),
    "a file cut short": (
        lambda copy: copy.write(NAMES[0], copy.read(NAMES[0])[:-20]), [f"{NAMES[0]} is damaged or cut short"],
    ),
    "an added shard": (lambda copy: copy.write("data/more.json.gz", b"x"), ["list 'data/more.json.gz'"]),
    "a hidden file": (lambda copy: copy.write("data/.part-00000", b"x"), ["list 'data/.part-00000'"]),
    "a folder in the data": (lambda copy: copy.write("data/more/part.json", b"{}"), ["list 'data/more'"]),
    "a file next to the data": (lambda copy: copy.write("other.json", b"{}"), ["list 'other.json'"]),
    "a renamed file": (
        lambda copy: copy.rename(NAMES[1], NAMES[1].replace("00005", "00009")),
        [f"{NAMES[1]} is missing", "part-00001-of-00009.json.gz"],
    ),
    "two files swapped": (lambda copy: copy.swap(NAMES[1], NAMES[3]), [NAMES[1], NAMES[3]]),
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
    assert "compare" not in out
    for number, (harm, (do, sentences)) in enumerate(HARMS.items()):
        copy = Copy(f"{root}/harmed-{number}", files)
        do(copy)
        differences = cv.verify(copy.url).differences
        assert len(differences) == len(sentences), (harm, differences)
        for sentence in sentences:
            assert any(sentence in difference for difference in differences), (harm, differences)
        fails(["verify", copy.url], "release-differs", *sentences[:1])
