"""An S3 store on loopback: buckets, their objects, and what is left of unfinished uploads."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from typing import Any

import fsspec
import pytest
import s3fs
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from tests.objects.proxy import Dialect

REGION = "eu-central-1"
SETTINGS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""What a user sets: documented settings of botocore."""
_numbers = itertools.count()


class Store:
    """The store behind ``endpoint``, looked at with a client of its own that passes no proxy; this one is S3."""

    scheme = "s3"
    write_method = "PUT"
    dialect = Dialect()

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.client: Any = self.looking()

    def looking(self) -> Any:
        """Return a client without a cache of listings."""
        return s3fs.S3FileSystem(
            endpoint_url=self.endpoint, key="testing", secret="testing", use_listings_cache=False,
            client_kwargs={"region_name": REGION},
        )  # fmt: skip

    def use(self, url: str, patch: pytest.MonkeyPatch, attempts: int) -> None:
        """Point clients to this address, with few attempts: of this process, and of processes that it starts."""
        patch.setenv("AWS_MAX_ATTEMPTS", str(attempts))
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        patch.setenv("FSSPEC_S3_ENDPOINT_URL", url)
        retries = {"retries": {"total_max_attempts": attempts}}
        patch.setitem(fsspec.config.conf, "s3", {"endpoint_url": url, "config_kwargs": retries})

    def hurry(self, patch: pytest.MonkeyPatch) -> None:
        """Let clients of this process give up soon, so that what stays broken is told soon."""
        patch.setattr(s3fs.S3FileSystem, "retries", 2)

    def bucket(self) -> str:
        """Make a new bucket; return its name."""
        name = f"bucket-{next(_numbers):04d}"  # in order as names, too
        self.client.mkdir(name, **({"region_name": REGION} if self.scheme == "s3" else {}))
        return name

    def upload(self, folder: Path, url: str) -> None:
        """Copy the files of a local folder to an address."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                where = f"{url.removeprefix(f'{self.scheme}://')}/{path.relative_to(folder).as_posix()}"
                self.client.pipe_file(where, path.read_bytes())

    def fill(self, bucket: str, *names: str) -> None:
        """Put many objects into a bucket behind the back of the server, which takes seconds for a thousand."""
        for name in names:
            if self.scheme == "s3":
                s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(bucket, name, b"xyz")
            else:
                self.client.pipe_file(f"{bucket}/{name}", b"xyz")

    def objects(self, url: str) -> dict[str, str]:
        """Return every object below an address with the SHA-256 of its bytes."""
        root = url.removeprefix(f"{self.scheme}://")
        found = self.client.find(root)
        return {name.removeprefix(f"{root}/"): hashlib.sha256(self.client.cat_file(name)).hexdigest() for name in found}

    def unfinished(self, bucket: str) -> list[str]:
        """Return the keys of uploads that were begun and neither completed nor aborted."""
        answer = self.client.call_s3("list_multipart_uploads", Bucket=bucket)
        return [upload["Key"] for upload in answer.get("Uploads", [])]
