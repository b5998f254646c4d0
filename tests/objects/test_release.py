"""A release with input, output, records and space at a store has the bytes of one on a disk."""

from __future__ import annotations

from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil.jobs.local import Local
from corpusveil.storage.records import WARNING
from corpusveil.transforms.release.corpus import privatize_corpus
from tests.calls import succeeds
from tests.engines.corpora import Ground, release_files, write_large_corpus
from tests.engines.processes import end_session, kill_tree, start_command, wait_until
from tests.objects.conftest import Place, Reference, everywhere
from tests.objects.proxy import Proxy
from tests.objects.store import Store


@everywhere
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_with_its_ledger_and_once_more(place: Place, reference: Reference, proxy: Proxy, workers: int) -> None:
    """A finished release is recognized, and left as it is; its records say that they are private."""
    more = ("--records", f"{place.root}/records", "--workers", workers)
    counted = ("--ledger", f"{place.root}/ledger", "--unit", "content", "--cap", "1e6")
    ended = succeeds(*place.arguments(*more, *counted))
    assert reference.outcome.content_sha256 in ended.out
    assert place.store.objects(place.output) == reference.files
    ledger = cv.Ledger(f"{place.root}/ledger")
    (line,) = ledger.spent().releases
    assert line["documents"] == reference.outcome.counts.documents
    assert ledger.verify(f"{place.root}/records").differences == ()
    for name in place.store.client.find(f"{place.bucket}/records"):
        assert WARNING.split(":")[0].encode() in place.store.client.cat_file(name)[:60]
    held = place.store.objects(f"{place.root}/ledger")
    proxy.clear()
    assert reference.outcome.content_sha256 in succeeds(*place.arguments(*more, *counted)).out
    assert place.store.objects(place.output) == reference.files
    assert place.store.objects(f"{place.root}/ledger") == held
    assert proxy.seen(place.store.write_method, ".") == proxy.seen(place.store.write_method, r"lease-\d+")


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
