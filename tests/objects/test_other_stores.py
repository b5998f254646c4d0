"""Google's and Azure's stores: what is theirs alone; what holds of S3 and of them is in the other files."""

from __future__ import annotations

import importlib.metadata
import json
import re
from pathlib import Path

import pytest

import corpusveil as cv
from tests.calls import command, succeeds
from tests.engines.corpora import run
from tests.engines.processes import free_port
from tests.objects.conftest import Place, Reference, others
from tests.objects.proxy import Proxy

pytestmark = pytest.mark.stores


def counted(place: Place) -> list[str]:
    """Return a call with records and a ledger at the store."""
    more = ("--records", f"{place.root}/records", "--ledger", f"{place.root}/ledger", "--unit", "content")
    return place.arguments(*more, "--cap", "1e6")


@others
@pytest.mark.usefixtures("hasty")
class TestARelease:
    @pytest.mark.parametrize("where", [r"out/data/part-0000[13]", r"records/shards/part-0000[13]"])
    def test_resumes_after_a_store_that_was_down(
        self, place: Place, reference: Reference, proxy: Proxy, where: str
    ) -> None:
        rule = proxy.rule(place.store.write_method, where, "refuse", code="ServerBusy")
        ended = command(*counted(place))
        warned, sentence = ended.err.splitlines()
        assert (ended.status, warned.partition(":")[0]) == (1, "warning")
        assert rule.hits > 0
        assert re.search(rf"{place.root}/\S*{where}\S*: could not be written .*fewer requests", sentence), sentence
        left = place.store.objects(place.output)
        assert left.items() <= reference.files.items()
        assert "manifest.json" not in left
        proxy.clear()
        succeeds(*counted(place))
        assert place.store.objects(place.output) == reference.files
        (line,) = cv.Ledger(f"{place.root}/ledger").spent().releases
        assert line["documents"] == reference.outcome.counts.documents, "each is counted once"


@pytest.mark.parametrize("store", ["gs"], indirect=True)
def test_a_raw_token_that_can_not_be_asked_about_is_not_shown(
    place: Place, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Google's client sends it in an address, which the error of a connection quotes; the emulator looks at none."""
    monkeypatch.setenv("FSSPEC_GS", json.dumps({"token": "ya29.s3cret-s3cret"}))
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{free_port()}")
    ended = run(*place.arguments(), home=tmp_path)
    assert ended.returncode == 1, ended.stderr
    (sentence,) = ended.stderr.splitlines()
    assert sentence.startswith("corpusveil: ")
    assert f"{place.root}/" in sentence
    assert "s3cret" not in sentence


def test_the_emulators_are_those_of_the_documentation() -> None:
    """docs/stores.md names the versions that this suite ran on."""
    page = (Path(__file__).parents[2] / "docs" / "stores.md").read_text()
    for package in ("gcsfs", "adlfs", "gcp-storage-emulator"):
        assert f"{package} {importlib.metadata.version(package)}" in page
