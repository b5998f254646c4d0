"""What an earlier corpusveil wrote (``before``, at kernel version 2) is read by this one, and gone on with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil.cli.main import run
from corpusveil.errors import VersionError
from tests.calls import succeeds
from tests.engines.corpora import TEST_KEY, release_files
from tests.golden.works import SECRET

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
    for name, key in (("release.key", TEST_KEY), ("ledger/secret.key", SECRET)):
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


@pytest.mark.parametrize("begun", [True, False])
def test_a_ledger_of_before_is_refused_whatever_it_is_asked(
    before: Path, capsys: pytest.CaptureFixture[str], begun: bool
) -> None:
    """Its sums are others: no run enters anything, and no question is answered."""
    shutil.rmtree(before / "release")
    if not begun:
        shutil.rmtree(before / "release.records")
    ledger = release_files(before / "ledger")
    for words in (COUNTED.split(), ["ledger", "show", "ledger"]):
        assert run(words) == 2
        assert f"[{VersionError.code}]" in capsys.readouterr().err
    assert run(["ledger", "verify", "ledger"]) == 1
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
