"""The same settings, key and text give the same bytes as when golden.json was written, however the code is rearranged.

A change of a release's output raises the kernel version and is listed under Output in the changelog. Then, and only
then, ``python -m tests.golden.test_golden`` writes golden.json again, and the difference of the file shows what
changed. What an earlier corpusveil wrote (``before``, at kernel version 2) is read by this one, and gone on with.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import corpusveil as cv
from corpusveil.errors import VersionError
from corpusveil.mechanisms import registry
from tests.calls import command, fails, succeeds
from tests.engines.corpora import TEST_KEY, release_files
from tests.golden import works

GOLDEN = Path(__file__).with_name("golden.json")


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    written: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return written


SENTENCES = ("/guarantee", "/guarantee_in_words", "/kept_columns")
"""Ends of a manifest that are sentences, or fields next to them; ``reworded`` compares their numbers."""


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Return what stands at each end of nested JSON, by its path."""
    if not isinstance(value, dict):
        return {path: value}
    return {name: leaf for key, part in value.items() for name, leaf in leaves(part, f"{path}/{key}").items()}


def test_what_is_written_is_what_was_written(golden: dict[str, Any]) -> None:
    before, now = leaves(golden), leaves(works.all_works())
    bytes_of = [name for name in before if not name.endswith(SENTENCES)]
    assert {name for name in bytes_of if now.get(name) != before[name]} == set(), "these differ from golden.json"
    assert set(now) == set(before)


def test_every_mechanism_and_every_form_is_among_the_works(golden: dict[str, Any]) -> None:
    assert set(golden["mechanisms"]) == set(registry.names())
    suffixes = {name.split(".", 1)[1] for release in golden["corpora"].values() for name in release.get("data", ())}
    assert suffixes >= {"json.gz", "jsonl", "jsonl.zst", "parquet", "csv", "txt"}


def test_another_key_changes_every_release(
    golden: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison could fail: draws depend on everything on which they should depend."""
    monkeypatch.setattr(works, "TEST_KEY", TEST_KEY[::-1])
    with works.ground():
        drawn = works.mechanisms()
    assert all(drawn[name]["texts"] != golden["mechanisms"][name]["texts"] for name in drawn)


BEFORE = Path(__file__).with_name("before")
PRIVATIZE = (
    "privatize c4 --id id --keep id --corpus golden --space space --mechanism ring-geometric --epsilon 1 "
    "--output release --key release.key --progress none"
)
COUNTED = f"{PRIVATIZE} --ledger ledger --unit id --cap 100"


@pytest.fixture
def before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with what was written, and the two secrets; the working folder, too."""
    folder = tmp_path / "before"
    shutil.copytree(BEFORE, folder)
    for name, key in (("release.key", TEST_KEY), ("ledger/secret.key", works.SECRET)):
        (folder / name).touch(mode=0o600)
        (folder / name).write_bytes(key)
    told = folder / "release.records" / "run.json"
    told.write_text(told.read_text().replace("BASE", str(folder)))
    monkeypatch.chdir(folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((folder / "release").rglob("*")) if file.is_file()}


def reworded(folder: Path) -> dict[str, bytes]:
    """Return the contents; of the manifest not its version, and no sentences, which any version may improve."""
    found = contents(folder)
    manifest = json.loads(found["manifest.json"])
    for name in ("guarantee_in_words", "kept_columns"):
        assert manifest.pop(name)
    manifest["corpusveil"] = cv.__version__
    numbers = {name: manifest["guarantee"][name] for name in ("mechanism", "epsilon", "plain_ldp", "holds", "per")}
    found["manifest.json"] = json.dumps({**manifest, "guarantee": numbers}).encode()
    return found


def test_a_run_that_was_begun_before_is_finished_with_the_same_bytes(before: Path) -> None:
    """The manifest has the version and the sentences of the version that wrote it; all else is that of the earlier."""
    written = reworded(before)
    records = before / "release.records" / "run.json"
    records.write_text(json.dumps({**json.loads(records.read_text()), "ledger": None}))
    (before / "release" / "manifest.json").unlink()
    (before / "release" / "data" / "part-00001-of-00002.jsonl").unlink()
    succeeds(*PRIVATIZE.split())
    assert reworded(before) == written
    assert json.loads((before / "release" / "manifest.json").read_text())["corpusveil"] == cv.__version__


def test_a_finished_run_is_done(before: Path) -> None:
    written = contents(before)
    succeeds(*COUNTED.split())
    assert contents(before) == written


def test_a_ledger_of_before_is_refused_whatever_it_is_asked(before: Path) -> None:
    """Its sums are others: no run enters anything, and no question is answered."""
    ledger = release_files(before / "ledger")
    for gone in ("release", "release.records"):
        shutil.rmtree(before / gone)
        for words in (COUNTED.split(), ["ledger", "show", "ledger"]):
            fails(words, VersionError.code)
        assert command("ledger", "verify", "ledger").status == 1
        assert release_files(before / "ledger") == ledger
        assert not (before / "release").exists()


def test_artefacts_of_before_are_opened(before: Path) -> None:
    assert cv.load_space("space").id("babaki") is not None
    succeeds("score", "--counts", "counts", "--output", "again")
    table = json.loads((before / "table" / "_artifact.json").read_text())
    again = json.loads((before / "again" / "_artifact.json").read_text())
    assert again.pop("by") == f"corpusveil {cv.__version__}"
    for made in (table, again):
        made.pop("seconds", None)
    assert again == {name: value for name, value in table.items() if name != "by"}


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(works.all_works(), indent=1) + "\n", encoding="utf-8")
