"""The same settings, key and text give the same bytes as when golden.json was written, however the code is rearranged.

A change of a release's output raises the kernel version and is listed under Output in the changelog. Then, and only
then, ``python -m tests.golden.test_golden`` writes golden.json again, and the difference of the file shows what
changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.engines.corpora import TEST_KEY
from tests.golden import works

GOLDEN = Path(__file__).with_name("golden.json")


@pytest.fixture(scope="module")
def done() -> dict[str, Any]:
    return works.all_works()


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    written: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return written


SENTENCES = ("/guarantee", "/guarantee_in_words", "/kept_columns")
"""Ends of a manifest that are sentences, or fields beside them: ``test_written_before`` compares their numbers."""


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Return what stands at each end of nested JSON, by its path."""
    if not isinstance(value, dict):
        return {path: value}
    return {name: leaf for key, part in value.items() for name, leaf in leaves(part, f"{path}/{key}").items()}


@pytest.mark.parametrize("work", list(works.WORKS))
def test_what_is_written_is_what_was_written(work: str, done: dict[str, Any], golden: dict[str, Any]) -> None:
    before, now = leaves(golden[work]), leaves(done[work])
    bytes_of = [name for name in before if not name.endswith(SENTENCES)]
    assert {name for name in bytes_of if now.get(name) != before[name]} == set(), "these differ from golden.json"
    assert set(now) == set(before)


def test_every_mechanism_and_every_form_is_among_the_works(golden: dict[str, Any]) -> None:
    from corpusveil.mechanisms import registry

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


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(works.all_works(), indent=1) + "\n", encoding="utf-8")
