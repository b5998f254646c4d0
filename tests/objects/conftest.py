"""What one process of the object store suite makes once: a store, a space and a corpus, and their release on a disk."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from moto import backends
from moto.server import ThreadedMotoServer

import corpusveil as cv
from corpusveil.jobs.local import Local
from corpusveil.transforms.release.corpus import Outcome
from tests.calls import privatize_corpus
from tests.engines.corpora import BLOCK, Ground, make_ground, make_release, release_files, rows
from tests.objects.others import azure, google
from tests.objects.proxy import Proxy, proxied
from tests.objects.store import Store


@contextlib.contextmanager
def amazon(folder: Path) -> Iterator[Store]:
    """Run an S3 store."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    modules = [*backends.list_of_moto_modules()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backends, "list_of_moto_modules", lambda: modules)  # it looks at 200 folders for each request
        server.start()
        host, port = server.get_host_and_port()
        yield Store(f"http://{host}:{port}")
        server.stop()


STORES: dict[str, Any] = {"s3": amazon, "gs": google, "abfs": azure}
_OTHERS = [pytest.param(name, marks=pytest.mark.stores) for name in ("gs", "abfs")]
everywhere = pytest.mark.parametrize("store", ["s3", *_OTHERS], indirect=True)
"""A test of S3, which make stores runs at Google's and Azure's stores, too."""


@pytest.fixture(scope="session")
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    name = getattr(request, "param", "s3")
    with STORES[name](tmp_path_factory.mktemp(name)) as made:
        yield made


@pytest.fixture(scope="session")
def _proxy(store: Store) -> Iterator[Proxy]:
    with proxied(store.endpoint.removeprefix("http://"), store.dialect) as proxy:
        yield proxy


def _attempts(request: pytest.FixtureRequest) -> int:
    return 1 if "hasty" in request.fixturenames else 2


@pytest.fixture
def s3(store: Store, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Store:
    """The store, with the settings by which a user reaches it."""
    store.use(store.endpoint, monkeypatch, _attempts(request))
    return store


@pytest.fixture
def proxy(
    store: Store, _proxy: Proxy, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Proxy]:
    """The store behind a proxy that can go wrong."""
    store.use(_proxy.url, monkeypatch, _attempts(request))
    yield _proxy
    _proxy.clear()


@pytest.fixture
def hasty(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients of this process give up soon, so that what stays broken is told soon."""
    store.hurry(monkeypatch)


@pytest.fixture
def bucket(store: Store) -> str:
    return store.bucket()


@pytest.fixture
def url(store: Store, bucket: str) -> str:
    return f"{store.scheme}://{bucket}"


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return make_ground(tmp_path_factory.mktemp("ground"), rows(BLOCK + 300, 0), rows(500, 1, words=3))


def data_of(files: dict[str, str]) -> dict[str, str]:
    """Return the files of a release but its manifest."""
    return {name: digest for name, digest in files.items() if name != "manifest.json"}


@dataclass(frozen=True)
class Reference:
    """A release that was made on a disk: its outcome and files."""

    release: cv.Release
    outcome: Outcome
    files: dict[str, str]

    @property
    def data(self) -> dict[str, str]:
        """The files without the manifest, which says which caps of a ledger held."""
        return data_of(self.files)


@pytest.fixture(scope="session")
def reference(ground: Ground) -> Reference:
    release = make_release(ground.space)
    output = ground.folder / "reference"
    outcome = privatize_corpus(release, [str(ground.corpus)], str(output), Local(), corpus="c4")
    return Reference(release, outcome, release_files(output))


@dataclass(frozen=True)
class Place:
    """A bucket with the corpus and the space in it."""

    store: Store
    bucket: str
    ground: Ground

    @property
    def root(self) -> str:
        return f"{self.store.scheme}://{self.bucket}"

    @property
    def corpus(self) -> str:
        return f"{self.root}/c4"

    @property
    def output(self) -> str:
        return f"{self.root}/private/out"

    def arguments(self, *more: object, source: str | None = None, output: str | None = None) -> list[str]:
        """Return the arguments of ``privatize`` with everything but the key at the store."""
        words = ["privatize", source or self.corpus, "--space", f"{self.root}/space", "--output", output or self.output]
        words += ["--mechanism", "ring-geometric", "--epsilon", "1", "--key", str(self.ground.key), "--corpus", "c4"]
        return [str(word) for word in (*words, "--progress", "none", *more)]


@pytest.fixture
def place(store: Store, ground: Ground) -> Place:
    place = Place(store, store.bucket(), ground)
    store.upload(ground.corpus, place.corpus)
    store.upload(ground.space_folder, f"{place.root}/space")
    return place
